package box

import (
	"path"
	"slices"
)

// A chain is a tool chain in a home: where its programs are, and which files they need to run.
// Everything else in its directories stays hidden, also what a later version puts there. The
// comment of each entry lists what lies beside the shown files.
type chain struct {
	// in lists directories of the home. A directory in PATH that is one of them, or below,
	// belongs to the chain.
	in []string
	// shows lists what programs need, as paths in the home. A component may be a pattern of
	// path.Match, which matches real directories only.
	shows []string
	// loose means that programs lie in the first directory of in itself. Then its regular
	// files that may be executed are shown too.
	loose bool
	// only is a file of the home that must exist for the chain to be there.
	only string
}

// chains returns the tool chains. If a directory in PATH belongs to several, the one with the
// longest entry of in is taken, then the first.
func chains() []chain {
	return []chain{
		// Programs of users, and of installers that link there. Beside: share/keyrings,
		// share/uv/credentials, share/gem/credentials, state, histories, data of desktop programs.
		{in: []string{".local"}, shows: append([]string{".local/bin", ".local/lib", ".local/share/pipx/venvs", ".local/pipx/venvs",
			".local/share/uv/python", ".local/share/uv/tools", ".local/share/claude/versions", ".local/share/pypoetry/venv",
			".local/share/gem/ruby", ".local/share/mise/shims", ".local/state/cabal/store"},
			installs(".local/share/mise/installs")...)},
		// mise. Beside: trusted-configs, downloads, and what tools keep in their installs: npmrc, CARGO_HOME, GOPATH.
		{in: []string{".local/share/mise"}, shows: append(installs(".local/share/mise/installs"), ".local/share/mise/shims", ".local/bin/mise")},
		// pnpm. Beside: store, the code of every package, private ones too.
		{in: []string{".local/share/pnpm"}, loose: true, shows: append([]string{".local/share/pnpm/bin", ".local/share/pnpm/global",
			".local/share/pnpm/.tools"}, prefixes(".local/share/pnpm/nodejs/*")...)},
		// fnm. Beside: each installation's etc/npmrc, which may hold tokens of registries.
		{in: []string{".local/share/fnm", ".fnm"}, shows: append(prefixes(".local/share/fnm/node-versions/*/installation"),
			append(prefixes(".fnm/node-versions/*/installation"), ".fnm/fnm", ".local/share/fnm/fnm")...)},
		// Swift's installer. Beside: configuration and downloads.
		{in: []string{".local/share/swiftly"}, shows: []string{".local/share/swiftly/bin", ".local/share/swiftly/toolchains"}},

		// Rust. Beside: credentials.toml, config.toml, and registry and git, the sources of every crate.
		{in: []string{".cargo", ".rustup"}, shows: []string{".cargo/bin", ".rustup/toolchains", ".rustup/settings.toml", ".rustup/update-hashes"}},
		// Go unpacked into the home: VERSION tells it from a GOPATH. Beside: pkg/mod, every module's source.
		{in: []string{"go"}, only: "go/VERSION", shows: goroot("go", "sdk/*")},
		// Programs of go install. Beside: pkg/mod, and src, the user's own code.
		{in: []string{"go"}, shows: append(goroot("sdk/*"), "go/bin")},
		{in: []string{"sdk"}, shows: goroot("sdk/*")},

		// Python. Beside: cache, the clone's .git, and a version's pip.conf, which may hold an index's password.
		{in: []string{".pyenv"}, shows: append(prefixes(".pyenv/versions/*", ".pyenv/versions/*/envs/*"), ".pyenv/bin", ".pyenv/libexec", ".pyenv/shims",
			".pyenv/plugins/*/bin", ".pyenv/plugins/*/libexec", ".pyenv/plugins/*/shims", ".pyenv/plugins/*/etc/pyenv.d", ".pyenv/pyenv.d", ".pyenv/completions",
			".pyenv/version", ".pyenv/versions/*/pyvenv.cfg", ".pyenv/versions/*/envs/*/pyvenv.cfg")},
		// Conda. Beside: .condarc and conda-meta/history, whose channels may have tokens; conda-meta/state and
		// etc/conda/activate.d, where users keep variables; pkgs, every package.
		{in: []string{"miniconda3"}, shows: conda("miniconda3")},
		{in: []string{"anaconda3"}, shows: conda("anaconda3")},
		{in: []string{"miniforge3"}, shows: conda("miniforge3")},
		{in: []string{"mambaforge"}, shows: conda("mambaforge")},
		{in: []string{"micromamba"}, shows: conda("micromamba")},
		{in: []string{".conda"}, shows: prefixes(".conda/envs/*")},
		// pixi. Beside: config.toml.
		{in: []string{".pixi"}, shows: append(prefixes(".pixi/envs/*"), ".pixi/bin")},
		// Poetry's first installer. Beside: nothing known; auth.toml is in .config/pypoetry.
		{in: []string{".poetry"}, shows: []string{".poetry/bin", ".poetry/lib"}},
		// Rye. Beside: credentials, config.toml.
		{in: []string{".rye"}, shows: append(prefixes(".rye/py/*", ".rye/tools/*"), ".rye/shims", ".rye/self", ".rye/uv", ".rye/pip-tools",
			".rye/tools/*/pyvenv.cfg")},

		// Node. Beside: .cache, and each version's etc/npmrc, which may hold tokens of registries.
		{in: []string{".nvm"}, shows: append(prefixes(".nvm/versions/*/*"), ".nvm/alias", ".nvm/nvm.sh", ".nvm/nvm-exec")},
		{in: []string{".nodenv"}, shows: env(".nodenv")},
		// Volta. Beside: hooks.json, log, tools/inventory, and each image's etc/npmrc.
		{in: []string{".volta"}, shows: append(prefixes(".volta/tools/image/node/*", ".volta/tools/image/npm/*", ".volta/tools/image/yarn/*", ".volta/tools/image/pnpm/*",
			".volta/tools/image/packages/*", ".volta/tools/image/packages/*/*"), ".volta/bin", ".volta/tools/user", ".volta/tools/shared", ".volta/layout.v4")},
		// A prefix of npm, as its documentation suggests. Beside: etc/npmrc.
		{in: []string{".npm-global"}, shows: prefixes(".npm-global")},
		{in: []string{".npm-packages"}, shows: prefixes(".npm-packages")},
		// Yarn. Beside: berry/cache and switch, every package.
		{in: []string{".yarn"}, shows: []string{".yarn/bin", ".yarn/lib"}},
		{in: []string{".config/yarn"}, shows: []string{".config/yarn/global/node_modules"}},
		// Bun. Beside: install/cache, every package.
		{in: []string{".bun"}, shows: []string{".bun/bin", ".bun/install/global/node_modules"}},
		// Deno. Beside: what a DENO_DIR there holds: gen, npm, location_data with programs' stored data.
		{in: []string{".deno"}, shows: []string{".deno/bin"}},

		// Ruby. Beside: a version's etc/gemrc, cache.
		{in: []string{".rbenv"}, shows: env(".rbenv")},
		// Beside: user, log, archives.
		{in: []string{".rvm"}, shows: append(prefixes(".rvm/rubies/*"), ".rvm/bin", ".rvm/gems/*/bin", ".rvm/gems/*/gems", ".rvm/gems/*/specifications",
			".rvm/gems/*/extensions", ".rvm/scripts", ".rvm/wrappers", ".rvm/environments")},
		// Beside: credentials.
		{in: []string{".gem"}, shows: []string{".gem/ruby"}},

		// Java. Beside: maven's conf/settings.xml, which may hold passwords; gradle's init.d; etc, ext, archives.
		{in: []string{".sdkman"}, shows: append(prefixes(".sdkman/candidates/*/*"), ".sdkman/bin", ".sdkman/src", ".sdkman/libexec", ".sdkman/var",
			".sdkman/candidates/java/*/conf", ".sdkman/candidates/java/*/jre", ".sdkman/candidates/*/*/boot", ".sdkman/candidates/maven/*/conf/logging",
			".sdkman/candidates/groovy/*/conf")},
		// Beside: trusted-sources.json, jbang.properties, cache/urls.
		{in: []string{".jbang"}, shows: append(prefixes(".jbang/cache/jdks/*"), ".jbang/bin", ".jbang/cache/jdks/*/conf")},
		{in: []string{".jenv"}, shows: env(".jenv")},

		// .NET. Beside: corefx/cryptography/x509stores with private keys, and telemetry's state.
		{in: []string{".dotnet"}, loose: true, shows: []string{".dotnet/host", ".dotnet/shared", ".dotnet/sdk", ".dotnet/packs", ".dotnet/templates",
			".dotnet/sdk-manifests", ".dotnet/metadata/workloads", ".dotnet/library-packs", ".dotnet/tools"}},

		// Version managers of many languages. Beside: downloads, and what tools keep in their installs: npmrc, CARGO_HOME, GOPATH.
		{in: []string{".asdf"}, shows: append(installs(".asdf/installs"), ".asdf/bin", ".asdf/lib", ".asdf/libexec", ".asdf/shims", ".asdf/asdf.sh", ".asdf/defaults",
			".asdf/plugins/*/bin", ".asdf/plugins/*/lib", ".asdf/plugins/*/share")},
		// Beside: .prototools with variables, cache, temp.
		{in: []string{".proto"}, shows: append(installs(".proto/tools"), ".proto/bin", ".proto/shims", ".proto/plugins")},

		// Haskell. Beside: config.yaml, cache, logs.
		{in: []string{".ghcup"}, shows: []string{".ghcup/bin", ".ghcup/ghc", ".ghcup/hls"}},
		// Beside: config with a password of Hackage, packages, logs.
		{in: []string{".cabal"}, shows: []string{".cabal/bin", ".cabal/store"}},
		// Beside: upload/credentials.json, config.yaml, pantry.
		{in: []string{".stack"}, shows: []string{".stack/programs"}},
		// OCaml. Beside: log with environments, repo and download-cache with sources.
		{in: []string{".opam"}, shows: prefixes(".opam/*")},
		// Julia. Beside: .julia/servers with tokens, packages, dev, logs with what was typed.
		{in: []string{".juliaup", ".julia"}, shows: []string{".juliaup/bin", ".julia/juliaup"}},
		// Lean. Beside: nothing known.
		{in: []string{".elan"}, shows: []string{".elan/bin", ".elan/toolchains", ".elan/settings.toml"}},
		// Dart. Beside: credentials.json, hosted with every package.
		{in: []string{".pub-cache"}, shows: []string{".pub-cache/bin", ".pub-cache/global_packages"}},
		// PHP. Beside: auth.json.
		{in: []string{".composer"}, shows: []string{".composer/vendor"}},
		{in: []string{".config/composer"}, shows: []string{".config/composer/vendor"}},
		// Perl. Beside: nothing known.
		{in: []string{"perl5"}, shows: append(prefixes("perl5/perlbrew/perls/*"), "perl5/bin", "perl5/lib", "perl5/perlbrew/bin")},
		// Lua. Beside: upload_config.lua with a key.
		{in: []string{".luarocks"}, shows: []string{".luarocks/bin", ".luarocks/lib", ".luarocks/share"}},
		// Nim. Beside: github_api_token.
		{in: []string{".nimble"}, shows: []string{".nimble/bin", ".nimble/pkgs", ".nimble/pkgs2", ".choosenim/toolchains"}},

		// Google Cloud. Beside: .install, properties; credentials are in .config/gcloud.
		{in: []string{"google-cloud-sdk"}, shows: []string{"google-cloud-sdk/bin", "google-cloud-sdk/lib", "google-cloud-sdk/platform", "google-cloud-sdk/VERSION"}},
		// Plug-ins of kubectl. Beside: index, receipts.
		{in: []string{".krew"}, shows: []string{".krew/bin", ".krew/store"}},
		// Homebrew, also as /home/linuxbrew/.linuxbrew. Beside: etc with keys of services, var with their data, .git.
		{in: []string{".linuxbrew"}, shows: append(prefixes(".linuxbrew"), ".linuxbrew/Cellar", ".linuxbrew/opt", ".linuxbrew/Homebrew/bin", ".linuxbrew/Homebrew/Library",
			".linuxbrew/etc/ca-certificates", ".linuxbrew/etc/openssl@3/cert.pem", ".linuxbrew/etc/openssl@3/openssl.cnf", ".linuxbrew/etc/fonts")},
	}
}

