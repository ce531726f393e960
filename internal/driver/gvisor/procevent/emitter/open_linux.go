package emitter

import (
	"encoding/binary"
	"strings"

	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/context"
	"gvisor.dev/gvisor/pkg/hostarch"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	pb "gvisor.dev/gvisor/pkg/sentry/seccheck/points/points_go_proto"
	"gvisor.dev/gvisor/pkg/sentry/vfs"

	"github.com/paddock-sandbox/paddock/internal/audit"
)

// openat2 is the number of the call, on every architecture.
const openat2 = 437

// opened gives the message of a call that opens a file, after the call. Of one
// that was opened FdPath is the path that it has, links resolved: what the program
// wrote in its memory may have changed since. Of one that was not, Pathname is
// what was asked for, and FdPath the directory that it begins from.
func opened(ctx context.Context, call *pb.Syscall) *pb.Open {
	task, ok := ctx.(*kernel.Task)
	if !ok || call.GetExit() == nil {
		return nil
	}
	dir, path, flags, ok := asked(task, call)
	if !ok {
		return nil
	}
	m := &pb.Open{
		ContextData: who(call.GetContextData()), Flags: flags,
		Exit: &pb.Exit{Result: call.GetExit().GetResult(), Errorno: call.GetExit().GetErrorno()},
	}
	if m.Exit.Errorno == 0 {
		m.FdPath = audit.Text(filePath(task, int32(m.Exit.Result)), audit.MaxPath)
		return m
	}
	name, err := task.CopyInString(path, audit.MaxPath)
	if err != nil {
		name = "" // no string was there
	}
	m.Pathname = audit.Text(name, audit.MaxPath)
	if name != "" && !strings.HasPrefix(name, "/") {
		m.FdPath = audit.Text(filePath(task, dir), audit.MaxPath)
	}
	return m
}

// filePath gives the path of an open file, or of the working directory for
// AT_FDCWD, seen from the root of the sandbox.
func filePath(t *kernel.Task, fd int32) string {
	var at vfs.VirtualDentry
	if fd == linux.AT_FDCWD {
		at = t.FSContext().WorkingDirectory()
		if !at.Ok() {
			return ""
		}
		defer at.DecRef(t)
	} else {
		file := t.GetFile(fd)
		if file == nil {
			return ""
		}
		defer file.DecRef(t)
		at = file.VirtualDentry()
	}
	root := t.MountNamespace().Root(t)
	defer root.DecRef(t)
	path, err := t.Kernel().VFS().PathnameWithDeleted(t, root, at)
	if err != nil {
		return ""
	}
	return path
}

// how reads the flags of openat2, which are the first word of its structure.
func how(t *kernel.Task, at uint64) uint32 {
	var word [8]byte
	if _, err := t.CopyInBytes(hostarch.Addr(at), word[:]); err != nil {
		return 0
	}
	return uint32(binary.NativeEndian.Uint64(word[:]))
}
