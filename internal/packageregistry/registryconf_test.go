package packageregistry

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func machine(env map[string]string, files map[string]string) Machine {
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[strings.TrimPrefix(name, "/")] = &fstest.MapFile{Data: []byte(text)}
	}
	return Machine{Home: "/home/u", Dir: "/work/p", Files: tree, Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
}

func TestHostsAreReadWhereClientsHaveThem(t *testing.T) {
	for _, row := range []struct {
		name  string
		env   map[string]string
		files map[string]string
		want  Group
	}{
		{
			"pip's variables", map[string]string{"PIP_INDEX_URL": "https://user:secret@pip.example/simple", "PIP_EXTRA_INDEX_URL": "http://a.example:8080/ https://b.example", "UV_INDEX": "mine=https://c.example/x"}, nil,
			Group{Name: "pip", Hosts: []string{"a.example:8080", "b.example", "c.example", "pip.example"}, From: []string{"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX"}},
		},
		{
			"pip's files", nil, map[string]string{"/home/u/.config/pip/pip.conf": "[global]\nindex-url = https://pip.example/a=b\nextra-index-url =\n    https://one.example/simple\n    # https://comment.example\n    https://two.example/simple\ntimeout = 60\n[install]\n  https://stray.example\ntrusted-host = https://trusted.example\n"},
			Group{Name: "pip", Hosts: []string{"one.example", "pip.example", "two.example"}, From: []string{"/home/u/.config/pip/pip.conf"}},
		},
		{
			"npm", map[string]string{"NPM_CONFIG_REGISTRY": "https://env.example/"}, map[string]string{
				"/home/u/.npmrc": "registry=https://npm.example/\n//npm.example/:_authToken=hush\n; registry=https://comment.example\n",
				"/etc/npmrc":     "@team:registry = \"https://team.example:4873/\"\nproxy=https://proxy.example\n",
			},
			Group{Name: "npm", Hosts: []string{"env.example", "npm.example", "team.example:4873"}, From: []string{"NPM_CONFIG_REGISTRY", "/etc/npmrc", "/home/u/.npmrc"}},
		},
		{
			"cargo", nil, map[string]string{"/home/u/.cargo/config.toml": "[registries.mine]\nindex = \"sparse+https://index.example/i/\" # ours\n[source.mirror]\nregistry = 'https://mirror.example'\n[http]\nproxy = \"https://proxy.example\"\n"},
			Group{Name: "cargo", Hosts: []string{"index.example", "mirror.example"}, From: []string{"/home/u/.cargo/config.toml"}},
		},
		{
			"go", map[string]string{"GOPROXY": "https://one.example,https://two.example|direct", "GOSUMDB": "off"}, map[string]string{"/home/u/.config/go/env": "GOPROXY=https://three.example\nGOSUMDB=sums.example+abc https://mirror.example/sums\nGOFLAGS=https://x.example\n"},
			Group{Name: "go", Hosts: []string{"mirror.example", "one.example", "sums.example", "three.example", "two.example"}, From: []string{"GOPROXY", "/home/u/.config/go/env"}},
		},
		{
			"apt", nil, map[string]string{
				"/etc/apt/sources.list":              "# deb http://comment.example x\ndeb [arch=amd64 signed-by=/k] http://old.example/debian stable main\n",
				"/etc/apt/sources.list.d/a.sources":  "Types: deb\nURIs: https://new.example/debian\n https://second.example/\nSuites: stable\n https://stray.example\n",
				"/etc/apt/sources.list.d/b.disabled": "deb https://disabled.example x\n",
			},
			Group{Name: "apt", Hosts: []string{"new.example", "old.example", "second.example"}, From: []string{"/etc/apt/sources.list", "/etc/apt/sources.list.d/a.sources"}},
		},
	} {
		if got := Read(machine(row.env, row.files)); len(got) != 1 || !reflect.DeepEqual(got[0], row.want) {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
}

// Who wrote the project chose the hosts in its files.
func TestHostsOfTheProjectAreApart(t *testing.T) {
	const line = "registry=https://project.example/\n@a:registry=https://ours.example/\n"
	for _, row := range []struct {
		name       string
		change     func(*Machine)
		env, files map[string]string
		want       []Group
	}{
		{
			"npm", nil, nil, map[string]string{"/home/u/.npmrc": "registry=https://ours.example/\n", "/work/p/.npmrc": line},
			[]Group{{Name: "npm", Hosts: []string{"ours.example"}, From: []string{"/home/u/.npmrc"}}, {Name: "npm", Hosts: []string{"project.example"}, From: []string{"/work/p/.npmrc"}, Project: true}},
		},
		{
			"cargo", nil, map[string]string{"GOPROXY": "https://go.example"}, map[string]string{"/work/p/.cargo/config.toml": "[source.a]\nregistry = \"https://project.example\"\n"},
			[]Group{{Name: "go", Hosts: []string{"go.example"}, From: []string{"GOPROXY"}}, {Name: "cargo", Hosts: []string{"project.example"}, From: []string{"/work/p/.cargo/config.toml"}, Project: true}},
		},
		{
			"a variable that names a file of the project", nil, map[string]string{"PIP_CONFIG_FILE": "/work/p/x/../pip.conf"}, map[string]string{"/work/p/pip.conf": "index-url = https://project.example\n"},
			[]Group{{Name: "pip", Hosts: []string{"project.example"}, From: []string{"/work/p/x/../pip.conf"}, Project: true}},
		},
		{
			"an environment of Python", nil, map[string]string{"VIRTUAL_ENV": "/work/venv"}, map[string]string{"/work/venv/pip.conf": "index-url = https://project.example\n"},
			[]Group{{Name: "pip", Hosts: []string{"project.example"}, From: []string{"/work/venv/pip.conf"}, Project: true}},
		},
		{
			"the home as the directory", func(m *Machine) { m.Dir = "/home/u" }, nil, map[string]string{"/home/u/.npmrc": "registry=https://ours.example/\n"},
			[]Group{{Name: "npm", Hosts: []string{"ours.example"}, From: []string{"/home/u/.npmrc"}}},
		},
		{
			"the root as the directory", func(m *Machine) { m.Dir = "/" }, nil, map[string]string{"/etc/npmrc": "registry=https://ours.example/\n", "/.npmrc": line},
			[]Group{{Name: "npm", Hosts: []string{"ours.example"}, From: []string{"/etc/npmrc"}}, {Name: "npm", Hosts: []string{"project.example"}, From: []string{"/.npmrc"}, Project: true}},
		},
	} {
		m := machine(row.env, row.files)
		if row.change != nil {
			row.change(&m)
		}
		if got := Read(m); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
}

// A project cannot leave the user's own hosts without a place.
func TestManyHostsOfTheProjectDoNotReplaceTheUsers(t *testing.T) {
	var many strings.Builder
	for i := range 2 * maxHosts {
		fmt.Fprintf(&many, "@s%d:registry=https://h%d.example/\n", i, i)
	}
	got := Read(machine(map[string]string{"npm_config_userconfig": "/srv/npmrc"}, map[string]string{"/work/p/.npmrc": many.String(), "/srv/npmrc": "registry=https://ours.example/\n"}))
	if len(got) != 2 || !slices.Equal(got[0].Hosts, []string{"ours.example"}) || len(got[1].Hosts) != maxHosts {
		t.Errorf("%+v", got)
	}
}

func TestWhereNothingIsConfiguredThereIsNoGroup(t *testing.T) {
	if got := Read(machine(map[string]string{"GOPROXY": "direct", "PIP_INDEX_URL": "file:///srv/simple"}, nil)); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if got := Read(Machine{Env: func(string) (string, bool) { return "", false }, Files: fstest.MapFS{}}); len(got) != 0 {
		t.Errorf("without a home: %+v", got)
	}
}

func FuzzReadGivesHostsAndNothingElse(f *testing.F) {
	f.Add("registry=https://npm.example:99/\nindex-url = https://user:pass@[::1]:8/x\nGOPROXY=https://a|b", "https://x.example")
	f.Add("[source.a]\nregistry = \"https://\x00\"\nURIs: https://h\x1b[2J/", "https://a b")
	f.Fuzz(func(t *testing.T, file, value string) {
		env := map[string]string{"PIP_INDEX_URL": value, "GOPROXY": value, "GOSUMDB": value, "NPM_CONFIG_REGISTRY": value}
		files := map[string]string{"/home/u/.npmrc": file, "/etc/pip.conf": file, "/home/u/.cargo/config": file, "/home/u/.config/go/env": file, "/etc/apt/sources.list": file, "/etc/apt/sources.list.d/x.sources": file}
		for _, g := range Read(machine(env, files)) {
			if len(g.Hosts) > maxHosts || !slices.IsSorted(g.Hosts) {
				t.Errorf("%d hosts", len(g.Hosts))
			}
			for _, h := range g.Hosts {
				if strings.IndexFunc(h, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`@/"'#?\`, c) }) >= 0 {
					t.Errorf("a host %q", h)
				}
			}
		}
	})
}
