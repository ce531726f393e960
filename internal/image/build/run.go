package build

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/dockerfile"
	"github.com/paddock-sandbox/paddock/internal/image/store"
)

const maxTail = 4 << 10 // bytes of what a command writes that its error has

// A StepError is the error of a command that ended badly.
type StepError struct {
	Step Step
	Why  string
	Tail string // the end of what the command wrote
}

func (e *StepError) Error() string {
	return fmt.Sprintf("line %d: %s: %s", e.Step.Line, e.Step.Text, e.Why)
}

// Unwrap returns [paddock.Invalid]: the Dockerfile is to be changed.
func (e *StepError) Unwrap() error { return paddock.Invalid }

// nothing are no files.
type nothing struct{}

func (nothing) Lstat(string) (fs.FileInfo, error)     { return nil, fs.ErrNotExist }
func (nothing) ReadLink(string) (string, error)       { return "", fs.ErrNotExist }
func (nothing) ReadDir(string) ([]fs.DirEntry, error) { return nil, fs.ErrNotExist }
func (nothing) Open(string) (fs.File, error)          { return nil, fs.ErrNotExist }

// run carries out RUN, unless a build before has.
func (s *stage) run(ctx context.Context, step *dockerfile.Step, told Step) error {
	r := step.Run
	switch {
	case len(r.Binds) > 0:
		return fmt.Errorf("RUN --mount=type=bind shows files that no layer has, which is not built here: COPY them: %w", paddock.Unsupported)
	case len(r.Tmpfs) > 0:
		return fmt.Errorf("RUN --mount=type=tmpfs is not built here: remove in the same RUN what is to be in no layer: %w", paddock.Unsupported)
	case len(s.made.layers) == 0:
		return fmt.Errorf("there are no files yet, so there is no program to run: %w", paddock.Invalid)
	}
	if err := rootsCaches(r); err != nil {
		return err
	}
	secrets, err := s.secrets(r)
	if err != nil {
		return err
	}
	asked, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	key := keyOf("RUN", s.made.chain(), string(asked))
	if layer, ok := s.b.in.Cached(key); ok && !s.b.o.Fresh {
		s.b.tell(told, true)
		s.made.add(layer)
		return s.close()
	}
	s.b.tell(told, false)
	if err := s.close(); err != nil { // what the step sees is another tree
		return err
	}
	layer, err := s.sandbox(ctx, r, told, secrets)
	if err != nil {
		return err
	}
	if err := s.b.in.Keep(key, layer); err != nil {
		return err
	}
	was := s.made.base
	s.made.add(layer)
	if layer.Digest == "" {
		return nil
	}
	return s.b.in.Drop(was)
}

// rootsCaches refuses caches of others than root. They are directories of this machine, where files keep the owner that the
// build has here.
func rootsCaches(r *dockerfile.Run) error {
	user := userOf(r)
	for _, c := range r.Caches {
		if user != "" && user != "root" || c.UID != nil && *c.UID != 0 || c.GID != nil && *c.GID != 0 {
			return fmt.Errorf("RUN --mount=type=cache: a cache belongs to root, and only root uses it: write USER root before, and USER again after: %w", paddock.Unsupported)
		}
	}
	return nil
}

// userOf is the user of a command. A group alone is no identity.
func userOf(r *dockerfile.Run) string {
	user, _, _ := strings.Cut(r.User, ":")
	if user == "0" {
		return "root"
	}
	return user
}

// A secret is shown to one command.
type secret struct {
	mount dockerfile.SecretMount
	value []byte
}

// secrets finds what a step asks for.
func (s *stage) secrets(r *dockerfile.Run) ([]secret, error) {
	var list []secret
	for _, m := range r.Secrets {
		value, ok := s.b.o.Secrets[m.ID]
		if !ok && m.Required {
			return nil, fmt.Errorf("it asks for the secret %q: give it with --secret id=%s,src=FILE or id=%s,env=VARIABLE: %w", clip(m.ID), clip(m.ID), clip(m.ID), paddock.NotFound)
		}
		if ok {
			list = append(list, secret{m, value})
		}
	}
	return list, nil
}

