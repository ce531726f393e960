package box

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/guest/nameserver"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
)

// network configures the box's system for the gateway: name lookups go to the gateway, and
// its certificates for decrypted TLS are trusted.
func (l *Layout) network(spec *paddock.Spec, g *gatewayclient.Gateway) error {
	t, err := treeOf(spec.Root)
	if err != nil {
		return err
	}
	defer t.close()
	if g == nil {
		if l.Config.HostNet {
			return nil
		}
		// The agent answers that no name exists, if programs ask it. A tree that says nothing about name
		// servers stays as it is.
		if at, there := t.find(resolvConf); !there && !inOwnDir(at) {
			return nil
		}
		return l.names(t, nameserver.Address)
	}
	l.Config.Link = true
	if err := l.names(t, boxinit.Resolver4); err != nil {
		return err
	}
	variables := map[string]string{}
	if cert := g.Certificate(); len(cert) > 0 {
		l.trust(t, string(cert), variables)
	}
	placeholders, err := g.Environment()
	if err != nil {
		return err
	}
	maps.Copy(variables, placeholders)
	for name, value := range variables {
		if _, own := spec.Env[name]; !own {
			l.Config.Env[name] = value
		}
	}
	return nil
}

// Files that configure name lookups in the system's libraries.
const (
	resolvConf = "/etc/resolv.conf"
	switchConf = "/etc/nsswitch.conf"
	hostsFile  = "/etc/hosts"
)

// names makes the system's libraries query only this name server.
func (l *Layout) names(t tree, server string) error {
	at, there := t.find(resolvConf)
	if !there && !l.makeable(t, at) {
		return fmt.Errorf("%s leads to %s, which is not there and cannot be made in a tree that is read-only; make it, empty: %w", resolvConf, at, paddock.Unsupported)
	}
	l.Add(boxinit.Mount{Kind: boxinit.MountFile, Target: at, Source: "nameserver " + server + "\noptions timeout:2 attempts:2\n", Mode: 0o644, IsFile: true})
	if at, there := t.find(hostsFile); there {
		l.Add(boxinit.Mount{Kind: boxinit.MountReplace, Target: at, Mode: 0o644, IsFile: true,
			Source: "127.0.0.1 localhost " + l.Config.Hostname + "\n::1 localhost ip6-localhost ip6-loopback\n"})
	}
	if at, there := t.find(switchConf); there {
		text, err := t.read(at)
		if err != nil {
			return fmt.Errorf("%s: %w", switchConf, err)
		}
		l.Add(boxinit.Mount{Kind: boxinit.MountReplace, Target: at, Source: withoutDaemons(text), Mode: 0o644, IsFile: true})
	}
	return nil
}

