package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// findProcess returns the process that runs program with arg among its arguments.
func findProcess(program, arg string) (pid int, found bool) {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		folder := filepath.Dir(link)
		if target, err := os.Readlink(link); err != nil || target != program {
			continue
		}
		if args, err := os.ReadFile(filepath.Join(folder, "cmdline")); err != nil || !bytes.Contains(args, []byte(arg)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(folder)); err == nil {
			return pid, true
		}
	}
	return 0, false
}

// cpuTime returns the user and system time of all threads of a process, ended ones included, in nanoseconds: the process's
// CPU clock, whose number is made from the pid as in the kernel's posix-timers.h. /proc/<pid>/stat counts in steps of 10 ms.
func cpuTime(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &t); err != nil {
		return 0, fmt.Errorf("reading the CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// memoryOf returns the resident memory of a process, now and at its most, in MiB.
func memoryOf(pid int) (rss, peak float64, err error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, fmt.Errorf("reading a process's memory: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		key, value, _ := strings.Cut(line, ":")
		into := map[string]*float64{"VmRSS": &rss, "VmHWM": &peak}[key]
		if into == nil {
			continue
		}
		kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		if err != nil {
			return 0, 0, fmt.Errorf("reading a process's memory: %s: %w", key, err)
		}
		*into = kib / 1024
	}
	return rss, peak, nil
}

// freeAddress asks the kernel for a port on the loopback interface.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}
