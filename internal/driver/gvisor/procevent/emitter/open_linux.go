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

// openat2 is the number of the system call, on every architecture.
const openat2 = 437

// opened returns the message of a call that opens a file, after the call. For an opened
// file, FdPath is the file's path with links resolved, because the program may have changed
// the path in its memory since the call. After an error, Pathname is the requested path and
// FdPath the directory that it is relative to.
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
		name = "" // the argument was not a string
	}
	m.Pathname = audit.Text(name, audit.MaxPath)
	if name != "" && !strings.HasPrefix(name, "/") {
		m.FdPath = audit.Text(filePath(task, dir), audit.MaxPath)
	}
	return m
}

// filePath returns the path of an open file, or of the working directory for AT_FDCWD,
// relative to the root of the sandbox.
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

// how reads the flags of openat2, the first word of its structure.
func how(t *kernel.Task, at uint64) uint32 {
	var word [8]byte
	if _, err := t.CopyInBytes(hostarch.Addr(at), word[:]); err != nil {
		return 0
	}
	return uint32(binary.NativeEndian.Uint64(word[:]))
}
