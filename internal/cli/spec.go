package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/policy"
	"github.com/paddock-sandbox/paddock/internal/protect"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/step"
	"github.com/paddock-sandbox/paddock/internal/wrap/auto"
)

// specFlags are the flags that say what sandbox to make. run and policy
// explain share them, so that the same words are explained that would be run.
type specFlags struct {
	tier         string
	root         string
	image        string
	pull         string
	workspace    string
	read         listFlag
	write        listFlag
	env          listFlag
	memory       SizeFlag
	cpus         ProcessorsFlag
	pids         CountFlag
	disk         SizeFlag
	files        CountFlag
	io           SizeFlag
	timeout      TimeFlag
	limit        listFlag
	user         string
	sudo         bool
	policy       string
	mode         string
	srt          string
	allowMissing listFlag
	dir          string
	hostname     string
	denyRead     listFlag
	denyWrite    listFlag
	unprotect    listFlag
	allow        listFlag
	deny         listFlag
	secret       listFlag
	forward      listFlag

	// look says that nothing is run: values of secrets are not needed.
	look bool
}

func (f *specFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.tier, "tier", "auto", "`tier` of isolation: jail, gvisor, microvm, sim, or auto ("+auto.Meaning+")")
	fs.StringVar(&f.root, "root", "host", "where the file tree comes from: host (this machine's system, read-only), a `directory` that holds a whole tree (/path or dir:/path), image:REFERENCE, or snapshot:ID")
	fs.StringVar(&f.image, "image", "", "begin with the files of an OCI image, by its `reference`, such as python:3.13-slim: the same as --root image:REFERENCE")
	fs.StringVar(&f.pull, "pull", pullMissing, "`when` to ask the registry for the image: missing (if it is not here), always, or never")
	fs.StringVarP(&f.workspace, "workspace", "w", "", "`directory` to work in: writable inside at its own path, but for protected names; with --mode, the directory that the mode is about")
	fs.Var(&f.read, "read", "show a file or directory of this machine inside, read-only: `PATH[:TARGET]` (repeatable)")
	fs.Var(&f.write, "write", "the same, and changes reach this machine: `PATH[:TARGET]` (repeatable)")
	fs.VarP(&f.env, "env", "e", "set a variable, or pass on your own by its name: `NAME[=VALUE]` (repeatable)")
	fs.Var(&f.memory, "memory", "limit of memory, such as 512M or 2G")
	fs.Var(&f.cpus, "cpus", "`number` of processors' worth of time at most, such as 1.5")
	fs.Var(&f.pids, "pids", "`number` of processes and threads at most")
	fs.Var(&f.disk, "disk", "limit of the private files, such as 1G")
	fs.Var(&f.files, "files", "`number` of open files of one process at most")
	fs.Var(&f.io, "io", "limit of disk traffic per second, such as 50M, reading and writing each")
	fs.Var(&f.timeout, "timeout", "kill the command after this `time`, such as 30s or 5m")
	fs.Var(&f.limit, "limit", "one of the tier sim's own limits, such as iterations=10000000: `NAME=VALUE` (repeatable; docs/use/sim.md lists them)")
	fs.StringVarP(&f.user, "user", "u", "", "`name` or number that the command runs as inside (default: yours, or \"user\" if you are root)")
	fs.BoolVar(&f.sudo, "sudo", false, "let whatever runs inside have commands run as any user of the sandbox, root too, by sudo without a password (gvisor and microvm)")
	fs.StringVar(&f.policy, "policy", "", "take everything from a policy `file`; flags win over it")
	fs.StringVar(&f.mode, "mode", "", "start from a `mode` known from Codex: "+strings.Join(policy.Modes(), ", "))
	fs.StringVar(&f.srt, "srt-settings", "", "start from a settings `file` of Anthropic's sandbox-runtime")
	fs.Var(&f.allowMissing, "allow-missing", "go on where this `control` cannot be had (repeatable); see paddock doctor")
	fs.StringVar(&f.dir, "dir", "", "working `directory` inside (default: the workspace, or the home)")
	fs.StringVar(&f.hostname, "hostname", "", "`name` that the sandbox calls itself (default \"paddock\")")
	fs.Var(&f.denyRead, "deny-read", "`path` inside that can be neither read nor written, whatever shows it (repeatable)")
	fs.Var(&f.denyWrite, "deny-write", "`path` inside that cannot be written, whatever shows it (repeatable)")
	fs.Var(&f.allow, "allow", "let it reach a `host`, at 443 and 80 or HOST:PORT: a name, \"*.name\", an address, a range, or group:NAME (repeatable; commas between several); host:PORT is a port of this machine's loopback, as host.docker.internal:PORT inside; groups are "+strings.Join(policy.Groups(), ", "))
	fs.Var(&f.deny, "deny", "never let it reach a `host`, whatever allows it (as --allow; without a port, at any)")
	fs.Var(&f.secret, "secret", "keep a value outside and put it into requests to hosts: `NAME=env:VAR@HOST[,HOST]` or NAME=file:/path@HOST (repeatable)")
	fs.Var(&f.forward, "forward-agent", "let commands use the keys of your `agent`: ssh or gpg, or one of its keys: ssh=SHA256:…, ssh=COMMENT or gpg=KEYGRIP (repeatable); they can sign anything with them")
	fs.Var(&f.unprotect, "unprotect", "allow changes to a protected `name` such as .git/hooks (repeatable)")
}

