package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/erofs/go-erofs"
	"github.com/moby/patternmatcher"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/image/dockerfile"
	"github.com/paddock-sandbox/paddock/internal/image/store"
)

// A Driver makes the sandboxes of a build.
type Driver interface {
	paddock.Driver

	// Layer opens the private layer of a snapshot of files, an archive that the sandbox wrote.
	Layer(ctx context.Context, id paddock.SnapshotID) (*os.File, error)
}

// A Report is told how a build goes on, by one goroutine at a time.
type Report interface {
	// Step is a step that begins, or, with cached, one that need not be done.
	Step(s Step, cached bool)
	// Write is what its command writes.
	Write(p []byte) (int, error)
}

// A Step is an instruction of a Dockerfile.
type Step struct {
	Stage string `json:"stage"` // its name, or its number
	Line  int    `json:"line"`
	Text  string `json:"text"`
}

// Options of a build.
type Options struct {
	Store  *store.Store
	Tenant string
	Name   string // the reference that leads to the image
	File   *dockerfile.File
	Driver Driver
	Tier   paddock.Tier
	Limits paddock.Limits
	// Network is what commands may reach. The zero value is nothing.
	Network paddock.NetworkPolicy

	Context *os.Root // nil is no files
	Ignore  []string // patterns of files of the context that are left out

	// Base finds an image by its reference, or pulls it, and returns its digest.
	Base func(ctx context.Context, reference string) (string, error)
	// Cache returns a directory that builds keep, to be shown at a path, and gives it back. Nil has none.
	Cache func(id, target string, write bool) (paddock.Mount, func() error, error)
	// Secrets are values that a step may ask for, by their names.
	Secrets map[string][]byte

	Fresh  bool   // steps are done again
	Dir    string // of this build alone, for its secrets
	Report Report
}

// A Result is what a build made.
type Result struct {
	Image store.Image
	Steps int // that were done
	Saved int // that were not, because they were done before
}

// Bounds of a build.
const (
	maxPatterns = 2000
	maxBytes    = 32 << 30 // of all layers that it makes
	maxLog      = 64 << 20 // bytes that are reported of what commands write
	maxCaches   = 20
	stepTime    = 2 * time.Hour
)

// A builder is one build.
type builder struct {
	o       Options
	in      *store.Build
	ignored *patternmatcher.PatternMatcher
	stages  map[int]*made
	images  map[string]*made // by the reference
	result  Result
	trees   []*tree         // that are open
	caches  map[string]bool // by what a Dockerfile calls them
	bytes   int64           // that layers may still take
	log     int             // bytes that may still be reported
}

// made is what a stage has become so far, or an image that is begun with.
type made struct {
	layers  []store.Blob
	content []string // digests of what is in the layers
	base    string   // digest of the image with these layers alone, if there is one
	config  image.Config
	raw     map[string]json.RawMessage // the configuration of the image that it began with
	history []json.RawMessage
}

// Run makes the image.
func Run(ctx context.Context, o Options) (_ Result, err error) {
	if len(o.Ignore) > maxPatterns {
		return Result{}, fmt.Errorf(".dockerignore has %d patterns, the most are %d: %w", len(o.Ignore), maxPatterns, paddock.Invalid)
	}
	b := &builder{o: o, stages: map[int]*made{}, images: map[string]*made{}, caches: map[string]bool{}, bytes: maxBytes, log: maxLog}
	if b.ignored, err = matcher(o.Ignore); err != nil {
		return Result{}, fmt.Errorf(".dockerignore: %w", err)
	}
	if b.in, err = o.Store.Build(ctx, o.Tenant); err != nil {
		return Result{}, err
	}
	defer func() {
		for _, t := range b.trees {
			err = errors.Join(err, t.close())
		}
		err = errors.Join(err, b.in.Close())
	}()
	last := 0
	for _, n := range o.File.Needed() {
		last = n
		if b.stages[n], err = b.stage(ctx, n); err != nil {
			return Result{}, err
		}
	}
	m := b.stages[last]
	config, err := m.document()
	if err != nil {
		return Result{}, err
	}
	if b.result.Image, err = b.in.Image(ctx, config, m.layers, o.Name); err != nil {
		return Result{}, err
	}
	return b.result, nil
}

func matcher(patterns []string) (*patternmatcher.PatternMatcher, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	m, err := patternmatcher.New(patterns)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	return m, nil
}

// clone is what a stage that begins with another goes on from.
func (m *made) clone() *made {
	c := *m
	c.layers, c.content, c.history = m.layers[:len(m.layers):len(m.layers)], m.content[:len(m.content):len(m.content)], m.history[:len(m.history):len(m.history)]
	return &c
}

// chain stands for the files: two that are the same have the same.
func (m *made) chain() string {
	return key(append([]string{"layers"}, m.content...)...)
}

