package dockerfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of a file.
const (
	MaxText  = 1 << 20 // bytes
	maxSteps = 2000    // instructions of all stages
	maxText  = 1 << 20 // bytes of a text after expansion
)

// Scratch is the name of the base that has no files.
const Scratch = "scratch"

// A File is a Dockerfile that was read.
type File struct {
	Stages []Stage
	// Warnings tell what a builder passes over: an instruction without effect on a sandbox.
	Warnings []string

	escape rune
	global map[string]string // ARGs before the first FROM, expanded
	asked  map[string]string // from the caller
}

// A Stage is what is between two FROM instructions.
type Stage struct {
	Name  string // empty if it has none
	Base  string // a reference, or [Scratch]; empty if it begins with another stage
	Stage int    // that it begins with, where Base is empty
	Line  int

	commands []instructions.Command
}

// Steps returns the number of instructions of the stage.
func (s Stage) Steps() int { return len(s.commands) }

// Options of a build.
type Options struct {
	Args   map[string]string // --build-arg
	Target string            // name or number of the stage to build; empty is the last
}

// Parse reads a Dockerfile.
func Parse(text []byte, o Options) (_ *File, err error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("the Dockerfile has %d bytes, the most are %d: %w", len(text), MaxText, paddock.Invalid)
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, fmt.Errorf("the Dockerfile has a NUL byte: it is no text: %w", paddock.Invalid)
	}
	tree, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, refused(err)
	}
	if n := len(tree.AST.Children); n > maxSteps {
		return nil, fmt.Errorf("the Dockerfile has %d instructions, the most are %d: %w", n, maxSteps, paddock.Invalid)
	}
	stages, metas, err := instructions.Parse(tree.AST, nil)
	if err != nil {
		return nil, refused(err)
	}
	f := &File{escape: tree.EscapeToken, asked: o.Args, global: automatic()}
	for _, w := range tree.Warnings {
		f.Warnings = append(f.Warnings, w.Short)
	}
	for _, m := range metas {
		if err := f.meta(m); err != nil {
			return nil, err
		}
	}
	for i, s := range stages {
		if err := f.stage(i, s); err != nil {
			return nil, err
		}
	}
	if len(f.Stages) == 0 {
		return nil, fmt.Errorf("the Dockerfile has no FROM: it begins with FROM and a reference, or FROM scratch: %w", paddock.Invalid)
	}
	return f, f.cut(o.Target)
}

// automatic are the arguments that a Dockerfile may use without declaring a value. Builds are for this machine.
func automatic() map[string]string {
	arch := runtime.GOARCH
	return map[string]string{
		"TARGETPLATFORM": "linux/" + arch, "TARGETOS": "linux", "TARGETARCH": arch, "TARGETVARIANT": "",
		"BUILDPLATFORM": "linux/" + arch, "BUILDOS": "linux", "BUILDARCH": arch, "BUILDVARIANT": "",
	}
}

func (f *File) meta(m instructions.ArgCommand) error {
	for _, a := range m.Args {
		value, ok := f.asked[a.Key]
		if !ok && a.Value != nil {
			v, err := f.expand(*a.Value, f.global)
			if err != nil {
				return at(m.Location(), err)
			}
			value, ok = v, true
		}
		if ok {
			f.global[a.Key] = value
		}
		n := 0
		for name, value := range f.global {
			n += len(name) + len(value)
		}
		if n > maxText {
			return at(m.Location(), fmt.Errorf("arguments have more than %d bytes: %w", maxText, paddock.Exhausted))
		}
	}
	return nil
}

func (f *File) stage(i int, s instructions.Stage) error {
	base, err := f.expand(s.BaseName, f.global)
	if err != nil {
		return at(s.Location, err)
	}
	platform, err := f.expand(s.Platform, f.global)
	switch {
	case err != nil:
		return at(s.Location, err)
	case base == "":
		return at(s.Location, fmt.Errorf("FROM %s names no image: an ARG before the first FROM has no value: give one with --build-arg: %w", s.BaseName, paddock.Invalid))
	case platform != "" && platform != "linux/"+runtime.GOARCH:
		return at(s.Location, fmt.Errorf("FROM --platform=%.100s: this machine runs linux/%s alone: %w", platform, runtime.GOARCH, paddock.Unsupported))
	}
	st := Stage{Name: strings.ToLower(s.Name), Base: base, Stage: -1, Line: line(s.Location), commands: s.Commands}
	if n, ok := f.Find(base); ok {
		st.Base, st.Stage = "", n
	}
	for _, c := range s.Commands {
		if err := f.check(i, c); err != nil {
			return at(c.Location(), err)
		}
	}
	f.Stages = append(f.Stages, st)
	return nil
}

// Find returns the number of a stage before, by its name.
func (f *File) Find(name string) (int, bool) {
	for i := len(f.Stages) - 1; i >= 0; i-- {
		if n := f.Stages[i].Name; n != "" && n == strings.ToLower(name) {
			return i, true
		}
	}
	return 0, false
}

// check refuses what cannot be built, before anything is.
func (f *File) check(stage int, c instructions.Command) error {
	switch c := c.(type) {
	case *instructions.RunCommand:
		return checkRun(c)
	case *instructions.CopyCommand:
		return f.checkFrom(stage, c.From)
	case *instructions.AddCommand:
		for _, s := range c.SourcePaths {
			if remote(s) {
				return fmt.Errorf("ADD %.200s: a build downloads nothing outside of its sandbox: use RUN with curl or git, and allow its host: %w", s, paddock.Unsupported)
			}
		}
	case *instructions.OnbuildCommand:
		return fmt.Errorf("ONBUILD: images keep no instructions for others: put them into the Dockerfile that begins with this one: %w", paddock.Unsupported)
	case *instructions.HealthCheckCommand:
		f.warn(c.Location(), "HEALTHCHECK has no effect: a sandbox is ready when its ready check says so")
	case *instructions.StopSignalCommand:
		f.warn(c.Location(), "STOPSIGNAL has no effect: a sandbox ends its processes by SIGTERM and SIGKILL")
	case *instructions.MaintainerCommand:
		f.warn(c.Location(), "MAINTAINER has no effect: use LABEL")
	}
	return nil
}

