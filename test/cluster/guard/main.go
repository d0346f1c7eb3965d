// Command guard runs the processes of one cluster and outlives the program that asked for them just long enough to stop
// them all: whether that program returns, panics or is killed, its end of the guard's standard input closes.
//
// Standard input carries one JSON object a line for each process to start ({"name","path","args","log"}); standard output
// one for each process that ended by itself or could not be started ({"name","code","reason"}). At the end of the input,
// or on SIGTERM, the processes are stopped, the last one started first, and the folder named by -remove is removed.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// grace is what a process has between SIGTERM and SIGKILL. Five processes that all need it are gone within eight seconds.
const grace = time.Second

// process is a request to start one.
type process struct {
	Name string   `json:"name"`
	Path string   `json:"path"`
	Args []string `json:"args"`
	Log  string   `json:"log"` // file that receives its standard output and error; what it held is lost
}

// exit reports that a process is not running although nobody stopped it. Code is -1 after a signal or a failed start.
type exit struct {
	Name   string `json:"name"`
	Code   int    `json:"code"`
	Reason string `json:"reason"`
}

// child is a started process; gone is closed when it has ended.
type child struct {
	name string
	cmd  *exec.Cmd
	gone chan struct{}
}

// The children's parent-death signal is sent when the thread that started them ends, so main keeps the main thread.
func init() { runtime.LockOSThread() }

func main() {
	remove := flag.String("remove", "", "folder to remove when all processes are gone")
	flag.Parse()

	// A terminal's Ctrl-C and a reader that is gone must not keep the guard from its last duty.
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)

	stop(supervise(requests(), terminated))
	if *remove == "" {
		return
	}
	if err := os.RemoveAll(*remove); err != nil {
		fmt.Fprintln(os.Stderr, "guard: removing the data folder:", err)
		os.Exit(1)
	}
}

// requests returns the processes asked for on standard input, and closes the channel at its end or at the first line that
// is not a request.
func requests() <-chan process {
	requests := make(chan process)
	go func() {
		defer close(requests)
		for lines := json.NewDecoder(os.Stdin); ; {
			var p process
			if lines.Decode(&p) != nil {
				return
			}
			requests <- p
		}
	}()
	return requests
}

// supervise starts what is requested and reports what ends, until there are no more requests or a signal arrives. It
// returns all it started, in that order.
func supervise(requests <-chan process, terminated <-chan os.Signal) []*child {
	var children []*child
	ended := make(chan *child)
	reports := json.NewEncoder(os.Stdout)
	report := func(e exit) { _ = reports.Encode(e) } // nobody is left to hear of it: the input ends as well
	for {
		select {
		case <-terminated:
			return children
		case p, more := <-requests:
			if !more {
				return children
			}
			c, err := start(p, ended)
			if err != nil {
				report(exit{Name: p.Name, Code: -1, Reason: err.Error()})
				continue
			}
			children = append(children, c)
		case c := <-ended:
			report(exit{Name: c.name, Code: c.cmd.ProcessState.ExitCode(), Reason: c.cmd.ProcessState.String()})
		}
	}
}

// start starts a process as the leader of its own process group and sends it to ended when it has ended.
func start(p process, ended chan<- *child) (*child, error) {
	log, err := os.Create(p.Log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{name: p.Name, cmd: cmd, gone: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // ProcessState tells
		close(c.gone)
		ended <- c
	}()
	return c, nil
}

// stop ends the processes and their groups one after the other, the last one first.
func stop(children []*child) {
	for i := len(children) - 1; i >= 0; i-- {
		c := children[i]
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			select {
			case <-c.gone:
				continue // its number may belong to another process by now
			default:
			}
			_ = syscall.Kill(-c.cmd.Process.Pid, sig) // fails only if it has just ended
			select {
			case <-c.gone:
			case <-time.After(grace):
			}
		}
		<-c.gone
	}
}
