package policy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock"
)

// ReadSRT parses the settings file of npm @anthropic-ai/sandbox-runtime, as of version 0.0.83. Relative paths are
// relative to o.Dir, "~" is o.Home, and globs are expanded in o.Files, as that program does when it starts.
//
// ReadSRT honours every key of that version, adds a note to File.Notes that says why the key has no effect here, or
// refuses the key by name with an error of kind Unsupported. Any other key is Invalid.
//
// That program lets a sandbox read the whole host by default. The File therefore has an open root: files can be read
// except below denyRead, and written only below allowWrite. Two things are stricter here: no variable of the caller's
// environment enters except those that flags name, and the directories that it makes writable unasked (/tmp/claude,
// ~/.npm/_logs, ~/.claude/debug) are not writable.
func ReadSRT(name string, data []byte, o Host) (*File, error) {
	s := &srt{}
	r := newReader(name, data, nil)
	r.host = o
	r.top = s.shape()
	top, problem := parseJSON(data)
	if problem != nil {
		return nil, &Error{Name: name, Problems: []Problem{*problem}, Kind: paddock.Invalid}
	}
	if !path.IsAbs(o.Dir) {
		return nil, fmt.Errorf("%s: the caller's directory is not known: %w", name, paddock.Invalid)
	}
	r.walk(r.top, top, "")
	if len(r.problems) == 0 {
		s.finish(r)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	f := r.f
	f.Version, f.literal, f.dir = 1, true, path.Clean(o.Dir)
	f.Root = paddock.Root{Kind: paddock.RootOpen}
	f.at["root"] = Position{}
	f.Notes = r.notes
	return f, nil
}

// srt collects the lists of paths, which are judged together at the end.
type srt struct {
	denyRead, allowRead, allowWrite, denyWrite []srtPath

	allowed, denied []srtHost
	narrowing       []srtNarrowing
}

// srtHost is one destination of a settings file.
type srtHost struct {
	host string
	port uint16 // zero is none
	node *yaml.Node
	key  string
}

// srtNarrowing is a key that makes less of what is allowed, in a way that is
// not had here.
type srtNarrowing struct {
	node *yaml.Node
	key  string
	why  string
}

// srtPath is one absolute path of a settings file. One entry gives several
// where it is a glob.
type srtPath struct {
	path string
	node *yaml.Node
	key  string
}

// rules makes rules of the lists of hosts. With none allowed there is no
// network at all, which is what those settings mean too.
func (s *srt) rules(r *reader) {
	f := r.f
	for _, n := range s.narrowing {
		if len(s.allowed) > 0 {
			r.refuse(n.node, n.key, n.why, useRules)
		} else {
			r.note(n.node, n.key, "no effect: nothing can be reached", "")
		}
	}
	if len(s.allowed) == 0 {
		return
	}
	put := func(h srtHost, deny bool) {
		f.at[index("network.rules", len(f.Network.Rules))] = Position{h.node.Line, h.node.Column}
		nr := paddock.NetworkRule{Deny: deny, Host: h.host}
		if h.port != 0 {
			nr.Ports = []uint16{h.port}
		}
		f.Network.Rules = append(f.Network.Rules, nr)
	}
	first := s.allowed[0]
	f.Network.Mode = paddock.NetworkList
	f.at["network"] = Position{first.node.Line, first.node.Column}
	anyPort := false
	for _, h := range s.allowed {
		put(h, false)
		anyPort = anyPort || h.port == 0
	}
	for _, h := range s.denied {
		put(h, true)
	}
	if anyPort {
		r.note(first.node, "network.allowedDomains", "without a port they are allowed at 443 and 80, where sandbox-runtime allows any", `write "HOST:PORT" for others`)
	}
}

// finish makes the file of the lists.
func (s *srt) finish(r *reader) {
	f := r.f
	s.rules(r)
	put := func(key string, list *[]string, p srtPath) {
		if len(*list) == 0 {
			f.at[key] = Position{p.node.Line, p.node.Column}
		}
		f.at[index(key, len(*list))] = Position{p.node.Line, p.node.Column}
		*list = append(*list, p.path)
	}
	for _, p := range s.denyRead {
		put("files.deny_read", &f.Files.DenyRead, p)
	}
	for _, p := range s.denyWrite {
		put("files.deny_write", &f.Files.DenyWrite, p)
	}
	for _, p := range s.allowRead {
		if d, ok := s.reopens(p); ok {
			s.refuseReopening(r, p, d)
		} else {
			r.note(p.node, p.key, p.path+" is readable already", "no denyRead is above it")
		}
	}
	seen := map[string]bool{}
	for _, p := range s.allowWrite {
		if d, ok := s.reopens(p); ok {
			s.refuseReopening(r, p, d)
			continue
		}
		if d, ok := above(p, s.denyWrite); ok {
			r.note(p.node, p.key, p.path+" stays read-only", "denyWrite "+d.path+" wins over it")
			continue
		}
		if seen[p.path] {
			r.note(p.node, p.key, p.path+" is listed twice", "")
			continue
		}
		seen[p.path] = true
		if missing(r.host.Files, p.path) {
			r.note(p.node, p.key, p.path+" does not exist, and is not made writable", "make it before the run")
			continue
		}
		f.at[index("mounts", len(f.Mounts))] = Position{p.node.Line, p.node.Column}
		f.Mounts = append(f.Mounts, paddock.Mount{Source: p.path, Write: true})
	}
}

// reopens gives the denyRead that p lies in.
func (s *srt) reopens(p srtPath) (srtPath, bool) { return above(p, s.denyRead) }

func above(p srtPath, list []srtPath) (srtPath, bool) {
	for _, d := range list {
		if within(p.path, d.path) {
			return d, true
		}
	}
	return srtPath{}, false
}

func (s *srt) refuseReopening(r *reader, p, d srtPath) {
	r.refuse(p.node, p.key, fmt.Sprintf("%s lies in the denyRead %s (line %d), and what is denied cannot be opened again further down", p.path, d.path, d.node.Line),
		"deny the directories beside it, or use a policy file with root host, which shows no home, and mounts")
}

func missing(files fs.FS, name string) bool {
	if files == nil {
		return false
	}
	rel := strings.TrimPrefix(name, "/")
	if rel == "" {
		rel = "."
	}
	_, err := fs.Stat(files, rel)
	return errors.Is(err, fs.ErrNotExist)
}

// refuse tells what is understood and cannot be had.
func (r *reader) refuse(n *yaml.Node, key, text, hint string) {
	r.refused = append(r.refused, problemAt(n, key, text, hint))
}

// srtAbsolute resolves a path of a settings file, lexically as there.
func srtAbsolute(p string, o Host) (string, error) {
	switch {
	case p == "":
		return "", errors.New("empty path")
	case strings.ContainsAny(p, "\x00\n\r"):
		return "", errors.New("path with a NUL byte or a line break")
	case strings.ContainsRune(p, utf8.RuneError):
		return "", errors.New("path that is not UTF-8")
	case p == "~" || strings.HasPrefix(p, "~/"):
		return resolve(p, o.Home)
	case !path.IsAbs(p):
		p = o.Dir + "/" + p
	}
	if len(p) > MaxPath {
		return "", fmt.Errorf("path of %d bytes; at most %d are allowed", len(p), MaxPath)
	}
	return path.Clean(p), nil
}

// paths is the shape of a list of paths. Where globs are not allowed, they are
// refused, because they are skipped there without a word.
func (s *srt) paths(to *[]srtPath, globs bool) *shape {
	yes := &shape{kind: boolean, read: func(r *reader, n *yaml.Node, key string) {
		if n.Value != "true" {
			r.add(n, key, "only true is allowed", "")
		}
	}}
	marked := &shape{kind: object, need: []string{"path", "literal"}, fields: []field{{"path", &shape{kind: text}}, {"literal", yes}}}
	return &shape{kind: list, elem: &shape{kind: textOrObject, elem: marked, read: func(r *reader, n *yaml.Node, key string) {
		spelled, literal := n.Value, false
		if n.Kind == yaml.MappingNode {
			literal = true
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == "path" {
					spelled = n.Content[i+1].Value
				}
			}
		}
		*to = append(*to, srtResolve(r, n, key, srtSpelling{spelled, literal, globs})...)
	}}}
}

