package bootfiles

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// metaPackage is the Debian package that depends on the newest kernel for virtual machines.
const metaPackage = "linux-image-cloud-amd64"

const howWithoutClient = "download Debian's kernel package for virtual machines (" + metaPackage + " names it), and name the file: `paddock vm setup --package FILE --sum SHA256`"

// Setup puts a kernel for machines into Data, where Find finds it: the one at Path, the one
// in Package, or Debian's. The system's package client downloads and verifies Debian's.
// Setup needs no privileges. Repeating it changes nothing if there is nothing newer.
func Setup(ctx context.Context, o Options) (Kernel, error) {
	if err := supported(); err != nil {
		return Kernel{}, err
	}
	if o.Data == "" {
		return Kernel{}, fmt.Errorf("set up a kernel: no directory to put it in: %w", paddock.Invalid)
	}
	var name string
	var err error
	switch {
	case o.Path != "" && o.Package != "":
		err = fmt.Errorf("a kernel and a package exclude each other: %w", paddock.Invalid)
	case o.Path != "":
		name, err = setUpKernel(o)
	case o.Package != "":
		name, err = setUpPackage(o)
	default:
		name, err = fetch(ctx, o)
	}
	if err == nil {
		err = choose(o.Data, name)
	}
	if err != nil {
		return Kernel{}, kinded(fmt.Errorf("set up a kernel: %w", err))
	}
	return kept(o.Data)
}

// setUpKernel copies a kernel with its modules, so that the system may remove them.
func setUpKernel(o Options) (string, error) {
	file, err := readBounded(o.Path, maxKernel)
	if err != nil {
		return "", err
	}
	d, err := newDraft(o.Data)
	if err != nil {
		return "", err
	}
	defer d.drop()
	// A compressed kernel is decompressed into the draft.
	k, err := host{modules: "/lib/modules"}.named(Options{Path: o.Path, Modules: o.Modules, Data: d.path})
	if err != nil {
		return "", err
	}
	modules, err := k.Modules()
	if err != nil {
		return "", err
	}
	if filepath.Dir(filepath.Dir(k.Path)) == d.path {
		if err := os.Rename(k.Path, filepath.Join(d.path, "vmlinux")); err != nil {
			return "", err
		}
		if err := os.Remove(filepath.Dir(k.Path)); err != nil {
			return "", err
		}
	} else if err := d.write("vmlinux", file); err != nil {
		return "", err
	}
	if k.Directory != "" {
		err = d.copyModules(k, modules)
	}
	if err != nil {
		return "", err
	}
	h := sha256.New()
	h.Write(file)
	for _, m := range modules {
		h.Write(m.Data)
	}
	name := nameOf(k.Release, [sha256.Size]byte(h.Sum(nil)))
	return name, d.publish(name)
}

// setUpPackage unpacks the package in a file.
func setUpPackage(o Options) (string, error) {
	f, err := os.Open(o.Package)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(f, maxPackage+1)); err != nil || n > maxPackage {
		return "", errors.Join(fmt.Errorf("%s: %w", o.Package, errPackage), err)
	}
	sum := [sha256.Size]byte(h.Sum(nil))
	if err := checkSum(o.Sum, sum); err != nil {
		return "", fmt.Errorf("%s: %w", o.Package, err)
	}
	if name := known(o.Data, made(sum)); name != "" {
		return name, nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	d, err := newDraft(o.Data)
	if err != nil {
		return "", err
	}
	defer d.drop()
	// Hash the unpacked bytes again, in case the file changed after the check.
	again := sha256.New()
	read := io.TeeReader(io.LimitReader(f, maxPackage), again)
	release, err := unpackPackage(bufio.NewReaderSize(read, 1<<20), d)
	if err == nil {
		_, err = io.Copy(io.Discard, read)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", o.Package, err)
	}
	if [sha256.Size]byte(again.Sum(nil)) != sum {
		return "", fmt.Errorf("%s changed while it was read: %w", o.Package, paddock.Conflict)
	}
	name := nameOf(release, made(sum))
	return name, d.publish(name)
}

// checkSum compares a hash with the required one, if there is one.
func checkSum(want string, have [sha256.Size]byte) error {
	if want == "" {
		return nil
	}
	w, err := hex.DecodeString(strings.TrimSpace(want))
	if err != nil || len(w) != len(have) {
		return fmt.Errorf("a SHA-256 has 64 hexadecimal digits, and this has not: %q: %w", want, paddock.Invalid)
	}
	if [sha256.Size]byte(w) != have {
		return fmt.Errorf("its SHA-256 is %x, not the required one: %w", have, paddock.Denied)
	}
	return nil
}

// known returns the directory made from a file with this hash, or "".
func known(data string, sum [sha256.Size]byte) string {
	all, err := filepath.Glob(filepath.Join(data, fmt.Sprintf("*-%x", sum[:4]), "vmlinux"))
	if err != nil || len(all) != 1 {
		return ""
	}
	return filepath.Base(filepath.Dir(all[0]))
}

