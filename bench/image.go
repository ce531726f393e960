//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	containerimage "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/image/store"
	"github.com/paddock-sandbox/paddock/internal/program"
)

const (
	imageSize   = 240 << 20 // bytes of its files, as python:3.13-slim has about
	imageLayers = 12
	imagePulls  = 5
)

// measureImages measures images of a registry of its own: pulling and converting one beside crane, sandboxes that begin
// with it beside those of the host's system, and work over its files beside the host.
func measureImages(ctx context.Context, o options) (_ []row, err error) {
	top, err := os.MkdirTemp("", "paddock-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(top)
	layers, tree, err := imageFiles(ctx, top)
	if err != nil {
		return nil, err
	}
	hub := httptest.NewServer(registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, 0))))
	defer hub.Close()
	ref := strings.TrimPrefix(hub.URL, "http://") + "/bench:1"
	if err := push(ref, layers); err != nil {
		return nil, err
	}
	rows, s, digest, err := pulls(ctx, o, top, ref)
	if err != nil {
		return nil, err
	}
	more, err := imageStarts(ctx, o, top, ref)
	if err != nil {
		return nil, err
	}
	work, err := imageWork(ctx, o, top, tree, s, digest)
	return slices.Concat(rows, more, work), err
}

// imageFiles makes layers: programs with what they need, a repository of 5,000 files, and files of this machine up to
// the size of the image. It returns the repository's directory too.
func imageFiles(ctx context.Context, top string) (layers []string, tree string, err error) {
	tree = filepath.Join(top, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		return nil, "", err
	}
	files := filepath.Join(top, "files.tar")
	if err := os.WriteFile(files, archive(5000), 0o644); err != nil {
		return nil, "", err
	}
	script := `tar xf "$1" -C "$2" && cd "$2" && git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm a`
	if out, err := exec.CommandContext(ctx, "sh", "-c", script, "sh", files, tree).CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("%w\n%s", err, out)
	}
	names, err := programFiles(ctx)
	if err != nil {
		return nil, "", err
	}
	w := &layerWriter{top: top, each: imageSize / imageLayers}
	for _, link := range []string{"/bin", "/sbin", "/lib", "/lib64"} {
		if err := w.add(link, link); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, "", err
		}
	}
	for _, one := range names {
		if err := w.add(one, one); err != nil {
			return nil, "", err
		}
	}
	err = filepath.WalkDir(tree, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return w.add(name, "/tree"+strings.TrimPrefix(name, tree))
	})
	if err != nil {
		return nil, "", err
	}
	err = filepath.WalkDir("/usr/lib", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || w.size >= imageSize:
			return fs.SkipAll
		case e.Type().IsRegular():
			return w.add(name, "/more"+name)
		}
		return nil
	})
	return w.layers, tree, errors.Join(err, w.end())
}

// programFiles lists programs, their libraries and Python's modules.
func programFiles(ctx context.Context) ([]string, error) {
	programs := []string{"/usr/bin/sh", "/usr/bin/true", "/usr/bin/cat", "/usr/bin/grep", "/usr/bin/git", python3}
	seen := map[string]bool{}
	var list []string
	add := func(name string) {
		for name != "" && !seen[name] {
			seen[name] = true
			list = append(list, name)
			to, err := os.Readlink(name)
			if err != nil {
				return
			}
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(name), to)
			}
			name = to
		}
	}
	for _, p := range programs {
		add(p)
		out, err := exec.CommandContext(ctx, "ldd", p).Output()
		if err != nil {
			return nil, fmt.Errorf("ldd %s: %w", p, err)
		}
		for _, word := range strings.Fields(string(out)) {
			if real, err := filepath.EvalSymlinks(filepath.Dir(word)); err == nil && strings.HasPrefix(word, "/") {
				add(filepath.Join(real, filepath.Base(word)))
			}
		}
	}
	modules, err := filepath.Glob("/usr/lib/python3.*/encodings/*.py")
	if err != nil {
		return nil, err
	}
	more, err := filepath.Glob("/usr/lib/python3.*/*.py")
	for _, m := range append(modules, more...) {
		add(m)
	}
	return list, err
}

