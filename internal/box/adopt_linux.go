package box

import (
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
)

// Certificates returns the variables of an environment that name files of trusted certificates, with their
// real paths. A file that holds anything else, such as a key, is left out.
func Certificates(lookup func(string) (string, bool)) map[string]string {
	found := map[string]string{}
	for _, name := range paddock.CertificateVariables() {
		file, ok := lookup(name)
		if !ok || !filepath.IsAbs(file) {
			continue
		}
		if real, err := filepath.EvalSymlinks(file); err == nil && onlyCertificates(real) {
			found[name] = real
		}
	}
	return found
}

// certificatesMax bounds a file of certificates, in bytes. That of a system has 200 KB.
const certificatesMax = 4 << 20

// onlyCertificates reports whether a file holds certificates and nothing else.
func onlyCertificates(path string) bool {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() > certificatesMax {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, certificatesMax))
	if err != nil || strings.Contains(string(data), "PRIVATE KEY") { // also of a block that cannot be read
		return false
	}
	some := false
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if !slices.Contains([]string{"CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE"}, block.Type) {
			return false
		}
		some = true
	}
	return some
}

// certificates shows the files of certificates that the caller's variables name. Those that the box does
// not see where they are get a place of their own, also those below what is to be hidden.
func (l *Layout) certificates(hidden []string) {
	l.adopted = map[string]string{}
	places := map[string]string{}
	lookup := func(name string) (string, bool) { v, ok := l.env[name]; return v, ok }
	found := Certificates(lookup)
	for _, name := range paddock.CertificateVariables() { // in order
		real, ok := found[name]
		if !ok {
			continue
		}
		masked := slices.ContainsFunc(hidden, func(name string) bool { return hostroot.Within(real, name) })
		if at, ok := l.inside(real); ok && !masked {
			l.adopted[name] = at
			continue
		}
		if places[real] == "" {
			places[real] = filepath.Dir(authorityFile) + "/" + strings.ToLower(name) + ".pem"
			l.Add(boxinit.Mount{Kind: boxinit.MountBind, Target: places[real], Source: real, IsFile: true, Owned: true, Maybe: true})
		}
		l.adopted[name] = places[real]
	}
}

// An installer is a program that installs others below the home.
type installer struct {
	dir, bin string                          // of its own choice, below the home
	other    func(prefix string) [][2]string // variables by which it takes another prefix
}

func installers() []installer {
	return []installer{
		{".local", ".local/bin", func(prefix string) [][2]string {
			return [][2]string{{"UV_TOOL_BIN_DIR", prefix + "/bin"}, {"UV_TOOL_DIR", prefix + "/share/uv/tools"}}
		}},
		{"go", "go/bin", func(prefix string) [][2]string { return [][2]string{{"GOBIN", prefix + "/bin"}} }},
		{".cargo", ".cargo/bin", func(prefix string) [][2]string { return [][2]string{{"CARGO_INSTALL_ROOT", prefix}} }},
	}
}

// installed returns the directories of programs that commands install, and the variables by which
// installers find them. If a tool chain of the host is shown where an installer would write, it gets
// another place.
func (l *Layout) installed() (dirs []string, env map[string]string) {
	home := l.Config.User.Home
	shown := func(dir string) bool {
		return slices.ContainsFunc(l.Config.Mounts, func(m boxinit.Mount) bool {
			return (m.Kind == boxinit.MountBind || m.Kind == boxinit.MountLink) && hostroot.Within(m.Target, dir)
		})
	}
	prefix := home + "/.local"
	if shown(prefix) {
		prefix = home + "/.paddock"
		dirs = append(dirs, prefix+"/bin")
	}
	// Debian's pip refuses to install beside the packages of the system, which are read-only here.
	env = map[string]string{"NPM_CONFIG_PREFIX": prefix, "PIP_BREAK_SYSTEM_PACKAGES": "1"}
	for _, i := range installers() {
		if !shown(home + "/" + i.dir) {
			dirs = append(dirs, home+"/"+i.bin)
			continue
		}
		for _, v := range i.other(prefix) {
			env[v[0]] = v[1]
		}
	}
	return dirs, env
}

// chainHomes returns the directories of the caller's home in which tool chains expect to be, by the
// variables that say so. If the box has another home, the variable is needed.
func chainHomes() map[string]string {
	return map[string]string{"NVM_DIR": ".nvm", "PYENV_ROOT": ".pyenv", "RUSTUP_HOME": ".rustup", "SDKMAN_DIR": ".sdkman", "VOLTA_HOME": ".volta"}
}
