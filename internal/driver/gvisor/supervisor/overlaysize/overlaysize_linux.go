package overlaysize

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/context"
	"gvisor.dev/gvisor/pkg/fd"
	"gvisor.dev/gvisor/pkg/fspath"
	"gvisor.dev/gvisor/pkg/hostarch"
	"gvisor.dev/gvisor/pkg/sentry/fsimpl/overlay"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/kernel/auth"
	"gvisor.dev/gvisor/pkg/sentry/seccheck"
	pb "gvisor.dev/gvisor/pkg/sentry/seccheck/points/points_go_proto"
	"gvisor.dev/gvisor/pkg/sentry/vfs"
)

// Sink is the name of the sink of [Register] in the configuration of a trace session.
const Sink = "paddock-layer"

// Point returns the trace point from which the sink learns of the kernel: the end of any
// thread. A thread has ended before a box is ready.
func Point() seccheck.PointConfig { return seccheck.PointConfig{Name: "sentry/task_exit"} }

// A Count is the size of an archive of the private layer.
type Count struct {
	Bytes   int64  `json:"bytes"`   // estimate of the whole archive
	Content int64  `json:"content"` // content of files with their holes, in whole pages
	Largest int64  `json:"largest"` // largest file, with its holes
	Name    string `json:"name"`    // name of the largest file; untrusted, and perhaps shortened
	Error   string `json:"error,omitempty"`
}

// nameMax is the maximum length of a reported name in bytes.
const nameMax = 300

// Register registers the sink in the process that becomes the sentry.
func Register() {
	seccheck.RegisterSink(seccheck.SinkDesc{Name: Sink, New: func(map[string]any, *fd.FD) (seccheck.Sink, error) {
		return new(sink), nil
	}})
}

// Read returns the count from a list of sessions.
func Read(sessions []seccheck.SessionConfig) (Count, error) {
	for _, session := range sessions {
		for _, s := range session.Sinks {
			data, ok := strings.CutPrefix(s.Name, Sink+" ")
			if !ok {
				continue
			}
			var c Count
			err := json.Unmarshal([]byte(data), &c)
			if err == nil && c.Error != "" {
				err = errors.New(c.Error)
			}
			return c, err
		}
	}
	return Count{}, errors.New("no session has the sink")
}

// A sink is asked for its name when sessions are listed, and for nothing else from outside.
// So the name carries the answer.
type sink struct {
	seccheck.SinkDefaults
	kernel atomic.Pointer[kernel.Kernel]
}

// TaskExit implements seccheck.Sink.
func (s *sink) TaskExit(ctx context.Context, _ seccheck.FieldSet, _ *pb.TaskExit) error {
	if s.kernel.Load() == nil {
		if k := kernel.KernelFromContext(ctx); k != nil {
			s.kernel.Store(k)
		}
	}
	return nil
}

// Name implements seccheck.Sink.
func (s *sink) Name() string {
	c, err := count(s.kernel.Load())
	if err != nil {
		c = Count{Error: err.Error()}
	}
	data, err := json.Marshal(c)
	if err != nil { // impossible
		return Sink
	}
	return Sink + " " + string(data)
}

// count counts the private layer of a box's root.
func count(k *kernel.Kernel) (c Count, err error) {
	if k == nil {
		return c, errors.New("no thread has ended yet")
	}
	defer func() { // a change in gVisor's internals may panic here
		if r := recover(); r != nil {
			err = fmt.Errorf("count the private layer: %v", r)
		}
	}()
	ctx := k.SupervisorContext()
	namespace := k.GlobalInit().Leader().MountNamespace()
	if namespace == nil || !namespace.TryIncRef() {
		return c, errors.New("the first process has ended")
	}
	defer namespace.DecRef(ctx)
	root := namespace.Root(ctx)
	defer root.DecRef(ctx)
	upper, err := upperRoot(root.Mount().Filesystem().Impl())
	if err != nil {
		return c, err
	}
	w := walker{ctx: ctx, creds: auth.CredentialsFromContext(ctx), vfs: k.VFS(), linked: map[uint64]bool{}}
	err = w.directory(upper, 0)
	return w.Count, err
}

