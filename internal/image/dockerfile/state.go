package dockerfile

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image"
)

// A State is a stage while it is built: the configuration that its image would have now, and its arguments.
type State struct {
	Config image.Config

	f     *File
	stage int
	next  int
	args  map[string]string // ARGs that were declared in the stage
}

// Begin starts a stage that has the configuration of what it begins with. A stage of a File is built once.
func (f *File) Begin(stage int, base image.Config) *State {
	base.Env, base.Entrypoint, base.Command = slices.Clone(base.Env), slices.Clone(base.Entrypoint), slices.Clone(base.Command)
	base.Ports, base.Volumes, base.Shell, base.Labels = slices.Clone(base.Ports), slices.Clone(base.Volumes), slices.Clone(base.Shell), maps.Clone(base.Labels)
	return &State{Config: base, f: f, stage: stage, args: map[string]string{}}
}

// A Step is what a builder does next. Exactly one of Run and Copy is set, or none if only the configuration changed.
type Step struct {
	Line int
	Text string // the instruction as it was written, for people
	Run  *Run
	Copy *Copy
	// Dir is a directory to make if it does not exist, of WORKDIR.
	Dir string
}

// A Run is a command that runs in the sandbox of the build.
type Run struct {
	Args  []string
	Env   []string // NAME=value: of the configuration, with the arguments below
	Dir   string
	User  string
	Files []Inline // that the command needs, as here-documents; Name is the number of the file descriptor or a path

	Caches  []CacheMount
	Secrets []SecretMount
	Tmpfs   []TmpfsMount
	Binds   []BindMount
	Offline bool // --network=none
}

// A CacheMount is a directory that builds of the same store keep.
type CacheMount struct {
	ID, Target string
	Private    bool // two builds that run at once have one each
	ReadOnly   bool
	UID, GID   *uint64
	Mode       *uint64
}

// A SecretMount is a file with a secret, or a variable, that no layer has.
type SecretMount struct {
	ID       string
	Target   string // a path; empty if there is a variable alone
	Env      string // the name of a variable; empty is none
	Required bool
	UID, GID *uint64
	Mode     *uint64
}

// A TmpfsMount is a directory in memory.
type TmpfsMount struct {
	Target string
	Size   int64 // bytes; zero is the limit of the sandbox
}

// A BindMount shows files of the context or a stage, read-only or with changes that are dropped.
type BindMount struct {
	From   Source
	Path   string
	Target string
	Write  bool
}

// A Source is what files are copied from. The zero Source is the context.
type Source struct {
	Stage int    // number of a stage, if IsStage
	Image string // a reference, or empty

	IsStage bool
}

// An Inline is a file that is written in the Dockerfile itself.
type Inline struct{ Name, Data string }

// A Copy puts files into the image.
type Copy struct {
	From    Source
	Paths   []string // patterns, as [path.Match] has them, relative to the source's root
	Inline  []Inline
	To      string // absolute; ends with a slash if it has to be a directory
	Owner   string // user[:group], or empty: root
	Mode    string // octal, or empty: that of the source
	Exclude []string
	Parents bool // keep the directories of the sources
	Unpack  bool // archives of the context are unpacked
	Digest  string
}

// Step returns what comes next, and nil at the end of the stage.
func (s *State) Step() (*Step, error) {
	list := s.f.Stages[s.stage].commands
	if s.next == len(list) {
		return nil, nil
	}
	c := list[s.next]
	s.next++
	step := &Step{Line: line(c.Location()), Text: text(c)}
	err := s.apply(c, step)
	if err == nil {
		err = s.bounded()
	}
	if err != nil {
		return nil, at(c.Location(), err)
	}
	return step, nil
}

// bounded refuses more variables than a command may have. Each instruction could double them.
func (s *State) bounded() error {
	n := 0
	for _, v := range s.Config.Env {
		n += len(v)
	}
	for name, value := range s.args {
		n += len(name) + len(value)
	}
	for name, value := range s.Config.Labels {
		n += len(name) + len(value)
	}
	if n > maxText {
		return fmt.Errorf("variables, arguments and labels have more than %d bytes: %w", maxText, paddock.Exhausted)
	}
	return nil
}

func text(c instructions.Command) string {
	if t, ok := c.(fmt.Stringer); ok {
		return t.String()
	}
	return strings.ToUpper(c.Name())
}