// A layerWriter writes compressed layers of about the same size.
type layerWriter struct {
	top    string
	each   int64
	layers []string

	size int64 // of all files
	here int64 // of those of this layer
	f    *os.File
	zip  *gzip.Writer
	tar  *tar.Writer
}

func (w *layerWriter) add(name, as string) error {
	info, err := os.Lstat(name)
	if err != nil {
		return err
	}
	link, _ := os.Readlink(name)
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	h.Name, h.Uname, h.Gname = strings.TrimPrefix(as, "/"), "", ""
	if w.tar == nil {
		layer := filepath.Join(w.top, fmt.Sprintf("layer%d.tar.gz", len(w.layers)))
		if w.f, err = os.Create(layer); err != nil {
			return err
		}
		w.layers = append(w.layers, layer)
		w.zip = gzip.NewWriter(w.f)
		w.tar = tar.NewWriter(w.zip)
	}
	if err := w.tar.WriteHeader(h); err != nil {
		return err
	}
	if info.Mode().IsRegular() {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		_, err = io.Copy(w.tar, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		w.size += info.Size()
		w.here += info.Size()
	}
	if w.here >= w.each {
		return w.end()
	}
	return nil
}

func (w *layerWriter) end() error {
	if w.tar == nil {
		return nil
	}
	err := errors.Join(w.tar.Close(), w.zip.Close(), w.f.Close())
	w.tar, w.here = nil, 0
	return err
}

// push makes an image of layers in a registry.
func push(ref string, layers []string) error {
	img := empty.Image
	for _, file := range layers {
		layer, err := tarball.LayerFromFile(file)
		if err != nil {
			return err
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			return err
		}
	}
	c, err := img.ConfigFile()
	if err != nil {
		return err
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Config = "linux", runtime.GOARCH, containerimage.Config{Env: []string{"PATH=/usr/bin:/bin"}}
	if img, err = mutate.ConfigFile(img, c); err != nil {
		return err
	}
	to, err := name.ParseReference(ref)
	if err != nil {
		return err
	}
	return remote.Write(to, img)
}

// pulls measures pulling beside crane, and converting.
func pulls(ctx context.Context, o options, top, ref string) (_ []row, s *store.Store, digest string, err error) {
	var ours, crane, forms, files samples
	for i := range imagePulls {
		s, err = store.Open(store.Options{Dir: filepath.Join(top, fmt.Sprintf("images%d", i)), Dial: func(ctx context.Context, _ bool, _, network, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}})
		if err != nil {
			return nil, nil, "", err
		}
		began := time.Now()
		img, err := s.Pull(ctx, store.Request{Reference: ref, Private: true})
		ours = append(ours, time.Since(began))
		if err != nil {
			return nil, nil, "", err
		}
		digest = img.Digest
		for form, to := range map[image.Form]*samples{image.FormEROFS: &forms, image.FormDir: &files} {
			began = time.Now()
			_, hold, err := s.Tree(ctx, digest, form)
			*to = append(*to, time.Since(began))
			if err != nil {
				return nil, nil, "", err
			}
			if err := hold.Close(); err != nil {
				return nil, nil, "", err
			}
		}
		cmd := exec.CommandContext(ctx, filepath.Join(o.peers, "crane"), "pull", ref, filepath.Join(top, "crane.tar"))
		began = time.Now()
		out, err := cmd.CombinedOutput()
		crane = append(crane, time.Since(began))
		if err != nil {
			return nil, nil, "", fmt.Errorf("crane: %w\n%s", err, out)
		}
	}
	of := fmt.Sprintf("an image of %d MB in %d layers: ", imageSize>>20, imageLayers)
	line := func(what string, s samples, beside string) row {
		return row{what: of + what, p50: ms(s.p50()), p99: ms(s.quantile(1)), ratio: beside, runs: len(s)}
	}
	return []row{
		line("pull from a registry on this machine", ours, fmt.Sprintf("`crane pull` %s: %.2f times", ms(crane.p50()), float64(crane.p50())/float64(ours.p50()))),
		line("the form for gvisor (EROFS)", forms, ""),
		line("the form for jails (directory)", files, ""),
	}, s, digest, nil
}

// imageStarts measures `paddock run --image` beside the same of the host's system.
func imageStarts(ctx context.Context, o options, top, ref string) ([]row, error) {
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + top, "PADDOCK_STATE=" + filepath.Join(top, "state"), "LANG=C.UTF-8"}
	var all []contender
	tiers := []paddock.Tier{paddock.Jail, paddock.GVisor}
	for _, t := range tiers {
		host := []string{o.paddock, "run", "--tier", string(t), "--", "true"}
		own := []string{o.paddock, "run", "--tier", string(t), "--image", ref, "--", "true"}
		for _, args := range [][]string{host, own} {
			all = append(all, contender{name: strings.Join(args, " "), args: args, env: env, uid: -1, every: 2})
		}
	}
	took, _, err := interleave(ctx, o.rounds, all)
	if err != nil {
		return nil, err
	}
	var rows []row
	for i, t := range tiers {
		host, own := took[all[2*i].name], took[all[2*i+1].name]
		rows = append(rows, row{
			what: fmt.Sprintf("`paddock run --tier %s --image … -- true`, the image is here", t), p50: ms(own.p50()), p99: ms(own.p99()), runs: len(own),
			ratio: fmt.Sprintf("without `--image` %s; %+.2f ms", ms(host.p50()), float64(own.p50()-host.p50())/float64(time.Millisecond)),
		})
	}
	return rows, nil
}

// imageWork measures work over 5,000 files of an image's root beside the host's.
func imageWork(ctx context.Context, o options, top, tree string, s *store.Store, digest string) (_ []row, err error) {
	guest, err := os.ReadFile(o.guest)
	if err != nil {
		return nil, err
	}
	kernel, err := os.ReadFile(o.kernel)
	if err != nil {
		return nil, err
	}
	d, err := gvisor.New(gvisor.Options{
		Guest: program.Embedded("guest", guest), Init: program.Embedded("gvisor", kernel), State: filepath.Join(top, "boxes"), Environ: os.Environ(), Images: s.Shelf(""),
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	sb, err := d.Create(ctx, paddock.Spec{Tier: paddock.GVisor, Root: paddock.Root{Kind: paddock.RootImage, Image: digest}, User: "root"})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sb.Remove(context.WithoutCancel(ctx))) }()
	inside := place{"gvisor", func(ctx context.Context, script string) error {
		var said bytes.Buffer
		p, err := sb.Start(ctx, paddock.Cmd{Args: []string{"/bin/sh", "-ec", script}, Env: map[string]string{"work": ""}, Output: paddock.Output{Stdout: &said, Stderr: &said}})
		if err != nil {
			return err
		}
		exit, err := p.Wait(ctx)
		if err == nil && exit.Code != 0 {
			err = fmt.Errorf("it ended with %d: %s %s", exit.Code, exit.Reason, &said)
		}
		return err
	}}
	var rows []row
	for _, j := range []task{
		{what: "`git status` over 5,000 files of an image's root", script: `cd $work/tree && git -c safe.directory=* --no-optional-locks status --short >/dev/null`},
		{what: "`grep -r` over 5,000 files of an image's root", script: `grep -rc needle $work/tree >/dev/null || true`},
	} {
		took, err := inTurns(ctx, j, []place{onHost(filepath.Dir(tree), top, top), inside})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", j.what, err)
		}
		host, own := took[0].p50(), took[1]
		rows = append(rows, row{
			what: "gvisor: " + j.what, p50: ms(own.p50()), p99: ms(own.quantile(1)), runs: len(own),
			ratio: fmt.Sprintf("host %s; gvisor/host %.2f", ms(host), float64(own.p50())/float64(host)),
		})
	}
	return rows, nil
}
