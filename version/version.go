// Package version says what this program is called and which build of it this is.
package version

import (
	"cmp"
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

// Info is what tells this build from others.
type Info struct {
	Version string `json:"version"`
	// Commit is empty if it is not known.
	Commit    string `json:"commit"`
	GoVersion string `json:"goVersion"`
	// Platform is the operating system and the processor: linux/amd64.
	Platform string `json:"platform"`
}

// Get returns the Info of the running program.
func Get() Info {
	commit := Commit
	if info, ok := debug.ReadBuildInfo(); ok && commit == "" {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value[:min(len(s.Value), 12)]
			}
		}
	}
	return Info{Version: Version, Commit: commit, GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
}

// String returns the version, the commit and the Go version: "v0.1.0 (3f2a1bc, go1.26.8)".
func String() string {
	info := Get()
	return fmt.Sprintf("%s (%s, %s)", info.Version, cmp.Or(info.Commit, "unknown commit"), info.GoVersion)
}