func (s *State) apply(c instructions.Command, step *Step) error {
	if err := s.expandAll(c); err != nil {
		return err
	}
	switch c := c.(type) {
	case *instructions.EnvCommand:
		for _, kv := range c.Env {
			s.Config.Env = put(s.Config.Env, kv.Key, kv.Value)
		}
	case *instructions.ArgCommand:
		return s.arg(c)
	case *instructions.LabelCommand:
		if s.Config.Labels == nil {
			s.Config.Labels = map[string]string{}
		}
		for _, kv := range c.Labels {
			s.Config.Labels[kv.Key] = kv.Value
		}
	case *instructions.WorkdirCommand:
		s.Config.Dir = s.absolute(c.Path)
		step.Dir = s.Config.Dir
	case *instructions.UserCommand:
		s.Config.User = c.User
	case *instructions.ShellCommand:
		s.Config.Shell = slices.Clone(c.Shell)
	case *instructions.EntrypointCommand:
		s.Config.Entrypoint, s.Config.Command = s.line(c.ShellDependantCmdLine), nil
	case *instructions.CmdCommand:
		s.Config.Command = s.line(c.ShellDependantCmdLine)
	case *instructions.ExposeCommand:
		return s.expose(c.Ports)
	case *instructions.VolumeCommand:
		s.Config.Volumes = union(s.Config.Volumes, c.Volumes)
	case *instructions.RunCommand:
		return s.run(c, step)
	case *instructions.CopyCommand:
		from, err := s.from(c.From)
		step.Copy = &Copy{From: from, Owner: c.Chown, Mode: c.Chmod, Exclude: c.ExcludePatterns, Parents: c.Parents}
		s.paths(step.Copy, c.SourcesAndDest)
		return err
	case *instructions.AddCommand:
		step.Copy = &Copy{Owner: c.Chown, Mode: c.Chmod, Exclude: c.ExcludePatterns, Unpack: c.Unpack == nil || *c.Unpack, Digest: c.Checksum}
		s.paths(step.Copy, c.SourcesAndDest)
		for _, p := range c.SourcePaths {
			if remote(p) { // by a variable
				return fmt.Errorf("ADD %.200s: a build downloads nothing outside of its sandbox: use RUN with curl or git, and allow its host: %w", p, paddock.Unsupported)
			}
		}
	}
	return nil
}

// expandAll puts the values of variables into an instruction that has them.
func (s *State) expandAll(c instructions.Command) error {
	env := s.variables()
	total := 0
	expand := func(word string) (string, error) {
		text, err := s.f.expand(word, env)
		if total += len(text); err == nil && total > maxText {
			err = fmt.Errorf("it becomes more than %d bytes: %w", maxText, paddock.Invalid)
		}
		return text, err
	}
	if c, ok := c.(instructions.SupportsSingleWordExpansion); ok {
		if err := c.Expand(expand); err != nil {
			var k paddock.Kind
			if errors.As(err, &k) {
				return err
			}
			return refused(err)
		}
	}
	return nil
}

// variables are those that an instruction may name: those of the configuration hide arguments.
func (s *State) variables() variables {
	all := variables{}
	maps.Copy(all, s.args)
	for _, e := range s.Config.Env {
		name, value, _ := strings.Cut(e, "=")
		all[name] = value
	}
	return all
}

// arg declares an argument, which has the caller's value, that of before the first FROM, or its own.
func (s *State) arg(c *instructions.ArgCommand) error {
	for _, a := range c.Args {
		value, ok := s.f.asked[a.Key]
		if !ok && a.Value != nil {
			value, ok = *a.Value, true
		}
		if !ok {
			value, ok = s.f.global[a.Key]
		}
		if ok {
			s.args[a.Key] = value
		}
	}
	return nil
}

// absolute is a path as the image sees it.
func (s *State) absolute(name string) string {
	if !path.IsAbs(name) {
		name = path.Join("/", s.Config.Dir, name)
	}
	return path.Clean(name)
}

// line is what a command line is started as.
func (s *State) line(c instructions.ShellDependantCmdLine) []string {
	if !c.PrependShell {
		return slices.Clone(c.CmdLine)
	}
	return append(s.shell(), c.CmdLine...)
}

func (s *State) shell() []string {
	if len(s.Config.Shell) > 0 {
		return slices.Clone(s.Config.Shell)
	}
	return []string{"/bin/sh", "-c"}
}

func (s *State) expose(ports []string) error {
	env := s.variables()
	for _, p := range ports {
		p, err := s.f.expand(p, env)
		if err != nil {
			return err
		}
		if !strings.Contains(p, "/") {
			p += "/tcp"
		}
		s.Config.Ports = union(s.Config.Ports, []string{p})
	}
	return nil
}

func (s *State) paths(c *Copy, sd instructions.SourcesAndDest) {
	for _, p := range sd.SourcePaths {
		c.Paths = append(c.Paths, strings.TrimPrefix(path.Clean("/"+p), "/"))
	}
	for _, f := range sd.SourceContents {
		c.Inline = append(c.Inline, Inline{Name: f.Path, Data: f.Data})
	}
	c.To = s.absolute(sd.DestPath)
	if strings.HasSuffix(sd.DestPath, "/") || sd.DestPath == "." || strings.HasSuffix(sd.DestPath, "/.") || len(c.Paths)+len(c.Inline) > 1 {
		c.To = strings.TrimSuffix(c.To, "/") + "/"
	}
}

