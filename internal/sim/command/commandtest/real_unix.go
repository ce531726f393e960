//go:build unix

package commandtest

import (
	"os/exec"
	"syscall"
)

// apart gives the tool a process group, which ends as one.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// lower takes root's rights away.
func lower(cmd *exec.Cmd) {
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
}
