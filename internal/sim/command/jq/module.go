package jq

import (
	"path"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// modules are the libraries that a program imports.
type modules struct {
	t      *kernel.Task
	search []string // of -L
	home   string
	loaded map[string]*library
	depth  int
}

// A library is a module that was loaded: its functions, where they see each
// other.
type library struct {
	defs []*function
	all  map[string]imported
}

// searchList is what get_search_list gives.
func (x *modules) searchList(m *machine) value {
	list := make([]value, len(x.search))
	for i, s := range x.search {
		list[i] = s
	}
	return m.list(list)
}

// find gives the path of a module's file.
func (x *modules) find(m *machine, i *importing, dir string, suffix string) (string, error) {
	dirs := x.search
	if i.meta != nil {
		v, err := m.one(i.meta, nil, nil)
		if err == nil {
			if o, ok := v.(*object); ok {
				if s, there := o.get("search"); there {
					dirs = nil
					switch y := s.(type) {
					case string:
						dirs = append(dirs, path.Join(dir, y))
						if path.IsAbs(y) {
							dirs = []string{y}
						}
					case *array:
						for _, e := range y.own() {
							if d, ok := e.(string); ok && path.IsAbs(d) {
								dirs = append(dirs, d)
							} else if ok {
								dirs = append(dirs, path.Join(dir, d))
							}
						}
					}
				}
			}
		}
	}
	base := path.Base(i.path)
	for _, d := range dirs {
		if strings.HasPrefix(d, "~/") {
			d = path.Join(x.home, d[2:])
		}
		for _, file := range []string{path.Join(d, i.path) + suffix, path.Join(d, i.path, base) + suffix} {
			if info, err := x.t.View.Stat(file); err == nil && info.IsRegular() {
				return file, nil
			}
		}
	}
	return "", failf("module not found: %s", i.path)
}

// data loads a file of values.
func (x *modules) data(m *machine, file string) (value, error) {
	b, err := command.ReadAll(x.t, file)
	if err != nil {
		return nil, failf("%s: %s", file, vfs.Message(err))
	}
	list, err := m.decodeAll(b)
	if err != nil {
		return nil, failf("%s: %s", file, err)
	}
	return m.list(list), nil
}

// load loads a library.
func (x *modules) load(m *machine, file string) (*library, error) {
	if l, ok := x.loaded[file]; ok {
		if l == nil {
			return nil, failf("module imports itself: %s", file)
		}
		return l, nil
	}
	x.loaded[file] = nil
	b, err := command.ReadAll(x.t, file)
	if err != nil {
		return nil, failf("%s: %s", file, vfs.Message(err))
	}
	mod, bad := parse(string(b), int(x.t.K.Limits.Nesting))
	if bad != nil {
		return nil, failf("%s: %s", file, bad.msg)
	}
	if mod.body != nil {
		return nil, failf("library should only have function definitions, not a main expression")
	}
	if x.depth++; x.depth > 100 {
		return nil, failf("too many modules import each other")
	}
	s, e, r, err := x.link(m, mod, path.Dir(file))
	x.depth--
	if err != nil {
		return nil, err
	}
	l := &library{all: map[string]imported{}}
	for _, f := range mod.defs {
		s = &scope{up: s, kind: 'f', name: f.name, def: f}
		if err := resolving(func() { r.define(f, s) }); err != nil {
			return nil, failf("%s", err.msg)
		}
		e = &env{up: e, fn: f}
		l.all[signature(f.name, f.arity())] = imported{f, e}
		l.defs = append(l.defs, f)
	}
	x.loaded[file] = l
	return l, nil
}

// link loads what a module imports, and gives the scope that it begins with.
func (x *modules) link(m *machine, mod *module, dir string) (*scope, *env, *resolver, error) {
	r := &resolver{m: m, imports: map[string]imported{}, values: map[string]value{}}
	for i := range mod.imports {
		imp := &mod.imports[i]
		if imp.meta != nil {
			if err := resolving(func() { r.resolve(imp.meta, nil) }); err != nil {
				return nil, nil, nil, failf("%s", err.msg)
			}
		}
		if imp.data {
			file, err := x.find(m, imp, dir, ".json")
			if err != nil {
				return nil, nil, nil, err
			}
			v, err := x.data(m, file)
			if err != nil {
				return nil, nil, nil, err
			}
			r.values[imp.name], r.values[imp.name+"::"+imp.name] = v, v
			m.hold(v)
			continue
		}
		file, err := x.find(m, imp, dir, ".jq")
		if err != nil {
			return nil, nil, nil, err
		}
		l, err := x.load(m, file)
		if err != nil {
			return nil, nil, nil, err
		}
		for sig, f := range l.all {
			if imp.name != "" {
				sig = imp.name + "::" + sig
			}
			r.imports[sig] = f
		}
	}
	return nil, nil, r, nil
}

// resolving runs f, and gives the name that it could not resolve.
func resolving(f func()) (err *resolveError) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *resolveError:
			err = r
		default:
			panic(r)
		}
	}()
	f()
	return nil
}

// meta is modulemeta.
func (x *modules) meta(v value) (value, error) {
	m := &machine{t: x.t, natives: map[string]*native{}, builtins: map[string]*function{}, globals: map[string]value{}, debt: least}
	name, ok := v.(string)
	if !ok {
		return nil, failf("modulemeta input module name must be a string")
	}
	file, err := x.find(m, &importing{path: name}, ".", ".jq")
	if err != nil {
		return nil, err
	}
	b, err := command.ReadAll(x.t, file)
	if err != nil {
		return nil, failf("%s: %s", file, vfs.Message(err))
	}
	mod, bad := parse(string(b), int(x.t.K.Limits.Nesting))
	if bad != nil {
		return nil, failf("%s", bad.msg)
	}
	t := &table{}
	r := &resolver{m: m}
	constant := func(n *node) *object {
		if n == nil {
			return newObject()
		}
		r.resolve(n, nil)
		v, err := m.one(n, nil, nil)
		o, ok := v.(*object)
		if err != nil || !ok {
			return newObject()
		}
		return o
	}
	own := constant(mod.meta).own().clone()
	*t = *own
	var deps, defs []value
	for i := range mod.imports {
		imp := &mod.imports[i]
		d := constant(imp.meta).own().clone()
		if imp.name != "" {
			d.put("as", imp.name)
		}
		d.put("is_data", imp.data)
		d.put("relpath", imp.path)
		deps = append(deps, m.made(d))
	}
	for _, f := range mod.defs {
		defs = append(defs, signature(f.name, f.arity()))
	}
	t.put("deps", m.list(deps))
	t.put("defs", m.list(defs))
	return m.made(t), nil
}