// sandbox runs a command in a sandbox, and returns a layer with what it changed.
func (s *stage) sandbox(ctx context.Context, r *dockerfile.Run, told Step, secrets []secret) (layer store.Blob, err error) {
	m := s.made
	digest, err := s.b.imageOf(ctx, m)
	if err != nil {
		return layer, err
	}
	spec := paddock.Spec{
		Tier: s.b.o.Tier, Ephemeral: true, Root: paddock.Root{Kind: paddock.RootImage, Image: digest}, User: "root", Dir: "/", Limits: s.b.o.Limits,
	}
	if _, err := strconv.Atoi(userOf(r)); err == nil {
		spec.User = userOf(r) // who need not be an account of the image
	}
	if !r.Offline {
		spec.Policy.Network = s.b.o.Network
	}
	env := map[string]string{}
	for _, v := range r.Env {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	done, err := s.shown(&spec, r, secrets, env)
	defer func() { err = errors.Join(err, done()) }()
	if err != nil {
		return layer, err
	}
	sb, err := s.b.o.Driver.Create(ctx, spec)
	if err != nil {
		return layer, err
	}
	late := context.WithoutCancel(ctx)
	defer func() { err = errors.Join(err, sb.Remove(late)) }()
	before, drop, err := s.b.snapshot(ctx, sb)
	defer func() { err = errors.Join(err, drop()) }()
	if err != nil {
		return layer, err
	}
	if err := writeInline(ctx, sb, r.Files); err != nil {
		return layer, err
	}
	if err := s.command(ctx, sb, r, told, env); err != nil {
		return layer, err
	}
	after, drop2, err := s.b.snapshot(ctx, sb)
	defer func() { err = errors.Join(err, drop2()) }()
	if err != nil {
		return layer, err
	}
	return s.b.changed(ctx, before, after, left(&spec, r))
}

// shown adds secrets and caches to a spec and to variables. What is returned takes them away again, and is never nil.
func (s *stage) shown(spec *paddock.Spec, r *dockerfile.Run, secrets []secret, env map[string]string) (done func() error, err error) {
	var undo []func() error
	done = func() error {
		var errs []error
		for _, f := range slices.Backward(undo) {
			errs = append(errs, f())
		}
		return errors.Join(errs...)
	}
	for i, one := range secrets {
		if one.mount.Env != "" {
			if bytes.IndexByte(one.value, 0) >= 0 {
				return done, fmt.Errorf("the secret %q has a NUL, which no variable can have: %w", clip(one.mount.ID), paddock.Invalid)
			}
			env[one.mount.Env] = string(one.value)
		}
		if one.mount.Target == "" {
			continue
		}
		name := filepath.Join(s.b.o.Dir, "secret-"+strconv.Itoa(i))
		undo = append(undo, func() error { return os.Remove(name) })
		// The directory is closed to all others; inside, the command's user reads it.
		if err := os.WriteFile(name, one.value, 0o444); err != nil {
			return done, fmt.Errorf("the secret %q: %w: %w", clip(one.mount.ID), err, paddock.Internal)
		}
		spec.Mounts = append(spec.Mounts, paddock.Mount{Source: name, Target: one.mount.Target})
	}
	for _, c := range r.Caches {
		if s.b.caches[c.ID] = true; len(s.b.caches) > maxCaches {
			return done, fmt.Errorf("there are more than %d caches: %w", maxCaches, paddock.Exhausted)
		}
		if s.b.o.Cache == nil {
			return done, fmt.Errorf("RUN --mount=type=cache: there is no place for caches here: %w", paddock.Unsupported)
		}
		mount, end, err := s.b.o.Cache(c.ID, c.Target, !c.ReadOnly)
		if err != nil {
			return done, fmt.Errorf("the cache %q: %w", clip(c.ID), err)
		}
		undo = append(undo, end)
		spec.Mounts = append(spec.Mounts, mount)
	}
	return done, nil
}

// left are names that are part of no layer: what the sandbox has of its own, and where things were shown to the command.
func left(spec *paddock.Spec, r *dockerfile.Run) func(name string) bool {
	names := map[string]bool{
		"dev": true, "proc": true, "sys": true, "etc/resolv.conf": true, "etc/hosts": true, "etc/hostname": true,
	}
	for _, m := range spec.Mounts {
		names[path.Clean(m.Target)[1:]] = true
	}
	for _, f := range r.Files {
		if path.IsAbs(f.Name) {
			names[path.Clean(f.Name)[1:]] = true
		}
	}
	return func(name string) bool { return names[name] }
}

// writeInline writes the here-documents that are programs.
func writeInline(ctx context.Context, sb paddock.Sandbox, list []dockerfile.Inline) error {
	for _, f := range list {
		if !path.IsAbs(f.Name) {
			continue
		}
		w, err := sb.FS().Create(ctx, f.Name, paddock.CreateOptions{Mode: 0o755, Parents: true})
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, f.Data)
		if err := errors.Join(err, w.Close()); err != nil {
			return err
		}
	}
	return nil
}

