package main

import (
	"io"
	"os"

	"github.com/fatih/color"
	"golang.org/x/term"
)

// paint returns a function that colours what is printed to out, which it leaves alone unless out is a terminal.
func paint(out io.Writer, attribute color.Attribute) func(...any) string {
	c := color.New(attribute)
	c.DisableColor()
	file, isFile := out.(*os.File)
	if isFile && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
		c.EnableColor()
	}
	return c.SprintFunc()
}
