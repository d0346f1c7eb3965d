// Package agreement proves that the API server, by the generated CustomResourceDefinitions, and the operator, by the kinds' CUE,
// accept the same custom resources and fill in the same defaults, and that opctl vet says so, too.
package agreement
