package packageregistry

import (
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
			Group{"pip", []string{"a.example:8080", "b.example", "c.example", "pip.example"}, []string{"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX"}},
		},
		{
			"pip's files", nil, map[string]string{"/home/u/.config/pip/pip.conf": "[global]\nindex-url = https://pip.example/a=b\nextra-index-url =\n    https://one.example/simple\n    # https://comment.example\n    https://two.example/simple\ntimeout = 60\n[install]\n  https://stray.example\ntrusted-host = https://trusted.example\n"},
			Group{"pip", []string{"one.example", "pip.example", "two.example"}, []string{"/home/u/.config/pip/pip.conf"}},
		},
		{
			"npm", map[string]string{"NPM_CONFIG_REGISTRY": "https://env.example/"}, map[string]string{
				"/home/u/.npmrc": "registry=https://npm.example/\n//npm.example/:_authToken=hush\n; registry=https://comment.example\n",
				"/work/p/.npmrc": "@team:registry = \"https://team.example:4873/\"\nproxy=https://proxy.example\n",
			},
			Group{"npm", []string{"env.example", "npm.example", "team.example:4873"}, []string{"NPM_CONFIG_REGISTRY", "/home/u/.npmrc", "/work/p/.npmrc"}},
		},
		{
			"cargo", nil, map[string]string{"/home/u/.cargo/config.toml": "[registries.mine]\nindex = \"sparse+https://index.example/i/\" # ours\n[source.mirror]\nregistry = 'https://mirror.example'\n[http]\nproxy = \"https://proxy.example\"\n"},
			Group{"cargo", []string{"index.example", "mirror.example"}, []string{"/home/u/.cargo/config.toml"}},
		},
		{
			"go", map[string]string{"GOPROXY": "https://one.example,https://two.example|direct", "GOSUMDB": "off"}, map[string]string{"/home/u/.config/go/env": "GOPROXY=https://three.example\nGOSUMDB=sums.example+abc https://mirror.example/sums\nGOFLAGS=https://x.example\n"},
			Group{"go", []string{"mirror.example", "one.example", "sums.example", "three.example", "two.example"}, []string{"GOPROXY", "/home/u/.config/go/env"}},
		},
		{
			"apt", nil, map[string]string{
				"/etc/apt/sources.list":              "# deb http://comment.example x\ndeb [arch=amd64 signed-by=/k] http://old.example/debian stable main\n",
				"/etc/apt/sources.list.d/a.sources":  "Types: deb\nURIs: https://new.example/debian\n https://second.example/\nSuites: stable\n https://stray.example\n",
				"/etc/apt/sources.list.d/b.disabled": "deb https://disabled.example x\n",
			},
			Group{"apt", []string{"new.example", "old.example", "second.example"}, []string{"/etc/apt/sources.list", "/etc/apt/sources.list.d/a.sources"}},
		},
	} {
		if got := Read(machine(row.env, row.files)); len(got) != 1 || !reflect.DeepEqual(got[0], row.want) {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
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
