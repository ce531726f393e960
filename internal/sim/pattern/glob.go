package pattern

import (
	"slices"
	"strings"
)

// Files is what Glob sees of a file system. A path may be relative; an empty
// directory is ".".
type Files interface {
	ReadDir(dir string) ([]Entry, error) // without . and ..
	Exists(path string) bool             // without following a link
	IsDir(path string) bool              // following links
}

// Entry is a name in a directory.
type Entry struct {
	Name string
	Kind Kind
}

// Kind is what an entry is.
type Kind uint8

// The kinds that Glob tells apart.
const (
	Other Kind = iota // neither of the following
	Directory
	Link
)

// GlobOptions are the shell's options that change what Glob finds.
type GlobOptions struct {
	ExtGlob    bool       // extglob
	IgnoreCase bool       // nocaseglob
	Bytes      bool       // as in Options
	Dots       bool       // dotglob
	DotDirs    bool       // the opposite of globskipdots: .* matches . and ..
	Star       bool       // globstar: ** is any number of directories
	Ignore     []*Pattern // GLOBIGNORE, compiled with Options.Path
	Meter      Meter
}

// Glob returns the paths that a pattern matches, sorted by bytes; none is not
// an error, and neither is a directory that cannot be read. The only errors are
// those of the meter.
func Glob(files Files, pat string, o GlobOptions) ([]string, error) {
	g := globber{files: files, opt: o}
	found, err := g.expand(split(pat, o.ExtGlob))
	if err != nil {
		return nil, err
	}
	if len(o.Ignore) > 0 {
		kept := found[:0]
		for _, path := range found {
			ignored, err := g.ignored(path)
			if err != nil {
				return nil, err
			}
			if !ignored {
				kept = append(kept, path)
			}
		}
		found = kept
	}
	slices.Sort(found)
	return found, nil
}

// IgnorePatterns compiles the value of GLOBIGNORE.
func IgnorePatterns(value string, extGlob bool) []*Pattern {
	var (
		list  []*Pattern
		start int
	)
	add := func(text string) {
		if text != "" {
			list = append(list, Compile(text, Options{ExtGlob: extGlob, Path: true}))
		}
	}
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '\\':
			i++
		case '[':
			if end := bracketEnd(value, i); end > 0 {
				i = end - 1
			}
		case ':':
			add(value[start:i])
			start = i + 1
		}
	}
	add(value[start:])
	return list
}

type globber struct {
	files Files
	opt   GlobOptions
	work  int
}

