package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// guard is a running supervisor of processes; the folder guard holds its program and describes the protocol.
type guard struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	exits chan exit // closed when the guard has ended
}

// process asks the guard to start a process; exit tells that one ended unasked. Both are the guard program's own types.
type (
	process struct {
		Name string   `json:"name"`
		Path string   `json:"path"`
		Args []string `json:"args"`
		Log  string   `json:"log"`
	}
	exit struct {
		Name   string `json:"name"`
		Code   int    `json:"code"`
		Reason string `json:"reason"`
	}
)

// maxProcesses is how many processes a guard may be given: their exits fit into its channel even when nobody reads it.
const maxProcesses = 8

// stopTimeout is when a guard that does not end is killed, and its processes with it. It needs five seconds at most.
const stopTimeout = 15 * time.Second

// startGuard starts the guard program at path. It and its processes get env on top of this program's environment; its own
// errors go to the file log. They are in a process group of their own, so that a terminal's Ctrl-C reaches only this
// program, which then stops them in the right order.
func startGuard(path, log string, env []string, args ...string) (*guard, error) {
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	defer func() { _ = stderr.Close() }()
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	g := &guard{cmd: cmd, stdin: stdin, exits: make(chan exit, maxProcesses)}
	go func() {
		defer close(g.exits)
		for reports := json.NewDecoder(stdout); ; {
			var e exit
			if reports.Decode(&e) != nil {
				return
			}
			g.exits <- e
		}
	}()
	return g, nil
}

// start asks for a process. A failure to start it is told like its exit.
func (g *guard) start(p process) error {
	if err := json.NewEncoder(g.stdin).Encode(p); err != nil {
		return fmt.Errorf("starting %s: asking the guard: %w", p.Name, err)
	}
	return nil
}

// stop ends all processes and returns when they are gone. The error names those that had ended before, unasked, unless
// their exit was read already.
func (g *guard) stop() error {
	_ = g.stdin.Close() // already closed when the guard was killed
	kill := time.AfterFunc(stopTimeout, func() { _ = g.cmd.Process.Kill() })
	defer kill.Stop()
	var errs []error
	for e := range g.exits {
		errs = append(errs, fmt.Errorf("%s had ended before: %s", e.Name, e.Reason))
	}
	if err := g.cmd.Wait(); err != nil {
		errs = append(errs, fmt.Errorf("guard: %w", err))
	}
	return errors.Join(errs...)
}
