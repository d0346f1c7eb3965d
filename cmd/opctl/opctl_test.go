package main

import (
	"errors"
	"flag"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write the files that scripts compare with")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"opctl": main, pluginName: main, pluginCompleteName: main})
}

func TestScripts(t *testing.T) {
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("REPOSITORY", repository)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// exits is the script command "exits CODE PROGRAM ARGUMENT…": exec for a program that ends with that code.
func exits(script *testscript.TestScript, _ bool, args []string) {
	got := 0
	if exit, failed := errors.AsType[*exec.ExitError](script.Exec(args[1], args[2:]...)); failed {
		got = exit.ExitCode()
	}
	if strconv.Itoa(got) != args[0] {
		script.Fatalf("exits with %d", got)
	}
}