// withoutDaemons limits host lookups to files and DNS, because other services of the system
// do not run in a box.
func withoutDaemons(conf string) string {
	var b strings.Builder
	for line := range strings.Lines(conf) {
		if database, _, _ := strings.Cut(strings.TrimSpace(line), ":"); strings.TrimSpace(database) == "hosts" {
			line = "hosts: files dns\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// makeable reports whether a missing file can be made.
func (l *Layout) makeable(t tree, at string) bool {
	return inOwnDir(at) || t.own && (l.overlay || t.image != nil) // the layer is above it
}

// inOwnDir reports whether a path is in a directory of the box's own.
func inOwnDir(path string) bool {
	return slices.ContainsFunc(hostroot.PrivateDirs(), func(dir string) bool { return hostroot.Within(path, dir) })
}

// authorityFile is the file in the box with only the gateway's authority.
const authorityFile = "/.trust/ca.pem"

// trust makes the box trust a certificate in addition to those of its system.
func (l *Layout) trust(t tree, cert string, variables map[string]string) {
	l.Add(boxinit.Mount{Kind: boxinit.MountFile, Target: authorityFile, Source: cert, Mode: 0o644, IsFile: true})
	bundle := ""
	var done []string
	for _, name := range hostroot.Bundles() {
		at, there := t.find(name)
		if !there || slices.Contains(done, at) {
			continue
		}
		done = append(done, at)
		l.Add(boxinit.Mount{Kind: boxinit.MountAppend, Target: at, Source: cert, Mode: 0o644, IsFile: true})
		if bundle == "" {
			bundle = at
		}
	}
	if bundle == "" {
		bundle = authorityFile
	}
	for _, at := range t.keystores(l.env["JAVA_HOME"]) {
		l.Add(boxinit.Mount{Kind: boxinit.MountKeys, Target: at, Source: bundle, Mode: 0o644, IsFile: true})
	}
	// The caller's own files of certificates also hold what the caller's network needs.
	place := func(name, otherwise string) {
		at, ok := l.adopted[name]
		if !ok {
			variables[name] = otherwise
			return
		}
		variables[name] = at
		if !slices.Contains(done, at) {
			done = append(done, at)
			l.Add(boxinit.Mount{Kind: boxinit.MountAppend, Target: at, Source: cert, Mode: 0o644, IsFile: true})
		}
	}
	for _, name := range hostroot.BundleVariables() {
		place(name, bundle)
	}
	for _, name := range hostroot.AuthorityVariables() {
		place(name, authorityFile)
	}
}

// A tree is the file tree on the host with which a box begins.
type tree struct {
	base  string
	own   bool // of the caller, below a private layer
	image *imageFile
}

// treeOf opens the tree of a root. The caller closes it.
func treeOf(root paddock.Root) (tree, error) {
	dir, ok := ownTree(root)
	if !ok {
		return tree{base: "/"}, nil
	}
	if !inFile(root) {
		return tree{base: dir, own: true}, nil
	}
	i, err := openImageFile(dir)
	return tree{base: dir, own: true, image: i}, err
}

func (t tree) close() {
	if t.image != nil {
		_ = t.image.file.Close() // it was only read
	}
}

// lstat, readlink and open take a real place or the name of a link at one.
func (t tree) lstat(at string) (fs.FileInfo, error) {
	if t.image != nil {
		return t.image.lstat(at)
	}
	return os.Lstat(filepath.Join(t.base, at))
}

func (t tree) readlink(at string) (string, error) {
	if t.image != nil {
		return t.image.fs.ReadLink(entryName(at))
	}
	return os.Readlink(filepath.Join(t.base, at))
}

func (t tree) open(at string) (fs.File, error) {
	if t.image != nil {
		return t.image.fs.Open(entryName(at))
	}
	return os.Open(filepath.Join(t.base, at))
}

// Bounds of how a name is followed: links, and all parts of names on the way.
const (
	linksMax = 40
	partsMax = 1024
)

// find returns the real place of a name in the tree, where links refer to the tree's own
// files. It reports whether there is a regular file that the box can see.
func (t tree) find(name string) (real string, there bool) {
	left := strings.Split(strings.Trim(name, "/"), "/")
	real = "/"
	for links, parts := 0, 0; len(left) > 0; parts++ {
		if parts > partsMax {
			return name, false
		}
		part := left[0]
		left = left[1:]
		next := path.Join(real, part) // handles .. and .
		st, err := t.lstat(next)
		if err != nil {
			return path.Join(append([]string{next}, left...)...), false
		}
		if st.Mode()&fs.ModeSymlink == 0 {
			real = next
			continue
		}
		to, err := t.readlink(next)
		if links++; err != nil || links > linksMax {
			return name, false
		}
		if path.IsAbs(to) {
			real = "/"
		}
		left = append(strings.Split(strings.Trim(path.Clean(to), "/"), "/"), left...)
	}
	if inOwnDir(real) {
		return real, false // the box's own directory is empty
	}
	st, err := t.lstat(real)
	return real, err == nil && st.Mode().IsRegular()
}

// confMax bounds a configuration file of the system, in bytes.
const confMax = 32 << 10

// read reads a small file at a real place.
func (t tree) read(real string) (string, error) {
	f, err := t.open(real)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it is only read
	data, err := io.ReadAll(io.LimitReader(f, confMax+1))
	if err == nil && len(data) > confMax {
		err = errors.New("it is too large")
	}
	return string(data), err
}

// glob lists what matches a pattern in the tree. No link of a tree of its own leads out of it.
func (t tree) glob(pattern string) []string {
	if !t.own {
		found, _ := filepath.Glob(pattern) // it is of a list of ours, and so valid
		return found
	}
	root, err := os.OpenRoot(t.base)
	if err != nil {
		return nil // the layout reads it, and says so
	}
	defer root.Close()
	found, _ := fs.Glob(root.FS(), strings.TrimPrefix(pattern, "/"))
	return found
}

// keystores lists the keystores of the tree's Java installations. Those in the file of an image stay as they are.
func (t tree) keystores(home string) []string {
	if t.image != nil {
		return nil
	}
	names := []string{"/etc/ssl/certs/java/cacerts", "/etc/pki/java/cacerts"}
	for _, pattern := range hostroot.JavaHomes() {
		for _, dir := range t.glob(pattern) {
			names = append(names, path.Join("/", dir, "lib/security/cacerts"))
		}
	}
	if filepath.IsAbs(home) && !t.own {
		names = append(names, filepath.Join(home, "lib/security/cacerts"))
	}
	var list []string
	for _, name := range names {
		if at, there := t.find(name); there && !slices.Contains(list, at) {
			list = append(list, at)
		}
	}
	return list
}
