// Package schemas embeds the CUE packages of the kinds, one folder a kind, and the contract they share in kind/.
package schemas

import "embed"

// FS holds <kind>/*.cue and kind/*.cue, but not <kind>/testdata. The folder above it is the root of the CUE module that their imports name.
//
//go:embed */*.cue
var FS embed.FS