// A plan is what the flags and files ask for.
type plan struct {
	spec paddock.Spec
	host policy.Host
	file *policy.File // nil where there is none

	workspace string // absolute path; empty where there is none

	limits budget.Limits // the tier sim's own
	ports  bool          // ports of the sandbox are to be reached
	audit  audit.Sink    // nil records nothing
	steps  *step.Journal // what a run that records steps reads; nil records nothing
	judge  gatewayclient.Judge
	login  gatewayclient.Login
	git    *gitUse      // nil is none
	hidden []string     // files and directories of the caller that this sandbox must not see
	watch  step.Watcher // of steps; may be nil

	layers   map[string]string         // of mounts whose changes are reviewed
	changing func(source, path string) // is told before something changes there
	judgedBy json.RawMessage           // who judges a run that is reviewed; for the proposal

	pull   string       // when to ask a registry for the image of the root
	images image.Source // has that image; nil if the root is another

	journal string // directory of the journal of steps; empty if there can be none
	ask     func(context.Context, gatewayclient.Question) gatewayclient.Answer
}

// plan turns flags and files into a Spec. changed tells which flags were given.
func (f *specFlags) plan(a *App, changed func(name string) bool) (*plan, error) {
	if err := f.contradiction(changed); err != nil {
		return nil, err
	}
	p := &plan{journal: a.Steps()}
	var err error
	if p.host, err = a.host(); err != nil {
		if f.needsDir() {
			return nil, err
		}
		err = nil
	}
	p.host.WithoutSecrets = f.look
	workspace := ""
	if changed("workspace") {
		if workspace, err = f.workspaceDir(p.host); err != nil {
			return nil, err
		}
		p.workspace = workspace
	}
	switch {
	case f.mode != "":
		if !slices.Contains(policy.Modes(), f.mode) {
			return nil, WithHint(fmt.Errorf("--mode %s: there is no such mode: %w", f.mode, paddock.Invalid), "modes are %s", strings.Join(policy.Modes(), ", "))
		}
		o := p.host
		if workspace != "" {
			o.Dir = workspace
			workspace = "" // the mode mounts it, as strictly as the mode says
		}
		if err := policy.Mode(&p.spec, f.mode, o); err != nil {
			return nil, fmt.Errorf("--mode %s: %w", f.mode, err)
		}
		if p.workspace == "" && p.spec.Root.Kind != paddock.RootOpen { // which shows everything in any case
			actual, err := filepath.EvalSymlinks(o.Dir)
			if err != nil {
				return nil, fmt.Errorf("working directory: %w", err)
			}
			if why := tooMuch(actual, o.Home); why != "" {
				return nil, WithHint(fmt.Errorf("--mode %s: the working directory %s %s: %w", f.mode, o.Dir, why, paddock.Denied),
					"go to a project directory, or name one with --workspace")
			}
		}
	case f.policy != "":
		p.file, err = readPolicy(f.policy)
	case f.srt != "":
		p.file, err = readSRT(f.srt, p.host)
	}
	if err != nil {
		return nil, err
	}
	if p.file != nil {
		if err := p.file.Apply(&p.spec, p.host); err != nil {
			return nil, err
		}
	}
	if err := f.override(p, workspace, changed, a); err != nil {
		return nil, err
	}
	return p, nil
}

