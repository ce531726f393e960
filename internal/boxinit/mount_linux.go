package boxinit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// build makes the file tree and enters it. It opens sources before the new root covers
// anything, and follows no link on the way to targets. So nothing that a former guest left
// in a workspace can divert them. begin gets the new root before anything is mounted on it; it may be nil.
func build(mounts []Mount, files *Files, shown *view, begin func(root *os.File) error) error {
	if err := sys.MakePrivate(); err != nil {
		return err
	}
	if err := shown.expose(); err != nil {
		return fmt.Errorf("show the size of the sandbox: %w", err)
	}
	sources, layers := make([]*os.File, len(mounts)), make([]*os.File, len(mounts))
	for i, m := range mounts {
		f, err := source(m, files, shown)
		if err != nil {
			if m.Maybe && errors.Is(err, os.ErrNotExist) {
				continue
			}
			return fmt.Errorf("mount %s: %w", m.Target, err)
		}
		sources[i] = f
		if layers[i], err = layer(m, files); err != nil {
			return fmt.Errorf("mount %s: %w", m.Target, err)
		}
	}
	root, err := enterable(sources[0])
	if err != nil {
		return err
	}
	if begin != nil {
		if err := begin(root); err != nil {
			return err
		}
	}
	for i, m := range mounts[1:] {
		if err := step(root, m, sources[i+1], layers[i+1]); err != nil {
			return fmt.Errorf("mount %s: %w", m.Target, err)
		}
	}
	if err := sys.PivotInto(root); err != nil {
		return err
	}
	for _, m := range mounts {
		if m.Kind == MountOverlay {
			if err := sys.Detach(workDir); err != nil {
				return err
			}
		}
	}
	if err := sys.LockMount("/"); err != nil {
		return err
	}
	// Close everything that building needed. The descriptors were the last access to the
	// old tree.
	for _, f := range slices.Concat(sources, layers) {
		if f != nil {
			f.Close()
		}
	}
	return root.Close()
}

// enterable attaches the new root at some directory, and opens it.
func enterable(root *os.File) (*os.File, error) {
	at, dir, err := vacant()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if err := sys.Attach(root, dir); err != nil {
		return nil, err
	}
	return sys.OpenPath(nil, at, false)
}

// vacant opens a directory of the present tree, not a link, that something can be attached to.
func vacant() (string, *os.File, error) {
	top, err := sys.OpenPath(nil, "/", false)
	if err != nil {
		return "", nil, err
	}
	defer top.Close()
	for _, at := range []string{"tmp", "mnt", "run", "var", "usr"} {
		if dir, err := sys.OpenPath(top, at, true); err == nil {
			return "/" + at, dir, nil
		}
	}
	return "", nil, fmt.Errorf("no directory to build on: %w", paddock.Unsupported)
}

// came returns the file that came along for a mount, by name.
func came(m Mount, files *Files) (*os.File, error) {
	f := files.One(m.File)
	if f == nil {
		return nil, fmt.Errorf("no file %q came along: %w", m.File, paddock.Internal)
	}
	return f, nil
}

func source(m Mount, files *Files, shown *view) (*os.File, error) {
	switch m.Kind {
	case MountTmpfs:
		opts := []sys.Option{{Key: "mode", Value: strconv.FormatUint(uint64(m.Mode), 8)}}
		if m.Size > 0 {
			opts = append(opts, sys.Option{Key: "size", Value: strconv.FormatInt(m.Size, 10)},
				sys.Option{Key: "nr_inodes", Value: strconv.FormatInt(m.Size/4096+1024, 10)})
		}
		return sys.NewMount("tmpfs", attrs(m), opts...)
	case MountProc:
		return sys.NewMount("proc", attrs(m))
	case MountPTS:
		return sys.NewMount("devpts", sys.NoSUID|sys.NoExec, sys.Option{Key: "newinstance"},
			sys.Option{Key: "ptmxmode", Value: "0666"}, sys.Option{Key: "mode", Value: "620"},
			sys.Option{Key: "max", Value: strconv.Itoa(maxTerminals)})
	case MountView:
		return shown.mounted(m.Source), nil
	case MountCopy:
		return came(m, files)
	case MountBind, MountOverlay:
		if m.Layer {
			return nil, nil
		}
		if m.File != "" {
			f, err := came(m, files)
			if err != nil {
				return nil, err
			}
			return f, setAttrs(f, m)
		}
		f, err := sys.CloneReal(m.Source)
		if err != nil {
			return nil, err
		}
		return f, setAttrs(f, m)
	}
	return nil, nil
}

