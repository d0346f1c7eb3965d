//go:build race

package agreement_test

// The race detector makes CUE ten times slower.
const defaultSpecs = 1000
