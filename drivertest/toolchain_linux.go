package drivertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// A HomeTool is a tool chain as its installer leaves it in a home: a directory that users have
// in PATH, a file that its programs need, and private files beside. Paths are relative to the
// home.
type HomeTool struct {
	Path    string   // directory in PATH
	Needs   []string // files that must be visible
	Private []string // files that must not be
}

// HomeTools lists tool chains with the places where they keep what is private: credentials,
// keys, history, sources of private packages.
func HomeTools() []HomeTool {
	return []HomeTool{
		{".local/bin", []string{".local/lib/python3.13/site-packages/x.py", ".local/share/pipx/venvs/x/bin/x", ".local/share/uv/tools/x/bin/x"},
			[]string{".local/share/keyrings/login.keyring", ".local/share/uv/credentials/credentials.toml", ".local/share/gem/credentials", ".local/state/history"}},
		{".local/share/mise/installs/node/22/bin", []string{".local/share/mise/installs/node/22/lib/node_modules/npm/x.js", ".local/share/mise/installs/java/21/conf/x"},
			[]string{".local/share/mise/installs/node/22/etc/npmrc", ".local/share/mise/installs/rust/1/credentials.toml", ".local/share/mise/trusted-configs/x"}},
		{".local/share/mise/shims", nil, []string{".local/share/mise/downloads/x"}},
		{".local/share/pnpm", []string{".local/share/pnpm/global/5/node_modules/x/x.js"}, []string{".local/share/pnpm/store/v10/files/00/x", ".local/share/pnpm/rc"}},
		{".local/share/fnm/node-versions/v22/installation/bin", []string{".local/share/fnm/node-versions/v22/installation/lib/node_modules/x.js"},
			[]string{".local/share/fnm/node-versions/v22/installation/etc/npmrc"}},
		{".local/share/swiftly/bin", []string{".local/share/swiftly/toolchains/6.2/usr/lib/x"}, []string{".local/share/swiftly/config.json"}},
		{".cargo/bin", []string{".rustup/toolchains/stable/lib/x", ".rustup/settings.toml"},
			[]string{".cargo/credentials.toml", ".cargo/config.toml", ".cargo/registry/src/x/lib.rs", ".cargo/git/db/x"}},
		{"go/bin", []string{"sdk/go1.26.0/bin/go", "sdk/go1.26.0/pkg/tool/x"}, []string{"go/pkg/mod/private.example.com/x.go", "go/src/mine/x.go", "sdk/notes", "sdk/go1.26.0/pkg/mod/x"}},
		{"sdk/go1.25.0/bin", []string{"sdk/go1.25.0/src/fmt/x.go"}, []string{"sdk/android/x.keystore"}},
		{".pyenv/shims", []string{".pyenv/versions/3.13/lib/python3.13/x.py", ".pyenv/libexec/pyenv", ".pyenv/version"},
			[]string{".pyenv/versions/3.13/pip.conf", ".pyenv/.git/config", ".pyenv/cache/x"}},
		{"miniconda3/bin", []string{"miniconda3/lib/x.so", "miniconda3/envs/x/lib/x.so", "miniconda3/ssl/cacert.pem"},
			[]string{"miniconda3/.condarc", "miniconda3/conda-meta/history", "miniconda3/conda-meta/state", "miniconda3/pkgs/x/x.py", "miniconda3/envs/x/conda-meta/state",
				"miniconda3/etc/conda/activate.d/env_vars.sh", "miniconda3/ssl/private/x.pem"}},
		{"anaconda3/bin", nil, []string{"anaconda3/.condarc"}},
		{"miniforge3/condabin", nil, []string{"miniforge3/.condarc"}},
		{"mambaforge/bin", nil, []string{"mambaforge/pkgs/x"}},
		{"micromamba/envs/x/bin", nil, []string{"micromamba/pkgs/x"}},
		{".conda/envs/x/bin", nil, []string{".conda/environments.txt", ".conda/.condarc", ".conda/tokens/x"}},
		{".pixi/bin", []string{".pixi/envs/x/bin/x"}, []string{".pixi/config.toml"}},
		{".poetry/bin", []string{".poetry/lib/x.py"}, []string{".poetry/auth.toml"}},
		{".rye/shims", []string{".rye/py/cpython/bin/python3", ".rye/self/bin/x"}, []string{".rye/credentials", ".rye/config.toml"}},
		{".nvm/versions/node/v22/bin", []string{".nvm/versions/node/v22/lib/node_modules/x.js", ".nvm/nvm.sh"}, []string{".nvm/versions/node/v22/etc/npmrc", ".nvm/.cache/x", ".nvm/.git/config"}},
		{".nodenv/shims", []string{".nodenv/versions/22/bin/node"}, []string{".nodenv/versions/22/etc/npmrc", ".nodenv/cache/x"}},
		{".volta/bin", []string{".volta/tools/image/node/22/bin/node", ".volta/tools/user/platform.json"}, []string{".volta/hooks.json", ".volta/tools/image/node/22/etc/npmrc", ".volta/log/x"}},
		{".npm-global/bin", []string{".npm-global/lib/node_modules/x.js"}, []string{".npm-global/etc/npmrc"}},
		{".npm-packages/bin", nil, []string{".npm-packages/etc/npmrc"}},
		{".yarn/bin", []string{".yarn/lib/x.js"}, []string{".yarn/berry/cache/x.zip"}},
		{".config/yarn/global/node_modules/.bin", []string{".config/yarn/global/node_modules/x/x.js"}, []string{".config/yarn/.npmrc", ".config/gcloud/credentials.db"}},
		{".bun/bin", []string{".bun/install/global/node_modules/x/x.js"}, []string{".bun/install/cache/private/x.js", ".bun/install/global/bunfig.toml"}},
		{".deno/bin", nil, []string{".deno/location_data/x/kv.sqlite3", ".deno/npm/x"}},
		{".rbenv/shims", []string{".rbenv/versions/3.4/lib/ruby/x.rb", ".rbenv/libexec/rbenv"}, []string{".rbenv/versions/3.4/etc/gemrc", ".rbenv/cache/x"}},
		{".rvm/bin", []string{".rvm/rubies/ruby-3.4/bin/ruby", ".rvm/gems/ruby-3.4/gems/x/x.rb"}, []string{".rvm/user/db", ".rvm/log/x"}},
		{".gem/ruby/3.4.0/bin", nil, []string{".gem/credentials"}},
		{".sdkman/candidates/java/21/bin", []string{".sdkman/candidates/java/21/conf/security/java.security", ".sdkman/candidates/maven/3/boot/x.jar", ".sdkman/bin/sdkman-init.sh"},
			[]string{".sdkman/candidates/maven/3/conf/settings.xml", ".sdkman/candidates/gradle/9/init.d/x.gradle", ".sdkman/etc/config", ".sdkman/archives/x"}},
		{".jbang/bin", []string{".jbang/cache/jdks/21/bin/java"}, []string{".jbang/trusted-sources.json", ".jbang/cache/urls/x"}},
		{".jenv/shims", []string{".jenv/libexec/jenv"}, []string{".jenv/.git/config"}},
		{".dotnet", []string{".dotnet/host/fxr/x.so", ".dotnet/shared/x.dll", ".dotnet/sdk/9/x.dll", ".dotnet/tools/.store/x/x.dll"},
			[]string{".dotnet/corefx/cryptography/x509stores/my/x.pfx", ".dotnet/optimizationdata/x", ".dotnet/TelemetryStorageService/x"}},
		{".asdf/shims", []string{".asdf/installs/golang/1.26/go/pkg/tool/x", ".asdf/plugins/nodejs/bin/exec-env", ".asdf/asdf.sh"},
			[]string{".asdf/installs/golang/1.26/packages/pkg/mod/x.go", ".asdf/installs/rust/1/credentials.toml", ".asdf/installs/nodejs/22/etc/npmrc", ".asdf/plugins/nodejs/.git/config"}},
		{".proto/shims", []string{".proto/tools/node/22/bin/node"}, []string{".proto/.prototools", ".proto/tools/node/22/etc/npmrc", ".proto/cache/x"}},
		{".ghcup/bin", []string{".ghcup/ghc/9.12/lib/x"}, []string{".ghcup/config.yaml", ".ghcup/logs/x"}},
		{".cabal/bin", []string{".cabal/store/ghc-9.12/x"}, []string{".cabal/config", ".cabal/packages/x"}},
		{".stack/programs/x86_64-linux/ghc-9.12/bin", []string{".stack/programs/x86_64-linux/ghc-9.12/lib/x"}, []string{".stack/upload/credentials.json", ".stack/config.yaml", ".stack/pantry/x"}},
		{".opam/default/bin", []string{".opam/default/lib/x.cma"}, []string{".opam/log/x.env", ".opam/config", ".opam/default/.opam-switch/sources/x"}},
		{".juliaup/bin", []string{".julia/juliaup/julia-1.12/bin/julia", ".julia/juliaup/juliaup.json"}, []string{".julia/servers/x/auth.toml", ".julia/logs/repl_history.jl", ".julia/dev/x.jl"}},
		{".elan/bin", []string{".elan/toolchains/x/bin/lean"}, []string{".elan/tmp/x"}},
		{".pub-cache/bin", []string{".pub-cache/global_packages/x/bin/x"}, []string{".pub-cache/credentials.json", ".pub-cache/hosted/private/x.dart"}},
		{".composer/vendor/bin", []string{".composer/vendor/autoload.php"}, []string{".composer/auth.json"}},
		{".config/composer/vendor/bin", []string{".config/composer/vendor/autoload.php"}, []string{".config/composer/auth.json"}},
		{"perl5/bin", []string{"perl5/lib/perl5/x.pm"}, []string{"perl5/.cpan/x"}},
		{".luarocks/bin", []string{".luarocks/share/lua/5.4/x.lua"}, []string{".luarocks/upload_config.lua"}},
		{".nimble/bin", []string{".nimble/pkgs2/x/x.nim"}, []string{".nimble/github_api_token"}},
		{"google-cloud-sdk/bin", []string{"google-cloud-sdk/lib/gcloud.py", "google-cloud-sdk/platform/x"}, []string{"google-cloud-sdk/properties", ".config/gcloud/access_tokens.db"}},
		{".krew/bin", []string{".krew/store/x/v1/x"}, []string{".krew/index/default/.git/config"}},
		{".linuxbrew/bin", []string{".linuxbrew/Cellar/x/1/bin/x", ".linuxbrew/etc/openssl@3/cert.pem"}, []string{".linuxbrew/etc/openssl@3/private/x.key", ".linuxbrew/var/postgres/x"}},
		// Directories of no tool chain: only they are shown.
		{".foundry/bin", nil, []string{".foundry/keystores/x"}},
		{"go/src/mine/bin", nil, []string{"go/src/mine/main.go"}},
	}
}

