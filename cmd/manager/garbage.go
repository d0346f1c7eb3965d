package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Garbage may pile up to twice what is live, which saves half of the collections, while the Go runtime has less than garbageFloor.
// Beyond it may take half as much again as is live, and garbageOverhead for what is no heap.
const (
	garbagePercent  = 200
	garbageFloor    = 86 << 20
	garbageOverhead = 12 << 20
)

// boundGarbage sets the collector's pace by what is live, rather than by a proportion that wastes time in small clusters or
// memory in large ones. GOGC and GOMEMLIMIT, if one is set, are left in charge.
func boundGarbage() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(garbagePercent)
	afterEachCollection(func() {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		debug.SetMemoryLimit(max(garbageFloor, int64(live[0].Value.Uint64()*3/2)+garbageOverhead))
	})
}

// afterEachCollection calls f now and after each garbage collection: the object that it makes is garbage at once. (Smaller ones
// share their memory with others.)
func afterEachCollection(f func()) {
	f()
	runtime.AddCleanup(new([64]byte), func(f func()) { afterEachCollection(f) }, f)
}