func attrs(m Mount) int {
	a := sys.NoSUID
	if !m.Write {
		a |= sys.ReadOnly
	}
	if !m.Device {
		a |= sys.NoDev
	}
	if m.NoExec {
		a |= sys.NoExec
	}
	return a
}

// setAttrs sets what the mount and everything below it may be used for. It only adds
// restrictions; those of the host stay.
func setAttrs(f *os.File, m Mount) error {
	set := uint64(attrs(m))
	if m.Kind == MountOverlay {
		set |= sys.ReadOnly
	}
	return sys.SetMountAttr(f, set, true)
}

// step makes one mount below root.
func step(root *os.File, m Mount, src, layer *os.File) error {
	switch m.Kind {
	case MountDir:
		dir, err := walk(root, m.Target, m.Mode)
		if err != nil {
			return err
		}
		return dir.Close()
	case MountLink:
		dir, err := walk(root, path.Dir(m.Target), 0o755)
		if err != nil {
			return err
		}
		defer dir.Close()
		return sys.SymlinkAt(m.Source, int(dir.Fd()), path.Base(m.Target))
	case MountMask:
		return mask(root, m)
	case MountLock:
		return lock(root, m)
	case MountPrivate, MountPin:
		return private(root, m)
	case MountReplace:
		return replace(root, m, []byte(m.Source))
	case MountFile:
		if at, err := target(root, m); err != nil {
			return err
		} else if err := at.Close(); err != nil {
			return err
		}
		return replace(root, m, []byte(m.Source))
	case MountAppend, MountKeys:
		return extend(root, m)
	case MountCopy:
		return copyFile(root, m, src)
	case MountOverlay:
		return overlay(root, m, src)
	}
	if m.Kind == MountBind && m.Layer {
		var err error
		if src, err = fromLayer(root, m); err != nil {
			return err
		}
		defer src.Close()
	}
	if src == nil { // a source that may be missing
		return nil
	}
	if m.Upper != "" {
		merged, err := layered(root, m, src, layer)
		if err != nil {
			return err
		}
		defer merged.Close()
		src = merged
	}
	at, err := target(root, m)
	if err != nil {
		return err
	}
	defer at.Close()
	return sys.Attach(src, at)
}

// target opens a mount's target, and makes what is missing on the way.
func target(root *os.File, m Mount) (*os.File, error) {
	if !m.IsFile {
		return walk(root, m.Target, 0o755)
	}
	dir, err := walk(root, path.Dir(m.Target), 0o755)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, err := sys.OpenPath(dir, path.Base(m.Target), true)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return f, err
	}
	if err := sys.CreateAt(dir, path.Base(m.Target), 0o644); err != nil {
		return nil, cannotMake(m.Target, err)
	}
	return sys.OpenPath(dir, path.Base(m.Target), true)
}

// walk opens a directory below root by its names, refuses links, and makes what is missing.
func walk(root *os.File, name string, mode uint32) (*os.File, error) {
	rel := strings.Trim(name, "/")
	if rel == "" {
		return sys.OpenPath(root, ".", true)
	}
	// Mostly it exists.
	if f, err := sys.OpenPath(root, rel, true); err == nil || !errors.Is(err, os.ErrNotExist) {
		return f, refusedLink(name, err)
	}
	at, err := sys.OpenPath(root, ".", true)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(rel, "/")
	for i, part := range parts {
		m := uint32(0o755)
		if i == len(parts)-1 && mode != 0 {
			m = mode
		}
		if err := sys.MkdirAt(int(at.Fd()), part, m); err != nil && !errors.Is(err, os.ErrExist) {
			at.Close()
			return nil, cannotMake(name, err)
		}
		next, err := sys.OpenPath(at, part, true)
		at.Close()
		if err != nil {
			return nil, refusedLink(name, err)
		}
		at = next
	}
	return at, nil
}

func refusedLink(name string, err error) error {
	if errors.Is(err, syscall.ELOOP) {
		return fmt.Errorf("%s leads through a symbolic link, which a mount does not follow: %w", name, paddock.Invalid)
	}
	return err
}

