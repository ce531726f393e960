package boxinit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// build makes the file tree and enters it. It opens sources before the new root covers
// anything, and follows no link on the way to targets. So nothing that a former guest left
// in a workspace can divert them.
func build(mounts []Mount, files *Files, shown *view) error {
	if err := kernel.MakePrivate(); err != nil {
		return err
	}
	if err := shown.expose(); err != nil {
		return fmt.Errorf("show the size of the sandbox: %w", err)
	}
	sources := make([]*os.File, len(mounts))
	for i, m := range mounts {
		f, err := source(m, files, shown)
		if err != nil {
			if m.Maybe && errors.Is(err, os.ErrNotExist) {
				continue
			}
			return fmt.Errorf("mount %s: %w", m.Target, err)
		}
		sources[i] = f
	}
	root, err := enterable(sources[0])
	if err != nil {
		return err
	}
	for i, m := range mounts[1:] {
		if err := step(root, m, sources[i+1]); err != nil {
			return fmt.Errorf("mount %s: %w", m.Target, err)
		}
	}
	if err := kernel.PivotInto(root); err != nil {
		return err
	}
	for _, m := range mounts {
		if m.Kind == MountOverlay {
			if err := kernel.Detach(workDir); err != nil {
				return err
			}
		}
	}
	if err := kernel.LockMount("/"); err != nil {
		return err
	}
	// Close everything that building needed. The descriptors were the last access to the
	// old tree.
	for _, f := range sources {
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
	if err := kernel.Attach(root, dir); err != nil {
		return nil, err
	}
	return kernel.OpenPath(nil, at, false)
}

// vacant opens a directory of the present tree, not a link, that something can be attached to.
func vacant() (string, *os.File, error) {
	top, err := kernel.OpenPath(nil, "/", false)
	if err != nil {
		return "", nil, err
	}
	defer top.Close()
	for _, at := range []string{"tmp", "mnt", "run", "var", "usr"} {
		if dir, err := kernel.OpenPath(top, at, true); err == nil {
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
		opts := []kernel.Option{{Key: "mode", Value: strconv.FormatUint(uint64(m.Mode), 8)}}
		if m.Size > 0 {
			opts = append(opts, kernel.Option{Key: "size", Value: strconv.FormatInt(m.Size, 10)},
				kernel.Option{Key: "nr_inodes", Value: strconv.FormatInt(m.Size/4096+1024, 10)})
		}
		return kernel.NewMount("tmpfs", attrs(m), opts...)
	case MountProc:
		return kernel.NewMount("proc", attrs(m))
	case MountPTS:
		return kernel.NewMount("devpts", kernel.NoSUID|kernel.NoExec, kernel.Option{Key: "newinstance"},
			kernel.Option{Key: "ptmxmode", Value: "0666"}, kernel.Option{Key: "mode", Value: "620"},
			kernel.Option{Key: "max", Value: strconv.Itoa(maxTerminals)})
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
		f, err := kernel.CloneReal(m.Source)
		if err != nil {
			return nil, err
		}
		return f, setAttrs(f, m)
	}
	return nil, nil
}

func attrs(m Mount) int {
	a := kernel.NoSUID
	if !m.Write {
		a |= kernel.ReadOnly
	}
	if !m.Device {
		a |= kernel.NoDev
	}
	if m.NoExec {
		a |= kernel.NoExec
	}
	return a
}

// setAttrs sets what the mount and everything below it may be used for. It only adds
// restrictions; those of the host stay.
func setAttrs(f *os.File, m Mount) error {
	set := uint64(attrs(m))
	if m.Kind == MountOverlay {
		set |= kernel.ReadOnly
	}
	return kernel.SetMountAttr(f, set, true)
}

// step makes one mount below root.
func step(root *os.File, m Mount, src *os.File) error {
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
		return kernel.SymlinkAt(m.Source, int(dir.Fd()), path.Base(m.Target))
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
	at, err := target(root, m)
	if err != nil {
		return err
	}
	defer at.Close()
	return kernel.Attach(src, at)
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
	f, err := kernel.OpenPath(dir, path.Base(m.Target), true)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return f, err
	}
	if err := kernel.CreateAt(dir, path.Base(m.Target), 0o644); err != nil {
		return nil, cannotMake(m.Target, err)
	}
	return kernel.OpenPath(dir, path.Base(m.Target), true)
}

// walk opens a directory below root by its names, refuses links, and makes what is missing.
func walk(root *os.File, name string, mode uint32) (*os.File, error) {
	rel := strings.Trim(name, "/")
	if rel == "" {
		return kernel.OpenPath(root, ".", true)
	}
	// Mostly it exists.
	if f, err := kernel.OpenPath(root, rel, true); err == nil || !errors.Is(err, os.ErrNotExist) {
		return f, refusedLink(name, err)
	}
	at, err := kernel.OpenPath(root, ".", true)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(rel, "/")
	for i, part := range parts {
		m := uint32(0o755)
		if i == len(parts)-1 && mode != 0 {
			m = mode
		}
		if err := kernel.MkdirAt(int(at.Fd()), part, m); err != nil && !errors.Is(err, os.ErrExist) {
			at.Close()
			return nil, cannotMake(name, err)
		}
		next, err := kernel.OpenPath(at, part, true)
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

// mask covers a path with something empty that nobody may read. The host has seen that the
// path exists. If it is missing or a link, making the box fails.
func mask(root *os.File, m Mount) error {
	at, err := kernel.OpenPath(root, strings.Trim(m.Target, "/"), true)
	if err != nil {
		if m.Maybe && errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return refusedLink(m.Target, err)
	}
	defer at.Close()
	st, err := kernel.StatAt(int(at.Fd()), "")
	if err != nil {
		return err
	}
	if st.Mode&kernel.TypeMask == kernel.TypeLink {
		return refusedLink(m.Target, syscall.ELOOP)
	}
	empty, err := walk(root, emptyDir, 0o755)
	if err != nil {
		return err
	}
	defer empty.Close()
	name := "file"
	if st.Mode&kernel.TypeMask == kernel.TypeDir {
		name = "dir"
		err = kernel.MkdirAt(int(empty.Fd()), name, 0)
	} else {
		err = kernel.CreateAt(empty, name, 0)
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return cover(empty, name, at, kernel.ReadOnly|kernel.NoExec)
}

// replace mounts a new file over the existing one.
func replace(root *os.File, m Mount, content []byte) error {
	at, err := kernel.OpenPath(root, strings.Trim(m.Target, "/"), true)
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
	if err := kernel.WriteAt(empty, name, content, m.Mode); err != nil {
		return err
	}
	return cover(empty, name, at, kernel.ReadOnly)
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
	return kernel.WriteAt(dir, path.Base(m.Target), data, 0o555)
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
	f, err := kernel.CloneTree(int(dir.Fd()), name, false)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := kernel.SetMountAttr(f, set|kernel.NoSUID|kernel.NoDev, false); err != nil {
		return err
	}
	return kernel.Attach(f, at)
}

// lock makes a path read-only, and a mount of its own, so that it can be neither renamed
// nor removed.
func lock(root *os.File, m Mount) error {
	at, err := kernel.OpenPath(root, strings.Trim(m.Target, "/"), true)
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
	if st, err := kernel.StatAt(int(at.Fd()), ""); err != nil || st.Mode&kernel.TypeMask == kernel.TypeLink {
		return errors.Join(err, refusedLink(m.Target, syscall.ELOOP))
	}
	again, err := kernel.CloneTree(int(at.Fd()), "", true)
	if err != nil {
		return err
	}
	defer again.Close()
	if err := kernel.SetMountAttr(again, kernel.ReadOnly, true); err != nil {
		return err
	}
	return kernel.Attach(again, at)
}

// workDir holds the private layer while the tree is built.
const workDir = "/.paddock"

// overlay makes a private layer, a tmpfs of the mount's size, on top of lower. The result
// is at workDir/merged until build detaches workDir.
func overlay(root *os.File, m Mount, lower *os.File) error {
	layer, err := kernel.NewMount("tmpfs", kernel.NoSUID|kernel.NoDev, kernel.Option{Key: "mode", Value: "755"},
		kernel.Option{Key: "size", Value: strconv.FormatInt(m.Size, 10)})
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
	here, err := kernel.PathOf(int(root.Fd()))
	if err != nil {
		return err
	}
	merged, err := kernel.NewMount("overlay", kernel.NoSUID|kernel.NoDev,
		kernel.Option{Key: "lowerdir", Value: here + workDir + "/lower"},
		kernel.Option{Key: "upperdir", Value: here + workDir + "/upper"},
		kernel.Option{Key: "workdir", Value: here + workDir + "/work"},
		kernel.Option{Key: "userxattr"})
	if err != nil {
		return fmt.Errorf("%w (a writable layer over a directory needs overlayfs in user namespaces, Linux 5.11)", err)
	}
	defer merged.Close()
	return attachAt(root, workDir+"/merged", merged)
}

func attachAt(root *os.File, name string, mount *os.File) error {
	at, err := walk(root, name, 0o755)
	if err != nil {
		return err
	}
	defer at.Close()
	return kernel.Attach(mount, at)
}

// fromLayer returns a copy of one entry of the merged tree.
func fromLayer(root *os.File, m Mount) (*os.File, error) {
	at, err := kernel.OpenPath(root, strings.Trim(workDir, "/")+"/merged/"+m.Source, true)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	f, err := kernel.CloneTree(int(at.Fd()), "", true)
	if err != nil {
		return nil, err
	}
	return f, setAttrs(f, m)
}