func (f *File) warn(where []parser.Range, text string) {
	f.Warnings = append(f.Warnings, fmt.Sprintf("line %d: %s", line(where), text))
}

func checkRun(c *instructions.RunCommand) error {
	if n := instructions.GetNetwork(c); n == instructions.NetworkHost {
		return fmt.Errorf("RUN --network=host: a step of a build has the network of its policy: allow hosts with --allow: %w", paddock.Unsupported)
	}
	if s := instructions.GetSecurity(c); s != "" && s != instructions.SecuritySandbox {
		return fmt.Errorf("RUN --security=%s: each step runs in a sandbox: %w", s, paddock.Unsupported)
	}
	if slices.Contains(c.FlagsUsed, "device") {
		return fmt.Errorf("RUN --device: a sandbox has no devices of the host: %w", paddock.Unsupported)
	}
	return nil
}

// checkFrom refuses a stage that comes later, or none.
func (f *File) checkFrom(stage int, from string) error {
	n, err := strconv.Atoi(from)
	if err == nil && (n < 0 || n >= stage) {
		return fmt.Errorf("--from=%d: the stages before this one are 0 to %d: %w", n, stage-1, paddock.Invalid)
	}
	return nil
}

func remote(source string) bool {
	return strings.Contains(source, "://") || strings.HasPrefix(source, "git@")
}

// cut drops the stages after the wanted one.
func (f *File) cut(target string) error {
	if target == "" {
		return nil
	}
	n, ok := f.Find(target)
	if i, err := strconv.Atoi(target); err == nil && !ok && i >= 0 && i < len(f.Stages) {
		n, ok = i, true
	}
	if !ok {
		var names []string
		for i, s := range f.Stages {
			names = append(names, cmp.Or(s.Name, strconv.Itoa(i)))
		}
		return fmt.Errorf("--target %.100s: the Dockerfile has no such stage, its stages are %.1000s: %w", target, strings.Join(names, ", "), paddock.NotFound)
	}
	f.Stages = f.Stages[:n+1]
	return nil
}

// Needed returns the numbers of the stages that the last one needs, in the order in which they are to be built.
func (f *File) Needed() []int {
	need := map[int]bool{}
	var visit func(int)
	visit = func(i int) {
		if need[i] {
			return
		}
		need[i] = true
		if s := f.Stages[i]; s.Base == "" {
			visit(s.Stage)
		}
		for _, c := range f.Stages[i].commands {
			for _, from := range sourcesOf(c) {
				if n, ok := f.source(i, from); ok {
					visit(n)
				}
			}
		}
	}
	visit(len(f.Stages) - 1)
	list := make([]int, 0, len(need))
	for i := range f.Stages {
		if need[i] {
			list = append(list, i)
		}
	}
	return list
}

// sourcesOf returns what an instruction takes files from, beside the context.
func sourcesOf(c instructions.Command) []string {
	switch c := c.(type) {
	case *instructions.CopyCommand:
		if c.From != "" {
			return []string{c.From}
		}
	case *instructions.RunCommand:
		var list []string
		for _, m := range instructions.GetMounts(c) {
			if m.From != "" {
				list = append(list, m.From)
			}
		}
		return list
	}
	return nil
}

// source returns the stage that --from names, as seen by a stage.
func (f *File) source(stage int, from string) (int, bool) {
	for i := stage - 1; i >= 0; i-- {
		if n := f.Stages[i].Name; n != "" && n == strings.ToLower(from) {
			return i, true
		}
	}
	if n, err := strconv.Atoi(from); err == nil && n >= 0 && n < stage {
		return n, true
	}
	return 0, false
}

// expand puts in variables.
func (f *File) expand(word string, env map[string]string) (string, error) {
	text, _, err := shell.NewLex(f.escape).ProcessWord(word, variables(env))
	if err != nil {
		return "", refused(err)
	}
	if len(text) > maxText {
		return "", fmt.Errorf("%.50s… becomes %d bytes, the most are %d: %w", word, len(text), maxText, paddock.Invalid)
	}
	return text, nil
}

// variables are what words may name.
type variables map[string]string

func (v variables) Get(name string) (string, bool) { s, ok := v[name]; return s, ok }

func (v variables) Keys() []string {
	list := make([]string, 0, len(v))
	for k := range v {
		list = append(list, k)
	}
	return list
}

// refused is an error of BuildKit's parser, without a stack.
func refused(err error) error {
	var where *parser.LocationError
	if errors.As(err, &where) && len(where.Locations) > 0 {
		return at(where.Locations[0], fmt.Errorf("%.500s: %w", clean(err), paddock.Invalid))
	}
	return fmt.Errorf("%.500s: %w", clean(err), paddock.Invalid)
}

func clean(err error) string { return strings.TrimSpace(err.Error()) }

func at(where []parser.Range, err error) error {
	if n := line(where); n > 0 && !strings.HasPrefix(err.Error(), "line ") {
		return fmt.Errorf("line %d: %w", n, err)
	}
	return err
}

func line(where []parser.Range) int {
	if len(where) == 0 {
		return 0
	}
	return where[0].Start.Line
}