// command runs the command to its end.
func (s *stage) command(ctx context.Context, sb paddock.Sandbox, r *dockerfile.Run, told Step, env map[string]string) error {
	log := &log{to: s.b.o.Report, left: &s.b.log}
	cmd := paddock.Cmd{Args: r.Args, Env: maps.Clone(env), Dir: r.Dir, User: userOf(r), Timeout: stepTime, Output: paddock.Output{Stdout: log, Stderr: log}}
	if _, err := strconv.Atoi(cmd.User); err == nil {
		cmd.User = "" // the sandbox's own
	}
	proc, err := sb.Start(ctx, cmd)
	if err != nil {
		var start *paddock.StartError
		if errors.As(err, &start) {
			return &StepError{Step: told, Why: start.Error()}
		}
		return err
	}
	exit, err := proc.Wait(ctx)
	if err != nil {
		return err
	}
	if exit.Cause == paddock.Exited && exit.Code == 0 {
		return nil
	}
	why := fmt.Sprintf("it ended with status %d", exit.Code)
	if exit.Cause != paddock.Exited {
		why = fmt.Sprintf("it was ended (%s)", exit.Cause)
		if exit.Reason != "" {
			why += ": " + exit.Reason
		}
	}
	return &StepError{Step: told, Why: why, Tail: log.tail()}
}

// A log passes on what a command writes, up to the bound of the build, and keeps its end.
type log struct {
	to   io.Writer
	left *int // negative once it was said that there is more
	end  []byte
}

func (l *log) Write(p []byte) (int, error) {
	if l.end = append(l.end, p...); len(l.end) > 2*maxTail {
		l.end = append(l.end[:0], l.end[len(l.end)-maxTail:]...)
	}
	if *l.left < 0 {
		return len(p), nil
	}
	shown := p[:min(len(p), *l.left)]
	*l.left -= len(shown)
	if _, err := l.to.Write(shown); err != nil {
		return 0, err
	}
	if len(shown) < len(p) {
		*l.left = -1
		_, err := fmt.Fprintf(l.to, "\n(the rest is not shown: commands wrote more than %d MiB)\n", maxLog>>20)
		return len(p), err
	}
	return len(p), nil
}

func (l *log) tail() string { return string(l.end[max(0, len(l.end)-maxTail):]) }

// snapshot reads the private layer of a sandbox. What is returned beside closes and removes it, and is never nil.
func (b *builder) snapshot(ctx context.Context, sb paddock.Sandbox) (_ *upper, drop func() error, err error) {
	drop = func() error { return nil }
	id, err := sb.Snapshot(ctx, paddock.SnapshotOptions{})
	if err != nil {
		return nil, drop, err
	}
	drop = func() error { return b.o.Driver.RemoveSnapshot(context.WithoutCancel(ctx), id) }
	f, err := b.o.Driver.Layer(ctx, id)
	if err != nil {
		return nil, drop, err
	}
	remove := drop
	drop = func() error { return errors.Join(f.Close(), remove()) }
	st, err := f.Stat()
	if err != nil {
		return nil, drop, fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	u, err := readUpper(ctx, f, st.Size())
	return u, drop, err
}

// changed makes a layer of what is in one snapshot and was not in the other.
func (b *builder) changed(ctx context.Context, before, after *upper, skip func(string) bool) (store.Blob, error) {
	count := 0
	layer, err := b.layer(ctx, func(to io.Writer) error {
		var err error
		count, err = after.write(to, before, skip)
		return err
	})
	if err != nil || count == 0 {
		return store.Blob{}, err
	}
	return layer, nil
}
