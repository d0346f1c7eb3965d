// Package prometheus checks config/prometheus as kustomize builds it: that the rules are valid and fire when they should, that
// rules and dashboard use metrics which exist, and that the ServiceMonitor finds the Service. It is a module of its own, since
// Prometheus' rule engine brings many modules along, of which the operator needs none.
//
// The files in testdata have the format of `promtool test rules`, but that annotations may be left out.
package prometheus
