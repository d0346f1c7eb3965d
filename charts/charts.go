// Package charts embeds the Helm charts of the kinds, one folder a chart.
package charts

import "embed"

// FS holds <chart>/Chart.yaml, values.yaml and templates/, helpers included.
//
//go:embed all:*/*
var FS embed.FS