// key is the digest of some texts.
func key(texts ...string) string {
	sum := sha256.New()
	data, err := json.Marshal(texts)
	if err != nil {
		panic(err) // texts always have a JSON
	}
	_, _ = sum.Write(data) // it never fails
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// add adds a layer. One without a digest is none.
func (m *made) add(layer store.Blob) {
	if layer.Digest == "" {
		return
	}
	m.layers, m.content, m.base = append(m.layers, layer), append(m.content, layer.Digest), ""
}

// from returns an image of the store, as what a stage may begin with.
func (b *builder) from(ctx context.Context, reference string) (*made, error) {
	if m := b.images[reference]; m != nil {
		return m, nil
	}
	digest, err := b.o.Base(ctx, reference)
	if err != nil {
		return nil, err
	}
	img, err := b.in.Resolve(digest)
	if err != nil {
		return nil, err
	}
	m := &made{layers: img.Layers, base: img.Digest, config: img.Config}
	data, err := b.in.Config(img)
	if err != nil {
		return nil, err
	}
	var whole struct {
		Config  map[string]json.RawMessage `json:"config"`
		History []json.RawMessage          `json:"history"`
		RootFS  struct {
			DiffIDs []string `json:"diff_ids"`
		} `json:"rootfs"`
	}
	if err := json.Unmarshal(data, &whole); err != nil || len(whole.RootFS.DiffIDs) != len(img.Layers) {
		return nil, fmt.Errorf("image %s: its configuration does not tell its layers: %w", clip(reference), paddock.Invalid)
	}
	if on := strings.TrimSpace(string(whole.Config["OnBuild"])); on != "" && on != "null" && on != "[]" {
		return nil, fmt.Errorf("image %s: it has instructions for those that begin with it (ONBUILD), which are not carried out here: write them into the Dockerfile, and begin with what it begins with: %w", clip(reference), paddock.Unsupported)
	}
	m.raw, m.content, m.history = whole.Config, whole.RootFS.DiffIDs, whole.History
	if layersOf(m.history) != len(m.layers) { // it tells of others, or of none
		m.history = nil
		for range m.layers {
			m.did("FROM "+reference, false)
		}
	}
	b.images[reference] = m
	return m, nil
}

// tree makes the files of layers readable. The image with them is held as long as the tree is open.
func (b *builder) tree(ctx context.Context, m *made) (*tree, error) {
	if len(m.layers) == 0 {
		return &tree{added: map[string]node{}, close: func() error { return nil }}, nil
	}
	const tries = 3
	for n := 1; ; n++ {
		digest, err := b.imageOf(ctx, m)
		if err != nil {
			return nil, err
		}
		form, hold, err := b.o.Store.Tree(b.o.Store.As(ctx, b.o.Tenant), digest, image.FormEROFS)
		if errors.Is(err, paddock.NotFound) && n < tries {
			continue // somebody removed it meanwhile
		}
		if err != nil {
			return nil, err
		}
		t, err := openTree(form.Path, hold)
		if err == nil {
			b.trees = append(b.trees, t)
		}
		return t, err
	}
}

func openTree(name string, hold *os.File) (*tree, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("images: %w: %w", err, paddock.Internal), hold.Close())
	}
	system, err := erofs.Open(f)
	if err == nil {
		if base, ok := system.(files); ok {
			return &tree{base: base, added: map[string]node{}, close: func() error { return errors.Join(f.Close(), hold.Close()) }}, nil
		}
		err = paddock.Internal
	}
	return nil, errors.Join(fmt.Errorf("images: %w: %w", err, paddock.Internal), f.Close(), hold.Close())
}

// layer puts what write writes into the store.
func (b *builder) layer(ctx context.Context, write func(io.Writer) error) (store.Blob, error) {
	layer, err := b.in.Layer(ctx, b.bytes, write)
	b.bytes -= layer.Size
	return layer, err
}

// release closes a tree that is not needed any more.
func (b *builder) release(t *tree) error {
	for i, open := range b.trees {
		if open == t {
			b.trees = append(b.trees[:i], b.trees[i+1:]...)
			return t.close()
		}
	}
	return nil
}

// imageOf returns the digest of an image that has these layers and no configuration of its own.
func (b *builder) imageOf(ctx context.Context, m *made) (string, error) {
	if m.base != "" && b.in.There(m.base) {
		return m.base, nil
	}
	config, err := json.Marshal(document{Architecture: runtime.GOARCH, OS: "linux", RootFS: rootFS{"layers", m.content}})
	if err != nil {
		return "", fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	if m.base, err = b.in.Inner(ctx, config, m.layers); err != nil {
		return "", err
	}
	return m.base, nil
}

// title names a stage for people.
func title(f *dockerfile.File, n int) string {
	if name := f.Stages[n].Name; name != "" {
		return name
	}
	return fmt.Sprint(n)
}

// short is an instruction in one line.
func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 200 {
		return text[:200] + "…"
	}
	return text
}
