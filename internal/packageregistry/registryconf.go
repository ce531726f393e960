package packageregistry

import (
	"io"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

// A Machine is the environment and the files from which configuration is read.
type Machine struct {
	Home  string                      // absolute; empty is none
	Dir   string                      // the project's, absolute; empty is none
	Env   func(string) (string, bool) // the caller's environment
	Files fs.FS                       // of the root directory
}

// A Group lists the hosts of one client.
type Group struct {
	Name  string
	Hosts []string // each with its port where that is neither 443 nor 80
	From  []string // the files and variables that named them

	// Project is set for hosts that only files of the project name. Who wrote the project
	// chose them, which may be a stranger or a command in a sandbox.
	Project bool
}

// Bounds of what is read.
const (
	maxFile  = 1 << 20 // bytes
	maxFiles = 256     // of one directory
	maxHosts = 256     // of one client
)

// Read returns a group for each client whose configuration names hosts. Hosts that only files of
// the project name are in a group of their own, behind the others.
func Read(m Machine) []Group {
	var list, projects []Group
	for _, c := range []struct {
		name string
		read func(*reading)
	}{{"pip", pip}, {"npm", npm}, {"cargo", cargo}, {"go", goModules}, {"apt", apt}} {
		r := &reading{m: m, g: Group{Name: c.name}, p: Group{Name: c.name, Project: true}}
		c.read(r)
		r.p.Hosts = slices.DeleteFunc(r.p.Hosts, func(h string) bool { return slices.Contains(r.g.Hosts, h) })
		if len(r.g.Hosts) > 0 {
			slices.Sort(r.g.Hosts)
			list = append(list, r.g)
		}
		if len(r.p.Hosts) > 0 {
			slices.Sort(r.p.Hosts)
			projects = append(projects, r.p)
		}
	}
	return append(list, projects...)
}

// A reading is one client's.
type reading struct {
	m   Machine
	g   Group    // of the user and the system
	p   Group    // of the project
	own []string // the project's files, wherever they are
}

// url adds the host of a URL, if it is one of the network's.
func (r *reading) url(text, from string) {
	text = strings.Trim(strings.TrimSpace(text), `"'`)
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || !slices.Contains([]string{"https", "http", "sparse+https", "sparse+http", "git+https"}, u.Scheme) {
		return
	}
	h, err := decide.ParseHost(u.Hostname())
	if err != nil {
		return
	}
	host := h.String()
	if port := u.Port(); port != "" && port != "443" && port != "80" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return
		}
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		host += ":" + strconv.FormatUint(n, 10)
	}
	g := &r.g
	if r.ofProject(from) {
		g = &r.p
	}
	if !slices.Contains(g.From, from) {
		g.From = append(g.From, from)
	}
	if !slices.Contains(g.Hosts, host) && len(g.Hosts) < maxHosts {
		g.Hosts = append(g.Hosts, host)
	}
}

// ofProject reports whether a file is the project's. A variable may name one too.
func (r *reading) ofProject(file string) bool {
	if slices.Contains(r.own, file) {
		return true
	}
	if r.m.Dir == "" || r.m.Home != "" && below(r.m.Home, r.m.Dir) || below("/etc", r.m.Dir) {
		return false // the directory holds the files of the user, or of the system
	}
	return below(file, r.m.Dir)
}

// below reports whether an absolute path is a directory, or is below it.
func below(file, dir string) bool {
	file, dir = path.Clean(file), path.Clean(dir)
	return file == dir || strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/")
}

// env gives a variable, or nothing.
func (r *reading) env(name string) string {
	value, _ := r.m.Env(name)
	return value
}

// lines calls f with each line of a file, without the space around it.
func (r *reading) lines(name string, f func(line string)) {
	if !path.IsAbs(name) {
		return
	}
	file, err := r.m.Files.Open(strings.TrimPrefix(path.Clean(name), "/"))
	if err != nil {
		return // most clients are not there
	}
	defer func() { _ = file.Close() }() // it was only read
	if st, err := file.Stat(); err != nil || !st.Mode().IsRegular() {
		return // a pipe would be waited for
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil {
		return
	}
	for line := range strings.Lines(string(data)) {
		f(strings.TrimSpace(line))
	}
}

// home gives a file of the user's, or nothing.
func (r *reading) home(name string) string {
	if r.m.Home == "" {
		return ""
	}
	return path.Join(r.m.Home, name)
}

// project gives a file of the project's, or nothing.
func (r *reading) project(name string) string {
	if r.m.Dir == "" {
		return ""
	}
	file := path.Join(r.m.Dir, name)
	if file != r.home(name) { // or it is the user's
		r.own = append(r.own, file)
	}
	return file
}

// config gives the directory of the user's configuration, or nothing.
func (r *reading) config() string {
	if dir := r.env("XDG_CONFIG_HOME"); path.IsAbs(dir) {
		return dir
	}
	return r.home(".config")
}

// entries lists the files of a directory.
func (r *reading) entries(dir string) []string {
	list, err := fs.ReadDir(r.m.Files, strings.TrimPrefix(dir, "/"))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range list[:min(len(list), maxFiles)] {
		names = append(names, path.Join(dir, e.Name()))
	}
	return names
}

// setting cuts a line NAME = VALUE.
func setting(line string) (name, value string, ok bool) {
	if strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
		return "", "", false
	}
	name, value, ok = strings.Cut(line, "=")
	return strings.TrimSpace(name), strings.TrimSpace(value), ok
}