type srtSpelling struct {
	text    string
	literal bool // never a glob
	globs   bool // globs are allowed
}

func srtResolve(r *reader, n *yaml.Node, key string, p srtSpelling) []srtPath {
	if !p.literal {
		// A directory and all below it is the directory.
		if dir, ok := strings.CutSuffix(p.text, "/**"); ok {
			p.text = cmp.Or(dir, "/")
		}
	}
	abs, err := srtAbsolute(p.text, r.host)
	if err != nil {
		r.add(n, key, err.Error(), "")
		return nil
	}
	if p.literal || !isGlob(p.text) {
		return []srtPath{{abs, n, key}}
	}
	mark := fmt.Sprintf(`write the paths, or for a name with such characters {"path": %q, "literal": true}`, clip(p.text))
	switch {
	case !p.globs:
		r.refuse(n, key, fmt.Sprintf("the glob %q: sandbox-runtime skips it on Linux, so it would do nothing", clip(p.text)), mark)
		return nil
	case strings.ContainsAny(p.text, `[]\`):
		r.refuse(n, key, fmt.Sprintf("the glob %q: sets of characters are not known here", clip(p.text)), mark)
		return nil
	case isGlob(r.host.Dir) && !path.IsAbs(p.text) && p.text[0] != '~':
		r.refuse(n, key, fmt.Sprintf("the glob %q in a directory whose own name looks like one", clip(p.text)), mark)
		return nil
	}
	if err := checkGlob(abs); err != nil {
		r.refuse(n, key, fmt.Sprintf("the glob %q: %v", clip(p.text), err), mark)
		return nil
	}
	if r.host.Files == nil {
		r.refuse(n, key, fmt.Sprintf("the glob %q, and the files of the host cannot be looked at here", clip(p.text)), mark)
		return nil
	}
	found, err := expand(r.host.Files, abs)
	if err != nil {
		r.refuse(n, key, fmt.Sprintf("the glob %q cannot be expanded: %v", clip(p.text), err), mark)
		return nil
	}
	if len(found) == 0 {
		r.note(n, key, fmt.Sprintf("the glob %q matches nothing now", clip(p.text)), "as in sandbox-runtime, what appears later is not covered")
	}
	paths := make([]srtPath, len(found))
	for i, name := range found {
		paths[i] = srtPath{name, n, key}
	}
	return paths
}

// safeDirectories is honoured as there: by variables that git reads.
func safeDirectories(r *reader, n *yaml.Node, key string) {
	if len(n.Content) == 0 {
		return
	}
	r.f.Set = map[string]string{"GIT_CONFIG_COUNT": strconv.Itoa(len(n.Content))}
	for i, c := range n.Content {
		abs, err := srtAbsolute(c.Value, r.host)
		if err != nil {
			r.add(c, index(key, i), err.Error(), "")
			continue
		}
		r.f.Set["GIT_CONFIG_KEY_"+strconv.Itoa(i)] = "safe.directory"
		r.f.Set["GIT_CONFIG_VALUE_"+strconv.Itoa(i)] = abs
	}
}