func cannotMake(name string, err error) error {
	if errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("%s does not exist in the read-only tree, and cannot be made there; choose another target: %w", name, paddock.Invalid)
	}
	return fmt.Errorf("make %s: %w", name, err)
}

// emptyDir holds the files of masks.
const emptyDir = "/.empty"

// mask covers a path with something empty that nobody may read, unless it has a mode. The host has seen that the
// path exists. If it is missing or a link, making the box fails.
func mask(root *os.File, m Mount) error {
	at, err := sys.OpenPath(root, strings.Trim(m.Target, "/"), true)
	if err != nil {
		if m.Maybe && errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return refusedLink(m.Target, err)
	}
	defer at.Close()
	st, err := sys.StatAt(int(at.Fd()), "")
	if err != nil {
		return err
	}
	if st.Mode&sys.TypeMask == sys.TypeLink {
		return refusedLink(m.Target, syscall.ELOOP)
	}
	empty, err := walk(root, emptyDir, 0o755)
	if err != nil {
		return err
	}
	defer empty.Close()
	name := "file"
	switch {
	case st.Mode&sys.TypeMask == sys.TypeDir:
		name = "dir"
		err = sys.MkdirAt(int(empty.Fd()), name, 0)
	case m.Mode != 0:
		name = "readable"
		err = sys.CreateAt(empty, name, m.Mode)
	default:
		err = sys.CreateAt(empty, name, 0)
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return cover(empty, name, at, sys.ReadOnly|sys.NoExec)
}

// replace mounts a new file over the existing one.
func replace(root *os.File, m Mount, content []byte) error {
	at, err := sys.OpenPath(root, strings.Trim(m.Target, "/"), true)
	if err != nil {
		return refusedLink(m.Target, err)
	}
	defer at.Close()
	empty, err := walk(root, emptyDir, 0o755)
	if err != nil {
		return err
	}
	defer empty.Close()
	name := strings.ReplaceAll(strings.Trim(m.Target, "/"), "/", "-")
	if err := sys.WriteAt(empty, name, content, m.Mode); err != nil {
		return err
	}
	return cover(empty, name, at, sys.ReadOnly)
}

// copyFile copies a program into the tree.
func copyFile(root *os.File, m Mount, program *os.File) error {
	dir, err := walk(root, path.Dir(m.Target), 0o755)
	if err != nil {
		return err
	}
	defer dir.Close()
	data, err := io.ReadAll(io.NewSectionReader(program, 0, 1<<40))
	if err != nil {
		return err
	}
	return sys.WriteAt(dir, path.Base(m.Target), data, 0o555)
}

// private makes a directory of the root tmpfs a mount of its own, which stays writable when
// the root becomes read-only.
func private(root *os.File, m Mount) error {
	at, err := walk(root, m.Target, m.Mode)
	if err != nil {
		return err
	}
	defer at.Close()
	return cover(at, "", at, 0)
}

// cover attaches a copy of the mount at name in dir (or of dir itself) to at.
func cover(dir *os.File, name string, at *os.File, set uint64) error {
	f, err := sys.CloneTree(int(dir.Fd()), name, false)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := sys.SetMountAttr(f, set|sys.NoSUID|sys.NoDev, false); err != nil {
		return err
	}
	return sys.Attach(f, at)
}

// lock makes a path read-only, and a mount of its own, so that it can be neither renamed
// nor removed.
func lock(root *os.File, m Mount) error {
	at, err := sys.OpenPath(root, strings.Trim(m.Target, "/"), true)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return nil // the broker prevents that it is made
		}
		if m.Maybe && errors.Is(err, os.ErrPermission) {
			return nil
		}
		return refusedLink(m.Target, err)
	}
	defer at.Close()
	if st, err := sys.StatAt(int(at.Fd()), ""); err != nil || st.Mode&sys.TypeMask == sys.TypeLink {
		return errors.Join(err, refusedLink(m.Target, syscall.ELOOP))
	}
	again, err := sys.CloneTree(int(at.Fd()), "", true)
	if err != nil {
		return err
	}
	defer again.Close()
	if err := sys.SetMountAttr(again, sys.ReadOnly, true); err != nil {
		return err
	}
	return sys.Attach(again, at)
}

// workDir holds the private layer while the tree is built.
const workDir = "/.paddock"