// needsDir tells whether the caller's working directory has a meaning here:
// whether a path is relative, or a mode or settings are about it.
func (f *specFlags) needsDir() bool {
	if f.srt != "" || (f.mode != "" && f.workspace == "") {
		return true
	}
	paths := slices.Concat(f.read, f.write, f.denyRead, f.denyWrite)
	for _, text := range f.secret {
		if _, path, ok := strings.Cut(text, "=file:"); ok && !strings.HasPrefix(path, "~") {
			paths = append(paths, path)
		}
	}
	for _, p := range []string{f.workspace, f.policy, f.dir, strings.TrimPrefix(f.root, "dir:")} {
		if p != "" && p != "host" && !strings.HasPrefix(p, "snapshot:") {
			paths = append(paths, p)
		}
	}
	return slices.ContainsFunc(paths, func(p string) bool { return !filepath.IsAbs(p) })
}

// contradiction finds flags that cannot both be meant.
func (f *specFlags) contradiction(changed func(string) bool) error {
	var sources []string
	for _, name := range []string{"mode", "policy", "srt-settings"} {
		if changed(name) {
			sources = append(sources, "--"+name)
		}
	}
	if len(sources) > 1 {
		return WithHint(fmt.Errorf("%s: each is a whole policy, and they would contradict each other: %w",
			strings.Join(sources, " and "), paddock.Invalid), "choose one, and change it with the other flags")
	}
	for _, name := range []string{"workspace", "policy", "srt-settings", "mode", "root", "tier", "user", "dir", "hostname"} {
		if changed(name) && f.text(name) == "" {
			return WithHint(fmt.Errorf("--%s is empty: %w", name, paddock.Invalid), "leave the flag out for the default")
		}
	}
	for name, size := range map[string]SizeFlag{"memory": f.memory, "disk": f.disk} {
		if changed(name) && size < 1<<20 {
			return WithHint(fmt.Errorf("--%s is %s, in which nothing runs: %w", name, BytesInWords(int64(size)), paddock.Invalid),
				"a number alone is bytes: M is MiB and G is GiB, as in --%s 512M", name)
		}
	}
	return nil
}

func (f *specFlags) text(name string) string {
	return map[string]string{
		"workspace": f.workspace, "policy": f.policy, "srt-settings": f.srt, "mode": f.mode, "root": f.root,
		"tier": f.tier, "user": f.user, "dir": f.dir, "hostname": f.hostname,
	}[name]
}