// prefixes returns the parts of installation prefixes that programs need. It leaves out etc
// and the top, where package managers keep settings with tokens (npmrc, pip.conf, gemrc).
func prefixes(dirs ...string) []string {
	return parts(dirs, "bin", "sbin", "lib", "lib32", "lib64", "libexec", "include", "share", "jmods", "legal", "release")
}

// goroot returns what programs need of installations of Go. It leaves out pkg/mod.
func goroot(dirs ...string) []string {
	return parts(dirs, "bin", "src", "lib", "misc", "pkg/include", "pkg/tool", "VERSION", "go.env")
}

// installs returns what programs need of the tools that a version manager has installed below
// TOOL/VERSION in dir.
func installs(dir string) []string {
	all := path.Join(dir, "*/*")
	return slices.Concat(prefixes(all), goroot(path.Join(all, "go"), path.Join(dir, "go/*")), parts([]string{path.Join(dir, "java/*")}, "conf", "jre"))
}

// parts returns each name in each directory.
func parts(dirs []string, names ...string) []string {
	var shows []string
	for _, dir := range dirs {
		for _, name := range names {
			shows = append(shows, path.Join(dir, name))
		}
	}
	return shows
}

// env returns what programs need of rbenv and its kin.
func env(dir string) []string {
	return append(prefixes(path.Join(dir, "versions/*")), parts([]string{dir}, "bin", "libexec", "shims", "version", "completions",
		"plugins/*/bin", "plugins/*/libexec", "plugins/*/etc", dir[1:]+".d")...)
}

// conda returns what programs need of an installation of conda and of its environments.
func conda(dir string) []string {
	both := []string{dir, path.Join(dir, "envs/*")}
	return slices.Concat(prefixes(both...), parts(both, "etc/fonts", "ssl/cert.pem", "ssl/cacert.pem", "ssl/openssl.cnf", "plugins", "qml",
		"translations", "resources", "x86_64-conda-linux-gnu", "aarch64-conda-linux-gnu"), parts([]string{dir}, "condabin", "shell"))
}