func (g *globber) ignored(path string) (bool, error) {
	switch path[strings.LastIndexByte(path, '/')+1:] {
	case ".", "..":
		return true, nil
	}
	for _, p := range g.opt.Ignore {
		ok, err := p.Match(path, g.opt.Meter)
		if ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// split cuts a pattern at its slashes: the text before the first component that
// is a pattern, unquoted, and the components from it on. An empty one at the
// end says that only directories are wanted.
func split(pat string, extGlob bool) (prefix string, parts []string) {
	ps := parser{src: pat}
	if extGlob {
		ps.pair()
	}
	start, cut := 0, 0
	next := func(i int) {
		part := pat[start:i]
		if len(parts) > 0 || HasMeta(part, extGlob) {
			if part != "" {
				parts = append(parts, part)
			}
			return
		}
		cut = min(i+1, len(pat))
		part = strings.TrimSuffix(part, `\`)
		prefix += Unquote(part) + "/"
	}
	for i := 0; i < len(pat); i++ {
		switch c := pat[i]; c {
		case '\\':
			if i+1 < len(pat) && pat[i+1] != '/' {
				i++
			}
		case '/':
			next(i)
			start = i + 1
		case '?', '*', '+', '@', '!':
			if end, ok := ps.close[i+1]; ok && pat[i+1] == '(' {
				i = end
			}
		}
	}
	if start < len(pat) {
		next(len(pat))
		if cut == len(pat) && len(parts) == 0 {
			prefix = strings.TrimSuffix(prefix, "/")
		}
	} else if len(parts) > 0 {
		parts = append(parts, "")
	}
	for i, part := range parts {
		if len(part) > 1 && strings.HasSuffix(part, `\`) && !strings.HasSuffix(part, `\\`) && i < len(parts)-1 {
			parts[i] = part[:len(part)-1]
		}
	}
	return prefix, parts
}

// place is a directory that has been reached: the text to put before the names
// in it.
type place struct {
	dir  string
	kind Kind
}

func (g *globber) expand(prefix string, parts []string) ([]string, error) {
	if len(parts) == 0 {
		if prefix != "" && g.files.Exists(prefix) {
			return []string{prefix}, nil
		}
		return nil, nil
	}
	places := []place{{dir: prefix}}
	for i := 0; i < len(parts); i++ {
		part, last := parts[i], i == len(parts)-1
		dirs := i == len(parts)-2 && parts[i+1] == ""
		var (
			next []place
			err  error
		)
		if g.opt.Star && part == "**" {
			for !last && parts[i+1] == "**" {
				i++
				last = i == len(parts)-1
			}
			dirs = i == len(parts)-2 && parts[i+1] == ""
			next, err = g.descend(places, i > 0, last, dirs)
		} else {
			next, err = g.level(places, part, last, dirs)
		}
		if err != nil {
			return nil, err
		}
		if dirs {
			last = true
		}
		if last {
			found := make([]string, len(next))
			for k := range next {
				found[k] = next[k].dir
			}
			return found, nil
		}
		places = next
	}
	return nil, nil
}

// level goes down by one component. What it returns ends in a slash, unless the
// component is the last.
func (g *globber) level(places []place, part string, last, dirs bool) ([]place, error) {
	var next []place
	end := "/"
	if last {
		end = ""
	}
	if !HasMeta(part, g.opt.ExtGlob) {
		name := Unquote(part)
		for _, p := range places {
			if err := g.count(1); err != nil {
				return nil, err
			}
			path := p.dir + name
			if dirs && g.files.IsDir(path) || !dirs && g.files.Exists(path) {
				next = append(next, place{dir: path + end})
			}
		}
		return next, nil
	}
	pat := Compile(part, Options{ExtGlob: g.opt.ExtGlob, IgnoreCase: g.opt.IgnoreCase, Bytes: g.opt.Bytes})
	for _, p := range places {
		entries, err := g.read(p)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			ok, err := g.match(pat, e.Name)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			path := p.dir + e.Name
			switch {
			case last:
			case e.Kind == Other:
				continue
			case dirs && e.Kind != Directory && !g.files.IsDir(path):
				continue
			}
			next = append(next, place{dir: path + end, kind: e.Kind})
		}
	}
	return next, nil
}

// match applies the rules of names that begin with a dot.
func (g *globber) match(pat *Pattern, name string) (bool, error) {
	if g.opt.Dots && name != "." && name != ".." {
		return pat.Match(name, g.opt.Meter)
	}
	return pat.matchName(name, g.opt.Meter)
}

// descend follows a **: every directory below, and if it is the last component
// every file. Links are found but not followed.
func (g *globber) descend(places []place, globbed, last, dirs bool) ([]place, error) {
	var found []place
	add := func(p place) { found = append(found, p) }
	for _, top := range places {
		switch {
		case top.dir == "" && (last || dirs):
		case last && globbed:
			if path := strings.TrimSuffix(top.dir, "/"); g.files.IsDir(path) {
				add(place{dir: path})
			}
		case last || dirs:
			if g.files.IsDir(top.dir) {
				add(top)
			}
		default:
			add(top)
		}
		stack := []place{top}
		for len(stack) > 0 {
			p := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			entries, err := g.read(p)
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				if e.Name == "." || e.Name == ".." || e.Name[0] == '.' && !g.opt.Dots {
					continue
				}
				path := p.dir + e.Name
				down := place{dir: path + "/", kind: e.Kind}
				switch {
				case e.Kind == Directory:
					stack = append(stack, down)
					if !last {
						add(down)
					}
				case dirs && e.Kind == Link && g.files.IsDir(path):
					add(down)
				}
				if last {
					add(place{dir: path})
				}
			}
		}
	}
	return found, nil
}

func (g *globber) read(p place) ([]Entry, error) {
	if err := g.count(1 + len(p.dir)/16); err != nil { // a path costs its length
		return nil, err
	}
	dir := strings.TrimRight(p.dir, "/")
	switch {
	case p.dir == "":
		dir = "."
	case dir == "":
		dir = "/"
	}
	entries, err := g.files.ReadDir(dir)
	if err != nil {
		return nil, nil //nolint:nilerr // as the shell does, which shows no error either
	}
	if g.opt.DotDirs {
		entries = append([]Entry{{Name: ".", Kind: Directory}, {Name: "..", Kind: Directory}}, entries...)
	}
	return entries, g.count(len(entries))
}

func (g *globber) count(n int) error {
	g.work += n
	if g.work < 64 {
		return nil
	}
	n, g.work = g.work, 0
	return step(g.opt.Meter, n)
}
