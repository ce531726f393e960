package build

import (
	"archive/tar"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/dockerfile"
	"github.com/paddock-sandbox/paddock/internal/image/store"
)

// A stage is one while it is made.
type stage struct {
	b    *builder
	n    int
	made *made

	tree *tree // of the files so far; nil is not opened yet
}

// stage makes a stage.
func (b *builder) stage(ctx context.Context, n int) (*made, error) {
	info := b.o.File.Stages[n]
	s := &stage{b: b, n: n}
	switch {
	case info.Base == "":
		s.made = b.stages[info.Stage].clone()
	case strings.EqualFold(info.Base, dockerfile.Scratch):
		s.made = &made{}
	default:
		from, err := b.from(ctx, info.Base)
		if err != nil {
			return nil, fmt.Errorf("line %d: FROM %s: %w", info.Line, clip(info.Base), err)
		}
		s.made = from.clone()
	}
	state := b.o.File.Begin(n, s.made.config)
	for {
		step, err := state.Step()
		if err != nil {
			return nil, err
		}
		if step == nil {
			return s.made, s.close()
		}
		if err := s.step(ctx, step); err != nil {
			var failed *StepError
			if !errors.As(err, &failed) {
				err = fmt.Errorf("line %d: %s: %w", step.Line, short(step.Text), err)
			}
			return nil, errors.Join(err, s.close())
		}
		s.made.config = state.Config
	}
}

func (s *stage) close() error {
	if s.tree == nil {
		return nil
	}
	t := s.tree
	s.tree = nil
	return s.b.release(t)
}

// files returns the tree of the files so far.
func (s *stage) files(ctx context.Context) (*tree, error) {
	if s.tree != nil {
		return s.tree, nil
	}
	var err error
	s.tree, err = s.b.tree(ctx, s.made)
	return s.tree, err
}

// settled is files with everything that was added in the file system itself, so that it can be read.
func (s *stage) settled(ctx context.Context) (*tree, error) {
	t, err := s.files(ctx)
	if err != nil || len(t.added) == 0 {
		return t, err
	}
	if err := s.close(); err != nil {
		return nil, err
	}
	return s.files(ctx)
}

func (s *stage) step(ctx context.Context, step *dockerfile.Step) error {
	told := Step{title(s.b.o.File, s.n), step.Line, short(step.Text)}
	var err error
	layers := len(s.made.layers)
	switch {
	case step.Run != nil:
		err = s.run(ctx, step, told)
	case step.Copy != nil:
		err = s.copy(ctx, step.Copy, told)
	case step.Dir != "":
		s.b.tell(told, false)
		err = s.directory(ctx, step)
	default:
		s.b.tell(told, false)
	}
	if err != nil {
		return err
	}
	s.made.did(step.Text, len(s.made.layers) == layers)
	return nil
}

func (b *builder) tell(s Step, cached bool) {
	if cached {
		b.result.Saved++
	} else {
		b.result.Steps++
	}
	b.o.Report.Step(s, cached)
}

// numbersOf finds the user and the group of a text USER, USER:GROUP or "" for root.
func (s *stage) numbersOf(ctx context.Context, text string) (own [2]int, err error) {
	user, group, both := strings.Cut(text, ":")
	if user == "" && group == "" {
		return own, nil
	}
	if both && (user == "" || group == "") {
		return own, fmt.Errorf("%q is no USER or USER:GROUP: %w", clip(text), paddock.Invalid)
	}
	var t *tree
	find := func(file, name string) (first, second string, err error) {
		if t == nil {
			if t, err = s.settled(ctx); err != nil {
				return "", "", err
			}
		}
		return t.account(file, name)
	}
	numbers := [2]string{user, user}
	if _, err := strconv.Atoi(user); err != nil {
		if numbers[0], numbers[1], err = find("etc/passwd", user); err != nil {
			return own, err
		}
	}
	if both {
		numbers[1] = group
		if _, err := strconv.Atoi(group); err != nil {
			if numbers[1], _, err = find("etc/group", group); err != nil {
				return own, err
			}
		}
	}
	for i, n := range numbers {
		if own[i], err = strconv.Atoi(n); err != nil || own[i] < 0 || int64(own[i]) >= 1<<32-1 {
			return own, fmt.Errorf("%q: a user and a group are numbers of 0 to %d: %w", clip(text), uint32(1<<32-2), paddock.Invalid)
		}
	}
	return own, nil
}

