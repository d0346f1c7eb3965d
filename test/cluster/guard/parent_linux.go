package main

import "syscall"

// dieWithParent has the kernel kill the process when the guard itself is killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
