package supervisor

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/context"
	"gvisor.dev/gvisor/pkg/lisafs"
)

// byGofer makes the requests that a sentry may make of its gofer.
func byGofer(b *brief, g gofer) []attempt {
	client, root := g.client, g.root
	ctx := context.Background()
	dir := func(name string) (lisafs.ClientFD, string, error) {
		at := client.NewFD(root.ControlFD)
		parts := strings.Split(name, "/")
		for _, p := range parts[:len(parts)-1] {
			in, err := at.Walk(ctx, p)
			if err != nil {
				return at, "", err
			}
			at = client.NewFD(in.ControlFD)
		}
		return at, parts[len(parts)-1], nil
	}
	var list []attempt
	try := func(what, name string, f func(at lisafs.ClientFD, base string) error) {
		at, base, err := dir(name)
		if err == nil {
			err = f(at, base)
		}
		a := attempt{Name: "by the gofer: " + what + " " + name, Reached: err == nil}
		if err != nil {
			a.Detail = err.Error()
		}
		list = append(list, a)
	}
	uid, gid := lisafs.UID(os.Getuid()), lisafs.GID(os.Getgid())
	for path, content := range b.Secrets {
		try("read", strings.TrimSuffix(up, "/")+path, func(at lisafs.ClientFD, base string) error {
			in, err := at.Walk(ctx, base)
			if err != nil {
				return err
			}
			fd := client.NewFD(in.ControlFD)
			_, host, err := fd.OpenAt(ctx, unix.O_RDONLY)
			if err != nil {
				return err
			}
			buf := make([]byte, 100)
			n, err := unix.Read(host, buf)
			if err == nil && !bytes.Contains(buf[:n], []byte(content)) {
				err = errors.New("it says something else")
			}
			return err
		})
	}
	top := client.NewFD(root.ControlFD)
	if _, err := top.Walk(ctx, ".git"); err != nil {
		return list // it is not the workspace
	}
	try("make", "free-by-gofer", func(at lisafs.ClientFD, base string) error {
		_, _, _, err := at.OpenCreateAt(ctx, base, unix.O_RDWR, linux.FileMode(0o755), uid, gid)
		return err
	})
	for _, name := range append(slices.Clone(b.Keep), b.Make...) {
		try("open to write", name, func(at lisafs.ClientFD, base string) error {
			in, err := at.Walk(ctx, base)
			if err != nil {
				return err
			}
			fd := client.NewFD(in.ControlFD)
			_, host, err := fd.OpenAt(ctx, unix.O_WRONLY|unix.O_TRUNC)
			if err == nil && host >= 0 {
				_, err = unix.Write(host, []byte("planted"))
			}
			return err
		})
		try("make", name, func(at lisafs.ClientFD, base string) error {
			_, _, _, err := at.OpenCreateAt(ctx, base, unix.O_RDWR, linux.FileMode(0o755), uid, gid)
			return err
		})
		try("make a directory", name, func(at lisafs.ClientFD, base string) error {
			_, err := at.MkdirAt(ctx, base, linux.FileMode(0o755), uid, gid)
			return err
		})
		try("make a symbolic link", name, func(at lisafs.ClientFD, base string) error {
			_, err := at.SymlinkAt(ctx, base, "/etc/passwd", uid, gid)
			return err
		})
		try("remove", name, func(at lisafs.ClientFD, base string) error { return at.UnlinkAt(ctx, base, 0) })
		try("rename", name, func(at lisafs.ClientFD, base string) error {
			return at.RenameAt(ctx, base, root.ControlFD, "moved-by-gofer", 0)
		})
		try("rename a scratch file to", name, func(at lisafs.ClientFD, base string) error {
			if _, _, _, err := top.OpenCreateAt(ctx, "scratch-by-gofer", unix.O_RDWR, linux.FileMode(0o755), uid, gid); err != nil {
				return err
			}
			return top.RenameAt(ctx, "scratch-by-gofer", at.ID(), base, 0)
		})
	}
	return list
}
