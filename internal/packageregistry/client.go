package packageregistry

import (
	"path"
	"slices"
	"strings"
)

// pip reads what pip and uv are told of indexes. A value may go on for several
// lines.
func pip(r *reading) {
	for _, name := range []string{"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX"} {
		for _, text := range strings.Fields(r.env(name)) {
			if at := strings.Index(text, "=http"); at >= 0 { // NAME=URL
				text = text[at+1:]
			}
			r.url(text, name)
		}
	}
	files := []string{"/etc/pip.conf", "/etc/xdg/pip/pip.conf", r.home(".pip/pip.conf")}
	if dir := r.config(); dir != "" {
		files = append(files, path.Join(dir, "pip/pip.conf"))
	}
	if env := r.env("VIRTUAL_ENV"); env != "" {
		file := path.Join(env, "pip.conf")
		r.own = append(r.own, file) // an environment belongs to a project
		files = append(files, file)
	}
	for _, file := range append(files, r.env("PIP_CONFIG_FILE")) {
		inside := false
		r.lines(file, func(line string) {
			if name, value, ok := setting(line); ok && !strings.Contains(name, "/") {
				inside = slices.Contains([]string{"index-url", "extra-index-url", "find-links"}, strings.ReplaceAll(strings.ToLower(name), "_", "-"))
				line = value
			} else if strings.HasPrefix(line, "[") || strings.HasPrefix(line, "#") {
				inside = inside && !strings.HasPrefix(line, "[")
				return
			}
			if inside {
				for _, text := range strings.Fields(line) {
					r.url(text, file)
				}
			}
		})
	}
}

// npm reads the registry, and those of scopes.
func npm(r *reading) {
	for _, name := range []string{"npm_config_registry", "NPM_CONFIG_REGISTRY", "YARN_NPM_REGISTRY_SERVER"} {
		r.url(r.env(name), name)
	}
	for _, file := range []string{"/etc/npmrc", r.home(".npmrc"), r.project(".npmrc"), r.env("NPM_CONFIG_USERCONFIG"), r.env("npm_config_userconfig")} {
		r.lines(file, func(line string) {
			name, value, ok := setting(line)
			if ok && (name == "registry" || strings.HasPrefix(name, "@") && strings.HasSuffix(name, ":registry")) {
				r.url(value, file)
			}
		})
	}
}

// cargo reads the tables of registries and of sources that stand for others.
func cargo(r *reading) {
	home := r.env("CARGO_HOME")
	if home == "" {
		home = r.home(".cargo")
	}
	if name := "CARGO_REGISTRY_INDEX"; r.env(name) != "" {
		r.url(r.env(name), name)
	}
	for _, file := range []string{path.Join(home, "config.toml"), path.Join(home, "config"), r.project(".cargo/config.toml"), r.project(".cargo/config")} {
		table := ""
		r.lines(file, func(line string) {
			if strings.HasPrefix(line, "[") {
				table = strings.Trim(line, "[] ")
				return
			}
			name, value, ok := setting(line)
			if !ok || table != "registry" && !strings.HasPrefix(table, "registries.") && !strings.HasPrefix(table, "source.") {
				return
			}
			if slices.Contains([]string{"index", "registry", "git"}, name) {
				r.url(quoted(value), file)
			}
		})
	}
}

// quoted gives what is between the first quotes, or all of it.
func quoted(value string) string {
	for _, q := range []string{`"`, `'`} {
		if inside, ok := strings.CutPrefix(value, q); ok {
			inside, _, _ = strings.Cut(inside, q)
			return inside
		}
	}
	return value
}

// goModules reads the proxies of modules, and the database of sums where it is a
// URL or a host.
func goModules(r *reading) {
	take := func(name, value, from string) {
		switch name {
		case "GOPROXY":
			for _, text := range strings.FieldsFunc(value, func(c rune) bool { return c == ',' || c == '|' }) {
				r.url(text, from) // "direct" and "off" are none
			}
		case "GOSUMDB": // NAME[+KEY] [URL]
			words := strings.Fields(value)
			if len(words) == 0 || words[0] == "off" {
				return
			}
			host, _, _ := strings.Cut(words[0], "+")
			r.url("https://"+host, from)
			for _, text := range words[1:] {
				r.url(text, from)
			}
		}
	}
	for _, name := range []string{"GOPROXY", "GOSUMDB"} {
		take(name, r.env(name), name)
	}
	files := []string{r.env("GOENV")}
	if dir := r.config(); dir != "" {
		files = append(files, path.Join(dir, "go/env"))
	}
	if root := r.env("GOROOT"); root != "" {
		files = append(files, path.Join(root, "go.env"))
	}
	for _, file := range append(files, "/usr/local/go/go.env", "/usr/lib/go/go.env") {
		r.lines(file, func(line string) {
			if name, value, ok := setting(line); ok {
				take(name, value, file)
			}
		})
	}
}

// apt reads the system's sources, of both forms.
func apt(r *reading) {
	files := []string{"/etc/apt/sources.list"}
	for _, name := range r.entries("/etc/apt/sources.list.d") {
		if strings.HasSuffix(name, ".list") || strings.HasSuffix(name, ".sources") {
			files = append(files, name)
		}
	}
	for _, file := range files {
		uris := false
		r.lines(file, func(line string) {
			words := strings.Fields(line)
			if len(words) == 0 || strings.HasPrefix(line, "#") {
				return
			}
			key, rest, field := strings.Cut(line, ":")
			switch {
			case words[0] == "deb" || words[0] == "deb-src":
				for _, w := range words[1:] {
					r.url(w, file) // options are in brackets, and no URLs
				}
				return
			case field && !strings.Contains(key, " ") && !strings.HasPrefix(rest, "//"):
				uris = strings.EqualFold(key, "uris")
				words = strings.Fields(rest)
			}
			if uris {
				for _, w := range words {
					r.url(w, file)
				}
			}
		})
	}
}
