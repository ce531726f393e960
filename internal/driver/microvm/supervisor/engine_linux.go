package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/seccomp"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// self is this program, which is also executed as each of the box's other processes.
const self = "/proc/self/exe"

// First arguments of those processes.
const (
	argvStub  = "paddock-guest-microvm-stub"
	argvFiles = "paddock-guest-microvm-files"
)

// An engine starts QEMU.
type engine struct {
	program string // path in boxinit.Engine
	policy  policy
	said    *tail // its standard error
}

// stubTime bounds the start of a process on a busy host.
const stubTime = 60 * time.Second

// start is a qemu.Starter. The process begins as a stub, which sets up its own
// restrictions.
func (e *engine) start(arguments []string, files []*os.File) (*os.Process, error) {
	channel, theirs, err := sys.NewChannelPair()
	if err != nil {
		return nil, err
	}
	defer func() { _ = channel.Close() }()
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	said, stderr, err := newTail()
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	e.said = said
	all := append([]*os.File{null, null, stderr}, files...)
	reads := "reads"
	if !e.policy.reads() {
		reads = ""
	}
	process, err := os.StartProcess(self, append([]string{argvStub, strconv.Itoa(len(all)), reads, e.program}, arguments...), &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=1", "GOGC=off"}, Files: append(all, theirs),
		Sys: &syscall.SysProcAttr{Cloneflags: sys.CloneMount},
	})
	if err != nil {
		return nil, err
	}
	theirs.Close()
	if err := e.await(channel); err != nil {
		_ = process.Kill()
		_, _ = process.Wait()
		return nil, err
	}
	return process, nil
}

// await waits until the stub has executed QEMU.
func (e *engine) await(channel *sys.Channel) error {
	ctx, cancel := context.WithTimeout(context.Background(), stubTime)
	defer cancel()
	defer channel.Until(ctx)()
	text, files, err := channel.Receive()
	switch {
	case err != nil:
		return fmt.Errorf("its stub ended: %w", err)
	case len(files) == 0:
		return errors.New(string(text))
	}
	for _, f := range files[1:] {
		f.Close()
	}
	if err := e.policy.serve(files[0]); err != nil {
		return err
	}
	text, files, err = channel.Receive()
	for _, f := range files {
		f.Close()
	}
	if errors.Is(err, io.EOF) { // closed by the exec
		return nil
	}
	return errors.Join(err, errors.New(string(text)))
}

// stub becomes QEMU.
func stub(args []string) error {
	if len(args) < 3 {
		return errors.New("a stub without arguments")
	}
	fd, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	runtime.LockOSThread() // permanently, because restrictions belong to a thread and what it executes
	channel, err := sys.NewChannel(fd)
	if err != nil {
		return err
	}
	err = confine(channel, fd, args[1] != "", args[2], args[2:])
	// Only an error returns.
	return errors.Join(err, channel.Send([]byte(err.Error())))
}

// confine sets up QEMU's restrictions in this process and executes it.
func confine(channel *sys.Channel, fd int, reads bool, program string, argv []string) error {
	if err := sys.CloseFrom(fd + 1); err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"drop capabilities", func() error { return errors.Join(sys.NoRoot(), sys.DropBounding()) }},
		{"enter its tree", enterEngine},
		{"drop capabilities", sys.DropCapabilities},
		{"set limits", func() error { _, err := sys.SetResource(sys.ResourceCore, 1); return err }}, // 1 byte: see boxinit
		{"forbid privileges", sys.NoNewPrivs},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	rules, err := seccomp.Machine(os.Getpid(), reads)
	if err != nil {
		return err
	}
	listener, err := sys.SeccompListen(rules)
	if err != nil {
		return err
	}
	if err := channel.Send([]byte{1}, listener); err != nil {
		return err
	}
	return fmt.Errorf("execute %s: %w", program, syscall.Exec(program, argv, []string{})) //nolint:gosec // the host says what it is
}

// enterEngine makes the host's programs the whole file tree of this process, read-only.
func enterEngine() error {
	if err := sys.MakePrivate(); err != nil {
		return err
	}
	tree, err := sys.CloneTree(sys.AtCWD, boxinit.Engine, true)
	if err != nil {
		return err
	}
	defer tree.Close()
	if err := sys.SetMountAttr(tree, sys.ReadOnly|sys.NoSUID|sys.NoDev, true); err != nil {
		return err
	}
	at, err := sys.OpenPath(nil, boxinit.Engine, false)
	if err != nil {
		return err
	}
	defer at.Close()
	if err := sys.Attach(tree, at); err != nil {
		return err
	}
	root, err := sys.OpenPath(nil, boxinit.Engine, false)
	if err != nil {
		return err
	}
	defer root.Close()
	return sys.PivotInto(root)
}
