//go:build unix

package cli

import (
	"os"
	"os/exec"
	"syscall"
)

// watchOver starts a program when this process dies without calling done. A shell reads a pipe whose other end only this
// process has: a line says that all is well, and its end that nobody is left to write one. It is no child of this
// process for long, because agents that kill a step kill its children as well.
func watchOver(program string, args ...string) (done func()) {
	read, write, err := os.Pipe()
	if err != nil {
		return func() {}
	}
	c := exec.Command("/bin/sh", append([]string{"-c", `{ read -r x <&3 || "$@"; } </dev/null >/dev/null 2>&1 &`, "sh", program}, args...)...)
	c.ExtraFiles = []*os.File{read}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = c.Start()
	read.Close()
	if err != nil {
		write.Close()
		return func() {}
	}
	return func() {
		_, _ = write.WriteString("\n") // to a shell that is gone: then there is nothing to call off
		write.Close()
		_ = c.Wait()
	}
}