// override puts the flags over what the file or mode said.
func (f *specFlags) override(p *plan, workspace string, changed func(string) bool, a *App) error {
	s := &p.spec
	var err error
	if changed("tier") {
		if s.Tier, err = parseTier(f.tier); err != nil {
			return err
		}
	}
	if changed("root") {
		if s.Root, err = parseRoot(f.root, p.host.Dir); err != nil {
			return err
		}
	}
	if err := f.imageRoot(s, changed); err != nil {
		return err
	}
	p.pull = f.pull
	if s.Root.Kind == paddock.RootImage {
		p.images = a.imagesOf()
	}
	if err := f.mounts(s, workspace, p.host); err != nil {
		return err
	}
	if err := f.environment(s, a.Lookup); err != nil {
		return err
	}
	f.limits(&s.Limits, changed)
	if p.limits, err = parseLimits(f.limit); err != nil {
		return err
	}
	if changed("user") {
		s.User = f.user
	}
	s.Sudo = f.sudo
	if changed("hostname") {
		s.Hostname = f.hostname
	}
	if changed("dir") {
		s.Dir = Absolute(f.dir, p.host.Dir)
	}
	for _, path := range f.denyRead {
		s.Policy.Files.DenyRead = append(s.Policy.Files.DenyRead, Absolute(path, p.host.Dir))
	}
	for _, path := range f.denyWrite {
		s.Policy.Files.DenyWrite = append(s.Policy.Files.DenyWrite, Absolute(path, p.host.Dir))
	}
	for _, name := range f.unprotect {
		if err := checkUnprotect(name); err != nil {
			return err
		}
	}
	s.Policy.Files.Unprotect = append(s.Policy.Files.Unprotect, f.unprotect...)
	for _, name := range f.allowMissing {
		if !slices.Contains(controls(), paddock.Control(name)) {
			return WithHint(fmt.Errorf("--allow-missing %s: there is no such control: %w", name, paddock.Invalid),
				"%scontrols are %s", meant(policy.Nearest(name, texts(controls()))), Join(controls()))
		}
		s.AllowMissing = append(s.AllowMissing, paddock.Control(name))
	}
	if err := f.keyAgents(s, a); err != nil {
		return err
	}
	return f.network(p)
}

// checkUnprotect refuses a name that is no protected one.
func checkUnprotect(name string) error {
	if protect.Builtin(name) {
		return nil
	}
	names := protect.Names()
	known := make([]string, len(names))
	for i, n := range names {
		known[i] = n.Text
	}
	return WithHint(fmt.Errorf("--unprotect %s: there is no such protected name: %w", name, paddock.Invalid), "%snames are %s", meant(policy.Nearest(name, known)), Join(known))
}

func (f *specFlags) limits(l *paddock.Limits, changed func(string) bool) {
	for name, set := range map[string]func(){
		"memory":  func() { l.Memory = int64(f.memory) },
		"cpus":    func() { l.CPUs = float64(f.cpus) },
		"pids":    func() { l.PIDs = int(f.pids) },
		"disk":    func() { l.Disk = int64(f.disk) },
		"files":   func() { l.Files = int(f.files) },
		"io":      func() { l.IO = int64(f.io) },
		"timeout": func() { l.Lifetime = time.Duration(f.timeout) },
	} {
		if changed(name) {
			set()
		}
	}
}

// mounts adds the workspace, then what --read and --write show. A flag's
// mount takes the place of the file's at the same target.
func (f *specFlags) mounts(s *paddock.Spec, workspace string, o policy.Host) error {
	var own []paddock.Mount
	if workspace != "" {
		own = append(own, paddock.Mount{Source: workspace, Write: s.Tier != paddock.Sim, Overlay: s.Tier == paddock.Sim})
		s.Dir = workspace
		if common, ok := commonDir(workspace, o.Home); ok && s.Tier != paddock.Sim {
			own = append(own, paddock.Mount{Source: common, Write: true})
		}
	}
	for _, list := range []struct {
		flag   string
		values []string
		write  bool
	}{{"read", f.read, false}, {"write", f.write, true}} {
		for _, value := range list.values {
			m, err := parseMount(value, o.Dir)
			if err != nil {
				return fmt.Errorf("--%s %s: %w", list.flag, value, err)
			}
			m.Write = list.write
			own = append(own, m)
		}
	}
	seen := map[string]paddock.Mount{}
	for _, m := range own {
		if before, twice := seen[target(m)]; twice && before != m {
			return WithHint(fmt.Errorf("two flags put different things at %s: %w", target(m), paddock.Invalid),
				"show each path once: with --read, or with --write or --workspace")
		}
		seen[target(m)] = m
	}
	kept := slices.DeleteFunc(s.Mounts, func(m paddock.Mount) bool { _, over := seen[target(m)]; return over })
	for _, m := range own {
		if !slices.Contains(kept, m) {
			kept = append(kept, m)
		}
	}
	s.Mounts = kept
	return nil
}

