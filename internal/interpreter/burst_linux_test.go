package interpreter

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The first interrupt drops the line of the cell, and those after it can meet a shell that reads.
func TestABurstOfInterruptsDoesNotEndAShell(t *testing.T) {
	for range 5 {
		c := exec.CommandContext(t.Context(), "bash", "--norc", "--noprofile", "--noediting", "-i", "-s", "x:x:x:x:mark:x")
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		heard := bufio.NewReader(out)
		send := func(s string) {
			if _, err := io.WriteString(in, s); err != nil {
				t.Error(err)
			}
		}
		until := func(word string) {
			for !t.Failed() {
				switch said, err := heard.ReadString('}'); {
				case err != nil:
					t.Fatalf("the shell ended before it said %s: %v", word, err)
				case strings.Contains(said, word):
					return
				}
			}
		}
		send(bashKernel)
		until("ready")
		send("__paddock_begin 7; sleep 1000; __paddock_end 7\n")
		until("begun")
		heardEnd, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for tick := time.Tick(time.Millisecond); ; {
				select {
				case <-heardEnd:
					return
				case <-t.Context().Done():
					return
				case <-tick: // a child that has not executed its program yet loses one
					if err := syscall.Kill(-c.Process.Pid, syscall.SIGINT); err != nil {
						t.Error(err)
					}
				}
			}
		}()
		send("__paddock_end 7\n")
		until(`"Interrupted"`)
		until(`"end"`)
		close(heardEnd)
		<-stopped
		send("exit 3\n")
		if err := c.Wait(); c.ProcessState.ExitCode() != 3 {
			t.Errorf("the shell ended with %v", err)
		}
	}
}