// upperRoot returns the root of an overlay's upper layer, which gVisor does not export.
func upperRoot(of vfs.FilesystemImpl) (vfs.VirtualDentry, error) {
	want := reflect.TypeFor[overlay.FilesystemOptions]()
	if v := reflect.ValueOf(of); v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct {
		if f := v.Elem().FieldByName("opts"); f.IsValid() && f.Type() == want {
			o := (*overlay.FilesystemOptions)(f.Addr().UnsafePointer())
			if o.UpperRoot.Ok() {
				return o.UpperRoot, nil
			}
		}
	}
	return vfs.VirtualDentry{}, fmt.Errorf("the root is a %T without a known upper layer", of)
}

// A walker walks a tree. The guest made the tree, and may change it during the walk.
type walker struct {
	Count
	ctx    context.Context
	creds  *auth.Credentials
	vfs    *vfs.VirtualFilesystem
	linked map[uint64]bool // files with several names that were counted
	path   []string        // of the current directory
}

// deepest is the maximum depth of directories, because gVisor too visits them recursively.
const deepest = 1000

// stopAt is where counting ends. It is above every limit.
const stopAt = 1 << 50

// block is the block size of an archive.
const block = 512

func blocks(n int64) int64 { return (n + block - 1) / block * block }

// directory counts the contents of an open directory. length is the length of its path.
func (w *walker) directory(dir vfs.VirtualDentry, length int64) error {
	if len(w.path) > deepest {
		w.Bytes = stopAt + 1 // more than any limit
		return nil
	}
	f, err := w.vfs.OpenAt(w.ctx, w.creds, &vfs.PathOperation{Root: dir, Start: dir}, &vfs.OpenOptions{Flags: linux.O_RDONLY | linux.O_DIRECTORY | linux.O_NOATIME})
	if err != nil {
		return fmt.Errorf("count %s: %w", cut(strings.Join(w.path, "/")), err)
	}
	defer f.DecRef(w.ctx)
	var list []vfs.Dirent
	if err := f.IterDirents(w.ctx, vfs.IterDirentsCallbackFunc(func(d vfs.Dirent) error {
		if d.Name != "." && d.Name != ".." {
			list = append(list, d)
		}
		return nil
	})); err != nil {
		return fmt.Errorf("count %s: %w", cut(strings.Join(w.path, "/")), err)
	}
	for _, d := range list {
		if w.Bytes > stopAt || w.Bytes < 0 {
			return nil
		}
		if err := w.entry(dir, d, length+1+int64(len(d.Name))); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) entry(dir vfs.VirtualDentry, d vfs.Dirent, length int64) error {
	at := vfs.PathOperation{Root: dir, Start: dir, Path: fspath.Parse(d.Name)}
	st, err := w.vfs.StatAt(w.ctx, w.creds, &at, &vfs.StatOptions{Mask: linux.STATX_BASIC_STATS})
	if err != nil {
		return nil // removed meanwhile
	}
	w.Bytes += block
	if length > 90 { // a longer name has a header of its own
		w.Bytes += 2*block + blocks(length)
	}
	switch st.Mode & linux.S_IFMT {
	case linux.S_IFLNK:
		w.Bytes += blocks(int64(st.Size))
		w.Content += hostarch.PageSize
	case linux.S_IFREG:
		if st.Nlink > 1 {
			if w.linked[st.Ino] {
				return nil
			}
			w.linked[st.Ino] = true
		}
		size := int64(min(st.Size, stopAt+1))
		w.Bytes += blocks(size)
		w.Content += (size + hostarch.PageSize - 1) / hostarch.PageSize * hostarch.PageSize
		if size := int64(min(st.Size, 1<<63-1)); size > w.Largest {
			w.Largest, w.Name = size, cut(strings.Join(append(w.path, d.Name), "/"))
		}
	case linux.S_IFDIR:
		sub, err := w.vfs.GetDentryAt(w.ctx, w.creds, &at, &vfs.GetDentryOptions{CheckSearchable: true})
		if err != nil {
			return nil // removed or replaced meanwhile
		}
		defer sub.DecRef(w.ctx)
		w.path = append(w.path, d.Name)
		err = w.directory(sub, length)
		w.path = w.path[:len(w.path)-1]
		return err
	}
	return nil
}

// cut keeps the end of a name, which is the most useful part.
func cut(name string) string {
	name = "/" + name
	if len(name) > nameMax {
		name = "…" + name[len(name)-nameMax:]
	}
	return strings.ToValidUTF8(name, "?")
}