func target(m paddock.Mount) string {
	if m.Target == "" {
		return m.Source
	}
	return m.Target
}

// workspaceDir gives the absolute path of --workspace, and refuses the one
// directory that people hand over by mistake.
func (f *specFlags) workspaceDir(o policy.Host) (string, error) {
	dir := Absolute(f.workspace, o.Dir)
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", WithHint(fmt.Errorf("workspace %s: there is no such directory: %w", dir, paddock.NotFound), "%s",
			orTilde(f.workspace, "make it with mkdir, or check the name"))
	case err != nil:
		return "", fmt.Errorf("workspace: %w: %w", err, paddock.Denied)
	case !info.IsDir():
		return "", WithHint(fmt.Errorf("workspace %s is not a directory: %w", dir, paddock.Invalid), "a single file is shown with --read or --write")
	}
	actual, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("workspace: %w", err)
	}
	why := tooMuch(actual, o.Home)
	switch {
	case why == "":
		return dir, nil
	case actual == "/":
		return "", WithHint(fmt.Errorf("workspace / %s: %w", why, paddock.Denied), "use a project directory")
	}
	return "", WithHint(fmt.Errorf("workspace %s %s: %w", dir, why, paddock.Denied),
		"use a project directory; if you do mean it: --write %s --dir %s", actual, actual)
}

// tooMuch returns why a directory is mounted only if --read, --write or a policy file names it; empty for any other. People
// hand such a directory over by mistake, and files in a workspace could lead to it. The path has no links.
func tooMuch(actual, home string) string {
	if actual == "/" {
		return "is the whole machine"
	}
	if home == "" {
		return ""
	}
	if home, err := filepath.EvalSymlinks(home); err == nil && within(home, actual) {
		return "holds your whole home directory, with its keys"
	}
	return ""
}

// within reports whether a clean path is a directory, or below it.
func within(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// parseMount reads PATH[:TARGET]. The target is what follows the last ":/".
func parseMount(text, dir string) (paddock.Mount, error) {
	source, inside := text, ""
	if i := strings.LastIndex(text, ":/"); i >= 0 {
		source, inside = text[:i], filepath.Clean(text[i+1:])
	} else if i := strings.LastIndexByte(text, ':'); i >= 0 {
		if _, err := os.Lstat(Absolute(text, dir)); err != nil {
			return paddock.Mount{}, WithHint(fmt.Errorf("the target %q is not absolute: %w", text[i+1:], paddock.Invalid), "write PATH:/TARGET")
		}
	}
	if source == "" {
		return paddock.Mount{}, WithHint(fmt.Errorf("the path is empty: %w", paddock.Invalid), "write PATH or PATH:/TARGET")
	}
	if strings.ContainsRune(text, 0) {
		return paddock.Mount{}, fmt.Errorf("a path cannot hold a NUL byte: %w", paddock.Invalid)
	}
	asked := source
	source = Absolute(source, dir)
	if _, err := os.Stat(source); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return paddock.Mount{}, WithHint(fmt.Errorf("there is no such file or directory: %w", paddock.NotFound), "%s",
				orTilde(asked, "check the name; what is shown must exist"))
		}
		return paddock.Mount{}, fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	if inside == source {
		inside = ""
	}
	return paddock.Mount{Source: source, Target: inside}, nil
}