// from returns what --from names: a stage before, or an image.
func (s *State) from(name string) (Source, error) {
	if name == "" {
		return Source{}, nil
	}
	if n, ok := s.f.source(s.stage, name); ok {
		return Source{IsStage: true, Stage: n}, nil
	}
	if strings.EqualFold(name, Scratch) {
		return Source{}, fmt.Errorf("--from=scratch: it has no files: %w", paddock.Invalid)
	}
	return Source{Image: name}, nil
}

func (s *State) run(c *instructions.RunCommand, step *Step) error {
	r := &Run{Args: s.line(c.ShellDependantCmdLine), Dir: s.absolute(s.Config.Dir), User: s.Config.User, Offline: instructions.GetNetwork(c) == instructions.NetworkNone}
	for _, name := range sorted(s.args) {
		r.Env = put(r.Env, name, s.args[name])
	}
	for _, e := range s.Config.Env {
		name, value, _ := strings.Cut(e, "=")
		r.Env = put(r.Env, name, value)
	}
	if err := s.files(c, r); err != nil {
		return err
	}
	step.Run = r
	for _, m := range instructions.GetMounts(c) {
		if err := s.mount(m, r); err != nil {
			return err
		}
	}
	return nil
}

// files are the here-documents of a command. One that is the whole command is a script for the shell, or a program if
// it says by which.
func (s *State) files(c *instructions.RunCommand, r *Run) error {
	if len(c.Files) == 0 {
		return nil
	}
	if len(c.Files) == 1 && c.PrependShell && len(c.CmdLine) == 1 && strings.HasPrefix(strings.TrimSpace(c.CmdLine[0]), "<<") && !strings.ContainsAny(strings.TrimSpace(c.CmdLine[0]), " \t") {
		f := c.Files[0]
		if strings.HasPrefix(f.Data, "#!") {
			r.Args, r.Files = []string{Script}, []Inline{{Name: Script, Data: f.Data}}
			return nil
		}
		r.Args = append(s.shell(), f.Data)
		return nil
	}
	// The shell reads them itself: the instruction is a command line with its documents below.
	var text strings.Builder
	text.WriteString(c.CmdLine[0])
	for _, f := range c.Files {
		text.WriteString("\n" + f.Data + f.Name)
	}
	r.Args = append(s.shell(), text.String())
	return nil
}

// Script is where a builder puts a here-document that is a program.
const Script = "/run/paddock-build-script"

func (s *State) mount(m *instructions.Mount, r *Run) error {
	target := m.Target
	if target != "" {
		target = s.absolute(target)
	}
	switch m.Type {
	case instructions.MountTypeCache:
		if m.From != "" {
			return fmt.Errorf("RUN --mount=type=cache,from=%.100s: a cache begins empty: %w", m.From, paddock.Unsupported)
		}
		id := m.CacheID
		if id == "" {
			id = target
		}
		r.Caches = append(r.Caches, CacheMount{ID: id, Target: target, Private: m.CacheSharing == instructions.MountSharingPrivate, ReadOnly: m.ReadOnly, UID: m.UID, GID: m.GID, Mode: m.Mode})
	case instructions.MountTypeSecret:
		r.Secrets = append(r.Secrets, secret(m, target))
	case instructions.MountTypeTmpfs:
		r.Tmpfs = append(r.Tmpfs, TmpfsMount{Target: target, Size: m.SizeLimit})
	case instructions.MountTypeBind:
		from, err := s.from(m.From)
		if err != nil {
			return err
		}
		r.Binds = append(r.Binds, BindMount{From: from, Path: strings.TrimPrefix(path.Clean("/"+m.Source), "/"), Target: target, Write: !m.ReadOnly})
	default:
		return fmt.Errorf("RUN --mount=type=%s: a build has no agent of keys: %w", m.Type, paddock.Unsupported)
	}
	return nil
}

func secret(m *instructions.Mount, target string) SecretMount {
	id := m.CacheID
	if id == "" {
		id = path.Base(m.Source)
	}
	if m.Source == "" && m.CacheID == "" {
		id = path.Base(target)
	}
	s := SecretMount{ID: id, Target: target, Required: m.Required, UID: m.UID, GID: m.GID, Mode: m.Mode}
	if m.Env != nil {
		s.Env = *m.Env
		if s.Env == "" {
			s.Env = id
		}
	} else if target == "" {
		s.Target = "/run/secrets/" + id
	}
	return s
}

// put sets a variable in a list.
func put(env []string, name, value string) []string {
	for i, e := range env {
		if n, _, _ := strings.Cut(e, "="); n == name {
			env[i] = name + "=" + value
			return env
		}
	}
	return append(env, name+"="+value)
}

func union(list, more []string) []string {
	for _, m := range more {
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}

func sorted(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
