//go:build !race

package agreement_test

const defaultSpecs = 10000