// overlay makes a private layer, a tmpfs of the mount's size, on top of lower. The result
// is at workDir/merged until build detaches workDir.
func overlay(root *os.File, m Mount, lower *os.File) error {
	layer, err := sys.NewMount("tmpfs", sys.NoSUID|sys.NoDev, sys.Option{Key: "mode", Value: "755"},
		sys.Option{Key: "size", Value: strconv.FormatInt(m.Size, 10)})
	if err != nil {
		return err
	}
	defer layer.Close()
	if err := attachAt(root, workDir, layer); err != nil {
		return err
	}
	for _, dir := range []string{"/upper", "/work"} {
		d, err := walk(root, workDir+dir, 0o755)
		if err != nil {
			return err
		}
		d.Close()
	}
	if err := attachAt(root, workDir+"/lower", lower); err != nil {
		return err
	}
	here, err := sys.PathOf(int(root.Fd()))
	if err != nil {
		return err
	}
	merged, err := sys.NewMount("overlay", sys.NoSUID|sys.NoDev,
		sys.Option{Key: "lowerdir", Value: here + workDir + "/lower"},
		sys.Option{Key: "upperdir", Value: here + workDir + "/upper"},
		sys.Option{Key: "workdir", Value: here + workDir + "/work"},
		sys.Option{Key: "userxattr"})
	if err != nil {
		return fmt.Errorf("%w (a writable layer over a directory needs overlayfs in user namespaces, Linux 5.11)", err)
	}
	defer merged.Close()
	return attachAt(root, workDir+"/merged", merged)
}

// layer opens the directory that takes the changes of a mount, or nothing if there is none.
func layer(m Mount, files *Files) (f *os.File, err error) {
	switch {
	case m.Upper == "":
		return nil, nil
	case m.UpperFile != "":
		f = files.One(m.UpperFile)
		if f == nil {
			return nil, fmt.Errorf("no file %q came along: %w", m.UpperFile, paddock.Internal)
		}
	default:
		if f, err = sys.CloneReal(m.Upper); err != nil {
			return nil, err
		}
	}
	return f, sys.SetMountAttr(f, sys.NoSUID|sys.NoDev, true)
}

// layered makes a mount that shows lower and puts what changes into the upper of a layer. Nothing else of both is left
// in the tree.
func layered(root *os.File, m Mount, lower, layer *os.File) (*os.File, error) {
	desk, err := sys.NewMount("tmpfs", sys.NoSUID|sys.NoDev, sys.Option{Key: "mode", Value: "755"})
	if err != nil {
		return nil, err
	}
	defer desk.Close()
	if err := attachAt(root, workDir, desk); err != nil {
		return nil, err
	}
	here, err := sys.PathOf(int(root.Fd()))
	if err != nil {
		return nil, err
	}
	here += workDir
	err = errors.Join(attachAt(root, workDir+"/lower", lower), attachAt(root, workDir+"/layer", layer))
	var merged *os.File
	m.Write = true
	if err == nil {
		merged, err = sys.NewMount("overlay", attrs(m),
			sys.Option{Key: "lowerdir", Value: here + "/lower"},
			sys.Option{Key: "upperdir", Value: here + "/layer/upper"},
			sys.Option{Key: "workdir", Value: here + "/layer/work"},
			sys.Option{Key: "userxattr"})
	}
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ELOOP) {
		err = fmt.Errorf("a layer over it is not possible here: it needs overlayfs in user namespaces (Linux 5.11), no other mount below the directory, and Paddock's data directory outside of it, on a disk such as ext4: %w: %w", err, paddock.Unsupported)
	}
	if gone := sys.Detach(here); err == nil {
		err = gone
	}
	if err != nil && merged != nil {
		merged.Close()
	}
	return merged, err
}

func attachAt(root *os.File, name string, mount *os.File) error {
	at, err := walk(root, name, 0o755)
	if err != nil {
		return err
	}
	defer at.Close()
	return sys.Attach(mount, at)
}

// fromLayer returns a copy of one entry of the merged tree.
func fromLayer(root *os.File, m Mount) (*os.File, error) {
	at, err := sys.OpenPath(root, strings.Trim(workDir, "/")+"/merged/"+m.Source, true)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	f, err := sys.CloneTree(int(at.Fd()), "", true)
	if err != nil {
		return nil, err
	}
	return f, setAttrs(f, m)
}