// ToolChains tests that commands see the programs of tool chains in the caller's home, with what
// the programs need, and nothing that lies beside. open opens a driver for a caller with this
// environment.
func ToolChains(t *testing.T, open func(state string, environ []string) (paddock.Driver, error)) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const text = "the home's own"
	var path, script []string
	for i, tool := range HomeTools() {
		program := fmt.Sprintf("tool-%d", i)
		homeFile(t, filepath.Join(home, tool.Path, program), fmt.Sprintf("#!/bin/sh\necho ran %s.\n", program), 0o755)
		path = append(path, filepath.Join(home, tool.Path))
		script = append(script, program)
		for _, name := range tool.Needs {
			homeFile(t, filepath.Join(home, name), "needed\n", 0o755)
			script = append(script, "cat '"+filepath.Join(home, name)+"' > /dev/null")
		}
		for _, name := range tool.Private {
			homeFile(t, filepath.Join(home, name), text, 0o644)
			script = append(script, "cat '"+filepath.Join(home, name)+"'; ls -d '"+filepath.Join(home, name)+"'")
		}
	}
	// An earlier sandbox, whose workspace held the directory, replaced it by a link.
	kept, planted := filepath.Join(home, ".kept/key"), filepath.Join(home, "project/bin")
	homeFile(t, kept, text, 0o644)
	homeFile(t, filepath.Join(home, "project/x"), "", 0o644)
	if err := os.Symlink(filepath.Dir(kept), planted); err != nil {
		t.Fatal(err)
	}
	script = append(script, "cat '"+kept+"'; cat '"+filepath.Join(planted, "key")+"'")
	path = append(path, planted, filepath.Join(home, ".pyenv/shims"), "/usr/bin", "/bin")
	// A shim that cannot do its work inside stands behind the version that it leads to.
	homeFile(t, filepath.Join(home, ".pyenv/shims/shimmed"), "#!/bin/sh\necho ran the shim.\n", 0o755)
	homeFile(t, filepath.Join(home, ".pyenv/versions/9.9/bin/shimmed"), "#!/bin/sh\necho ran the version.\n", 0o755)
	homeFile(t, filepath.Join(home, ".pyenv/version"), "9.9\n", 0o644)
	script = append(script, "shimmed")
	s := newSuite(t, Harness{New: func(state string) (paddock.Driver, error) {
		return open(state, []string{"HOME=" + home, "PATH=" + strings.Join(path, ":"), "DOTNET_ROOT=" + filepath.Join(home, ".dotnet")})
	}})
	b := s.own(t, func(spec *paddock.Spec) { spec.AllowMissing = Weak(t, s.h.New) })
	r := b.sh(t, strings.Join(append(script, `echo "root $DOTNET_ROOT"`), "\n")+"\n")
	for i, tool := range HomeTools() {
		if !strings.Contains(r.out, fmt.Sprintf("ran tool-%d.", i)) {
			t.Errorf("a program in %s did not run", tool.Path)
		}
		for _, name := range tool.Needs {
			if strings.Contains(r.err, name+": ") {
				t.Errorf("%s is not there for the programs in %s", name, tool.Path)
			}
		}
		for _, name := range tool.Private {
			if strings.Contains(r.out, name) {
				t.Errorf("%s is seen beside the programs in %s", name, tool.Path)
			}
		}
	}
	if !strings.Contains(r.out, "ran the version.") {
		t.Error("a shim of pyenv runs in place of the program that it leads to")
	}
	if strings.Contains(r.out, text) {
		t.Error("a private file of the home was read")
	}
	if !strings.Contains(r.out, "root "+home+"/.dotnet\n") {
		t.Error("the variable with a tool chain's directory is missing")
	}
}

func homeFile(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