// fetch downloads Debian's kernel with the system's package client.
func fetch(ctx context.Context, o Options) (string, error) {
	for _, program := range []string{"apt-cache", "apt-get"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", absent("there is no "+program+" here, by which Debian's kernel is fetched", howWithoutClient)
		}
	}
	var c client
	text, err := c.run(ctx, "apt-cache", "depends", "--no-recommends", "--no-suggests", metaPackage)
	if err != nil {
		return "", absent(fmt.Sprintf("the package client does not know %s: %s", metaPackage, err), "sudo apt-get update; or, where the system is not Debian: "+howWithoutClient)
	}
	name, err := dependency(text)
	if err != nil {
		return "", err
	}
	text, err = c.run(ctx, "apt-cache", "show", "--no-all-versions", name)
	if err != nil {
		return "", absent(fmt.Sprintf("the package client does not know %s: %s", name, err), "sudo apt-get update")
	}
	record, err := readRecord(text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	sum, err := hex.DecodeString(record.sum)
	if err != nil || len(sum) != sha256.Size {
		return "", fmt.Errorf("%s: the package client tells no SHA-256: %w", name, paddock.Unsupported)
	}
	if name := known(o.Data, made([sha256.Size]byte(sum))); name != "" {
		return name, nil
	}
	d, err := newDraft(o.Data)
	if err != nil {
		return "", err
	}
	defer d.drop()
	c.dir = d.path
	if _, err := c.run(ctx, "apt-get", "--quiet", "download", name+"="+record.version); err != nil {
		return "", fmt.Errorf("the package client cannot fetch %s: %w: %w", name, err, paddock.Unavailable)
	}
	files, err := filepath.Glob(filepath.Join(d.path, "*.deb"))
	if err != nil || len(files) != 1 {
		return "", fmt.Errorf("the package client downloaded %d packages instead of one: %w", len(files), paddock.Internal)
	}
	return setUpPackage(Options{Data: o.Data, Package: files[0], Sum: record.sum})
}

// fetching bounds the time of the package client.
const fetching = 30 * time.Minute

// A client runs the package client in a directory.
type client struct{ dir string }

func (c client) run(ctx context.Context, name string, args ...string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, fetching)
	defer stop()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = 5 * time.Second
	var out, fault limited
	cmd.Stdout, cmd.Stderr = &out, &fault
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fault.join(err)
	}
	return out.String(), nil
}

// dependency parses the name of the kernel's package from the output of apt-cache depends.
func dependency(text string) (string, error) {
	m := regexp.MustCompile(`(?m)^ *Depends: (linux-image-[0-9][0-9A-Za-z.+-]{0,100})$`).FindStringSubmatch(text)
	if m == nil {
		return "", absent(fmt.Sprintf("the package client does not tell which kernel %s is", metaPackage), howWithoutClient)
	}
	return m[1], nil
}

// A record is the package client's information about a package.
type record struct{ version, sum string }

// readRecord parses the output of apt-cache show.
func readRecord(text string) (record, error) {
	var r record
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\n"), ": ")
		switch {
		case key == "Version" && r.version == "":
			r.version = value
		case key == "SHA256" && r.sum == "":
			r.sum = value
		}
	}
	if !regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+:~-]{0,100}$`).MatchString(r.version) {
		return record{}, fmt.Errorf("the package client tells no version: %w", paddock.Unsupported)
	}
	return r, nil
}

// copyModules writes the needed modules, and the index of the built-in ones.
func (d *draft) copyModules(k Kernel, modules []Module) error {
	dir, err := os.OpenRoot(k.Directory)
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, name := range []string{"modules.builtin", "config"} {
		data, err := readIn(dir, name, maxConfig)
		if errors.Is(err, fs.ErrNotExist) && name == "config" {
			data, err = readBounded("/boot/config-"+k.Release, maxConfig)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = d.write(filepath.Join(modulesDir, name), data)
		}
		if err != nil {
			return err
		}
	}
	for _, m := range modules {
		if err := d.write(filepath.Join(modulesDir, m.Name+".ko"), m.Data); err != nil {
			return err
		}
	}
	return nil
}

// thin removes unneeded modules, and refuses a kernel that lacks a needed one.
func (d *draft) thin(release string) error {
	k := Kernel{Path: filepath.Join(d.path, "vmlinux"), Release: release}
	if dir := filepath.Join(d.path, modulesDir); isDir(dir) {
		k.Directory = dir
	}
	s, err := k.shelf()
	if err != nil {
		return err
	}
	for name, path := range s.files {
		if s.taken[name] {
			continue
		}
		if err := os.Remove(filepath.Join(k.Directory, path)); err != nil {
			return err
		}
	}
	return nil
}
