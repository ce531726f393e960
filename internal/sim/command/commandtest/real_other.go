//go:build !unix

package commandtest

import "os/exec"

// apart has nothing to do where there are no process groups.
func apart(*exec.Cmd) {}

// lower has nothing to take where there is no root.
func lower(*exec.Cmd) {}
