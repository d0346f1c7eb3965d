//go:build race

package e2e_test

// These tests were built with the race detector: so is the operator.
func init() { buildFlags = append(buildFlags, "-race") }
