package box

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// toolchains shows the directories of a home that are in PATH, read-only. Other parts of
// homes are hidden.
func (l *Layout) toolchains(user []boxinit.Mount) {
	var shown []string
	for _, dir := range filepath.SplitList(l.env["PATH"]) {
		if !filepath.IsAbs(dir) {
			continue
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue
		}
		home, ok := homeOf(real, l.env["HOME"])
		if !ok {
			continue
		}
		for _, t := range toolchainOf(home, strings.TrimPrefix(real, home+"/")) {
			st, err := os.Lstat(t)
			if err != nil || st.Mode()&os.ModeSymlink != 0 || slices.ContainsFunc(shown, func(s string) bool { return Within(t, s) }) {
				continue
			}
			if slices.ContainsFunc(user, func(m boxinit.Mount) bool { return Within(t, m.Target) }) {
				continue // already shown by the spec
			}
			shown = append(shown, t)
			l.Add(boxinit.Mount{Kind: boxinit.MountBind, Target: t, Source: t, IsFile: !st.IsDir(), Maybe: true})
		}
	}
}

// homeOf returns the home that contains a path.
func homeOf(path, own string) (string, bool) {
	homes := []string{"/root", own}
	if rest, ok := strings.CutPrefix(path, "/home/"); ok {
		if name, _, ok := strings.Cut(rest, "/"); ok {
			homes = append(homes, "/home/"+name)
		}
	}
	for _, h := range homes {
		if h = filepath.Clean(h); filepath.IsAbs(h) && h != "/" && strings.HasPrefix(path, h+"/") {
			return h, true
		}
	}
	return "", false
}

// toolchainOf returns what a program in a PATH directory of a home needs to run: the
// toolchain around it, but nothing that also holds settings or keys.
func toolchainOf(home, dir string) []string {
	in := func(names ...string) []string {
		for i, n := range names {
			names[i] = filepath.Join(home, n)
		}
		return names
	}
	first, _, _ := strings.Cut(dir, "/")
	switch first {
	case ".local":
		return in(".local/bin", ".local/lib", ".local/share/pipx/venvs", ".local/share/uv/python", ".local/share/uv/tools", ".local/share/mise/installs", ".local/share/claude/versions")
	case ".cargo":
		return in(".cargo/bin", ".rustup/toolchains", ".rustup/settings.toml")
	case ".pyenv", ".rbenv", ".nodenv", ".nvm", ".bun", ".deno", ".volta", ".sdkman", ".asdf", ".rustup", ".ghcup", ".dotnet", "miniconda3", "anaconda3", "miniforge3", "mambaforge", "go", "sdk":
		return in(first)
	}
	// Anything else: only the programs, because their surroundings may be anything.
	return in(dir)
}
