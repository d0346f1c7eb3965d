// Package version says what this program is called and which build of it this is.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Name and Domain are how the operator signs: field manager, labels, annotations, leases. A name that stands in a cluster can
// never change there, which is why it stands only here.
const (
	Name   = "memcached-operator"
	Domain = "memcached-operator.example.com"
)

// Version and Commit are set by the linker (-X). Without it Version is "dev" and Commit what the Go command recorded, if it did.
var (
	Version = "dev"
	Commit  = ""
)

// String returns the version, the commit and the Go version: "v0.1.0 (3f2a1bc, go1.26.8)".
func String() string {
	commit := Commit
	if info, ok := debug.ReadBuildInfo(); ok && commit == "" {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value[:min(len(s.Value), 12)]
			}
		}
	}
	if commit == "" {
		commit = "unknown commit"
	}
	return fmt.Sprintf("%s (%s, %s)", Version, commit, runtime.Version())
}
