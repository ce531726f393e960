package bootfiles

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of a package.
const (
	maxPackage = 1 << 30 // bytes, compressed
	maxContent = 4 << 30 // bytes, decompressed
	maxEntries = 200_000
	maxConfig  = 4 << 20 // bytes of a text file
)

var errPackage = fmt.Errorf("not a package of Debian's: %w", paddock.Invalid)

// unpackPackage copies what machines need from a kernel package into a draft, and returns
// the kernel's release.
func unpackPackage(r io.Reader, d *draft) (string, error) {
	content, err := packageContent(r)
	if err != nil {
		return "", err
	}
	u := unpacking{draft: d}
	files := tar.NewReader(io.LimitReader(content, maxContent))
	for n := 0; ; n++ {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("%w: %w", errPackage, err)
		}
		if n > maxEntries {
			return "", fmt.Errorf("more than %d files: %w", maxEntries, errPackage)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := u.file(path.Clean("/"+h.Name), files); err != nil {
			return "", fmt.Errorf("%s: %w", path.Clean("/"+h.Name), err)
		}
	}
	return u.release, u.finish()
}

// packageContent returns the files of a package as a tar archive.
func packageContent(r io.Reader) (io.Reader, error) {
	magic := make([]byte, 8)
	if _, err := io.ReadFull(r, magic); err != nil || string(magic) != "!<arch>\n" {
		return nil, errPackage
	}
	for range 16 {
		head := make([]byte, 60)
		if _, err := io.ReadFull(r, head); err != nil || string(head[58:]) != "`\n" {
			return nil, errPackage
		}
		name := strings.TrimRight(string(head[:16]), " /")
		size, err := strconv.ParseInt(strings.TrimRight(string(head[48:58]), " "), 10, 64)
		if err != nil || size < 0 || size > maxPackage {
			return nil, errPackage
		}
		kind, ok := strings.CutPrefix(name, "data.tar")
		if !ok {
			if _, err := io.CopyN(io.Discard, r, size+size&1); err != nil {
				return nil, errPackage
			}
			continue
		}
		unpack, ok := map[string]format{"": plain, ".xz": unxz, ".zst": unzstd, ".gz": ungzip}[kind]
		if !ok {
			return nil, fmt.Errorf("unknown compression (%q): %w", name, paddock.Unsupported)
		}
		content, err := unpack(io.LimitReader(r, size))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errPackage, err)
		}
		return content, nil
	}
	return nil, errPackage
}

// An unpacking takes files of a package, in any order.
type unpacking struct {
	draft   *draft
	release string
	entered bool            // the kernel is in the draft
	modules map[string]bool // releases that there are modules of
}

// file takes one, or leaves it.
func (u *unpacking) file(name string, r io.Reader) error {
	name = strings.TrimPrefix(name, "/usr")
	if release, ok := strings.CutPrefix(name, "/boot/vmlinuz-"); ok {
		return u.kernel(release, r)
	}
	if _, ok := strings.CutPrefix(name, "/boot/config-"); ok {
		return u.text("config", r)
	}
	rest, ok := strings.CutPrefix(name, "/lib/modules/")
	if !ok {
		return nil
	}
	release, rest, ok := strings.Cut(rest, "/")
	switch {
	case !ok || !validRelease(release):
		return nil
	case rest == "modules.builtin":
		return u.text(rest, r)
	case moduleName(rest) == "" || !validModule(path.Base(rest)):
		return nil
	}
	data, err := readAll(r, maxModule)
	if err != nil {
		return err
	}
	if u.modules == nil {
		u.modules = map[string]bool{}
	}
	u.modules[release] = true
	return u.draft.write(filepath.Join(modulesDir, path.Base(rest)), data)
}

// validModule tells whether a name of a file is one that kernels give.
func validModule(base string) bool {
	for _, c := range []byte(base) {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return base[0] != '.' && len(base) < 128
}

func (u *unpacking) text(name string, r io.Reader) error {
	data, err := readAll(r, maxConfig)
	if err != nil {
		return err
	}
	return u.draft.write(filepath.Join(modulesDir, name), data)
}

func (u *unpacking) kernel(release string, r io.Reader) error {
	if u.entered || !validRelease(release) {
		return fmt.Errorf("a second kernel, or one without a release: %w", errPackage)
	}
	packed, err := readAll(r, maxImage)
	if err != nil {
		return err
	}
	i, err := readImage(packed)
	if err != nil {
		return err
	}
	if i.release != release {
		return fmt.Errorf("the kernel says that it is %q: %w", i.release, errPackage)
	}
	u.entered, u.release = true, release
	return u.draft.kernel(i)
}

// finish judges what was found.
func (u *unpacking) finish() error {
	if !u.entered {
		return fmt.Errorf("there is no kernel in it (no /boot/vmlinuz-…): %w", paddock.Invalid)
	}
	if len(u.modules) > 0 && !u.modules[u.release] {
		return fmt.Errorf("its modules are of another kernel than %s: %w", u.release, paddock.Invalid)
	}
	return u.draft.thin(u.release)
}