// parseRoot reads the value of --root.
func parseRoot(text, dir string) (paddock.Root, error) {
	if id, ok := strings.CutPrefix(text, "snapshot:"); ok && id != "" {
		return paddock.Root{Kind: paddock.RootSnapshot, Snapshot: paddock.SnapshotID(id)}, nil
	}
	if reference, ok := strings.CutPrefix(text, "image:"); ok && reference != "" {
		return paddock.Root{Kind: paddock.RootImage, Image: reference}, nil
	}
	path, named := strings.CutPrefix(text, "dir:")
	switch {
	case text == "host":
		return paddock.Root{}, nil
	case !named && !strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "."):
		return paddock.Root{}, WithHint(fmt.Errorf("--root %s: there is no such kind of root: %w", text, paddock.Invalid),
			"roots are host, image:REFERENCE, snapshot:ID, or a directory with a whole file tree: /path, ./path or dir:path")
	}
	path = Absolute(path, dir)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return paddock.Root{}, WithHint(fmt.Errorf("--root %s: there is no such directory: %w", text, paddock.NotFound), "%s", orTilde(strings.TrimPrefix(text, "dir:"), "check the name"))
	case err != nil:
		return paddock.Root{}, fmt.Errorf("--root: %w: %w", err, paddock.Denied)
	case !info.IsDir():
		return paddock.Root{}, WithHint(fmt.Errorf("--root %s is not a directory: %w", text, paddock.Invalid), "unpack an archive first")
	}
	if entries, err := os.ReadDir(path); err == nil && len(entries) == 0 {
		return paddock.Root{}, WithHint(fmt.Errorf("--root %s: the directory is empty: %w", text, paddock.Invalid),
			"a root is a whole file tree with /usr, /bin and so on: unpack one there first")
	}
	return paddock.Root{Kind: paddock.RootDir, Path: path}, nil
}

// orTilde gives the hint for a path that is not there: one that begins with
// "~" was meant to be expanded by the shell.
func orTilde(asked, hint string) string {
	if strings.HasPrefix(asked, "~") {
		return `the shell did not expand "~": leave out the quotes, put a space in place of "=", or write $HOME`
	}
	return hint
}

// environment adds --env.
func (f *specFlags) environment(s *paddock.Spec, lookup func(string) (string, bool)) error {
	if len(f.env) > 0 {
		s.Env = maps.Clone(s.Env)
		if s.Env == nil {
			s.Env = map[string]string{}
		}
	}
	for _, text := range f.env {
		name, value, set := strings.Cut(text, "=")
		if name == "" {
			return WithHint(fmt.Errorf("--env %s: the name is empty: %w", text, paddock.Invalid), "write NAME=VALUE, or NAME to pass on your own")
		}
		if !set {
			if value, set = lookup(name); !set {
				return WithHint(fmt.Errorf("--env %s: it is not set in your environment: %w", name, paddock.NotFound), "give it a value: --env %s=VALUE", name)
			}
		}
		s.Env[name] = value
	}
	return nil
}

// Absolute returns path as a clean absolute path, relative to dir. It follows no links and looks at
// no file.
func Absolute(path, dir string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// controls lists every control that there is.
func controls() []paddock.Control {
	return []paddock.Control{
		paddock.ControlUserNS, paddock.ControlMountNS, paddock.ControlPIDNS, paddock.ControlNetNS, paddock.ControlIPCNS,
		paddock.ControlUTSNS, paddock.ControlCgroupNS, paddock.ControlTimeNS, paddock.ControlReadOnly,
		paddock.ControlLandlock, paddock.ControlSeccomp, paddock.ControlNoNewPrivs, paddock.ControlCapabilities,
		paddock.ControlKeyring, paddock.ControlEnvironment, paddock.ControlDescriptors, paddock.ControlIdentity,
		paddock.ControlProtected, paddock.ControlNetwork, paddock.ControlMemory, paddock.ControlCPU, paddock.ControlPIDs,
		paddock.ControlIO, paddock.ControlDisk, paddock.ControlFiles,
	}
}

// Join returns the elements of a list, separated by commas.
func Join[T ~string](list []T) string {
	text := make([]string, len(list))
	for i, s := range list {
		text[i] = string(s)
	}
	return strings.Join(text, ", ")
}