// layer writes a layer by an instruction that copies, and adds it. It is the one of a build before, if nothing but times
// of files is different. The key has what the instruction asks for.
func (s *stage) layer(ctx context.Context, key string, told *Step, do func(w *writer) error) error {
	t, err := s.files(ctx)
	if err != nil {
		return err
	}
	var w *writer
	layer, err := s.b.layer(ctx, func(to io.Writer) error {
		w = newWriter(ctx, to, t, s.b.disk())
		if err := do(w); err != nil {
			return err
		}
		return w.w.Close()
	})
	if err != nil {
		return err
	}
	if w.count == 0 {
		layer = store.Blob{}
	}
	sum := keyOf(key, s.made.chain(), hex.EncodeToString(w.sum.Sum(nil)))
	was, cached := s.b.in.Cached(sum)
	cached = cached && !s.b.o.Fresh
	if cached {
		layer = was
	} else if err := s.b.in.Keep(sum, layer); err != nil {
		return err
	}
	if told != nil {
		s.b.tell(*told, cached)
	}
	s.made.add(layer)
	return nil
}

// keyOf is [key] of a step.
func keyOf(texts ...string) string { return key(append([]string{"step 1"}, texts...)...) }

// disk is what all files of one step may have.
func (b *builder) disk() int64 {
	if b.o.Limits.Disk > 0 {
		return b.o.Limits.Disk
	}
	return maxBytes
}

// directory makes the directory of WORKDIR, which belongs to the user of the stage.
func (s *stage) directory(ctx context.Context, step *dockerfile.Step) error {
	t, err := s.files(ctx)
	if err != nil {
		return err
	}
	_, there, n, err := t.resolve(step.Dir, true)
	switch {
	case err != nil:
		return err
	case there && n.isDir():
		return nil
	case there:
		return fmt.Errorf("%s is no directory in the image: %w", clip(step.Dir), paddock.Conflict)
	}
	own, err := s.numbersOf(ctx, s.made.config.User)
	if err != nil {
		return err
	}
	return s.layer(ctx, "WORKDIR", nil, func(w *writer) error {
		_, err := w.makeAll(step.Dir, file{kind: tar.TypeDir, mode: 0o755, uid: own[0], gid: own[1], when: time.Unix(0, 0)})
		return err
	})
}

// copy carries out COPY and ADD.
func (s *stage) copy(ctx context.Context, step *dockerfile.Copy, told Step) error {
	if step.Digest != "" {
		return fmt.Errorf("--checksum is of downloads, and there are none: %w", paddock.Unsupported)
	}
	c := &copier{step: step}
	var err error
	if c.excluded, err = matcher(step.Exclude); err != nil {
		return fmt.Errorf("--exclude: %w", err)
	}
	var owner *[2]int
	if step.Owner != "" {
		own, err := s.numbersOf(ctx, step.Owner)
		if err != nil {
			return fmt.Errorf("--chown: %w", err)
		}
		owner = &own
	}
	var mode *int64
	if step.Mode != "" {
		n, err := strconv.ParseInt(step.Mode, 8, 32)
		if err != nil || n < 0 || n > 0o7777 {
			return fmt.Errorf("--chmod=%s: write it in octal, such as 755: %w", clip(step.Mode), paddock.Unsupported)
		}
		mode = &n
	}
	if err := s.source(ctx, c); err != nil {
		return err
	}
	asked, err := json.Marshal(step)
	if err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	return s.layer(ctx, "COPY "+string(asked), &told, func(w *writer) error {
		w.owner, w.mode, c.w = owner, mode, w
		return c.run()
	})
}

// source opens what COPY copies from.
func (s *stage) source(ctx context.Context, c *copier) error {
	from := c.step.From
	if !from.IsStage && from.Image == "" {
		c.what = "the context"
		c.from = nothing{}
		if s.b.o.Context != nil {
			c.from = contextFiles{s.b.o.Context}
		}
		c.ignored = s.b.ignored
		return nil
	}
	c.own, c.step.Unpack = true, false
	m := s.b.stages[from.Stage]
	if c.what = "stage " + title(s.b.o.File, from.Stage); !from.IsStage {
		c.what = "image " + clip(from.Image)
		var err error
		if m, err = s.b.from(ctx, from.Image); err != nil {
			return fmt.Errorf("--from=%s: %w", clip(from.Image), err)
		}
	}
	t, err := s.b.tree(ctx, m)
	if err != nil {
		return err
	}
	if c.from = t.base; t.base == nil {
		c.from = nothing{}
	}
	return nil
}
