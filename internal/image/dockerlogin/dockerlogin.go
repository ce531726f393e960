// Package dockerlogin reads the registry credentials of the caller: the configuration of Docker or Podman, and the
// credential helpers that it names, which are programs. It is for the command line alone, where the caller and the owner
// of the credentials are one.
//
// The files are Docker's config.json (https://docs.docker.com/reference/cli/docker/#docker-cli-configuration-file-configjson-properties)
// and Podman's auth.json (containers-auth.json(5)); helpers speak the protocol of
// https://github.com/docker/docker-credential-helpers. A helper is found in directories of the system alone. PATH is not
// used, because it may have a directory that a sandbox writes, such as .venv/bin of a workspace: what a sandbox planted
// there would run outside.
package dockerlogin

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
	"github.com/paddock-sandbox/paddock/internal/image/registry"
)

// dockerHub is the host of references without one, which configurations know by other names.
const dockerHub = "docker.io"

// hubNames are those names, the one that `docker login` writes first.
func hubNames() []string {
	return []string{"https://index.docker.io/v1/", "index.docker.io", dockerHub}
}

// Bounds of what is read.
const (
	maxFile    = 1 << 20
	maxAnswer  = 64 << 10
	helperTime = time.Minute // a helper may ask a person
)

// token is the name by which a helper says that the secret is a token.
const token = "<token>"

// A Reader reads the caller's credentials.
type Reader struct {
	Lookup func(name string) (string, bool) // of the environment
	Env    []string                         // of helpers, but for PATH
	Dirs   []string                         // where helpers are found; nil is where the system has programs
	Say    func(string)                     // is told why there are no credentials where a configuration names some; nil tells nobody
}

// A configuration is the part of a file that is about credentials.
type configuration struct {
	Auths       map[string]entry  `json:"auths"`
	CredsStore  string            `json:"credsStore"`
	CredHelpers map[string]string `json:"credHelpers"`
}

type entry struct {
	Auth          string `json:"auth"` // NAME:PASSWORD in base64
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
}

// Credentials returns the caller's credentials for a registry. A caller without any has the zero value.
func (r Reader) Credentials(ctx context.Context, host string) (registry.Credentials, error) {
	for _, file := range r.files() {
		c, err := read(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return registry.Credentials{}, fmt.Errorf("credentials in %s: %w: %w", file, err, paddock.Invalid)
		}
		found, err := r.of(ctx, c, host)
		if err != nil {
			return registry.Credentials{}, fmt.Errorf("credentials in %s: %w", file, err)
		}
		if found != (registry.Credentials{}) {
			return found, nil
		}
	}
	return registry.Credentials{}, nil
}

// files lists the configurations, the first that counts first.
func (r Reader) files() (list []string) {
	add := func(variable string, parts ...string) {
		if dir, ok := r.Lookup(variable); ok && filepath.IsAbs(dir) {
			list = append(list, filepath.Join(append([]string{dir}, parts...)...))
		}
	}
	if dir, ok := r.Lookup("DOCKER_CONFIG"); ok && dir != "" {
		add("DOCKER_CONFIG", "config.json")
	} else {
		add("HOME", ".docker", "config.json")
	}
	add("REGISTRY_AUTH_FILE")
	add("XDG_RUNTIME_DIR", "containers", "auth.json")
	add("XDG_CONFIG_HOME", "containers", "auth.json")
	add("HOME", ".config", "containers", "auth.json")
	return list
}

// read reads a configuration. A FIFO in its place holds nobody up.
func read(name string) (configuration, error) {
	var c configuration
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return c, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return c, errors.Join(err, errors.New("it is no file"))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return c, err
	}
	if len(data) > maxFile {
		return c, fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, errors.New("it is not the JSON of a configuration")
	}
	return c, nil
}

// of returns what a configuration has for a registry: by the registry's helper, or that of all, or in the file.
func (r Reader) of(ctx context.Context, c configuration, host string) (registry.Credentials, error) {
	names := []string{host}
	if host == dockerHub {
		names = hubNames()
	}
	helper := c.CredsStore
	for _, name := range append(names, "https://"+host) {
		if own, ok := c.CredHelpers[name]; ok {
			helper = own
			break
		}
	}
	if helper != "" {
		found, err := r.ask(ctx, helper, names[0])
		if err != nil || found != (registry.Credentials{}) {
			return found, err
		}
	}
	for _, name := range names {
		for key, e := range c.Auths {
			if key == name || hostOf(key) == name {
				return e.credentials()
			}
		}
	}
	return registry.Credentials{}, nil
}

// hostOf returns the host of a key, which may be a URL.
func hostOf(key string) string {
	_, rest, ok := strings.Cut(key, "://")
	if !ok {
		rest = key
	}
	host, _, _ := strings.Cut(rest, "/")
	return host
}

func (e entry) credentials() (registry.Credentials, error) {
	c := registry.Credentials{Username: e.Username, Password: e.Password, Token: e.IdentityToken}
	if e.Auth == "" {
		return c, nil
	}
	data, err := base64.StdEncoding.DecodeString(e.Auth)
	if err != nil {
		data, err = base64.RawStdEncoding.DecodeString(e.Auth)
	}
	name, password, ok := strings.Cut(strings.TrimRight(string(data), "\x00"), ":")
	if err != nil || !ok {
		return registry.Credentials{}, fmt.Errorf("an auth is not NAME:PASSWORD in base64: %w", paddock.Invalid)
	}
	c.Username, c.Password = name, password
	return c, nil
}

// ask asks a credential helper. One that is not there, or has none, is the zero value.
func (r Reader) ask(ctx context.Context, helper, host string) (registry.Credentials, error) {
	program, err := r.find("docker-credential-" + helper)
	if err != nil {
		if r.Say != nil {
			r.Say(fmt.Sprintf("no credentials for %s: %v", host, err))
		}
		return registry.Credentials{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, helperTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "get")
	cmd.Dir, cmd.Stdin = "/", strings.NewReader(host)
	cmd.Env = append(without(r.Env, "PATH"), "PATH="+strings.Join(r.dirs(), string(filepath.ListSeparator)))
	var out, said bounded
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		if strings.Contains(out.String()+said.String(), "credentials not found") {
			return registry.Credentials{}, nil
		}
		return registry.Credentials{}, fmt.Errorf("%s: %w: %.200q: %w", program, err, strings.TrimSpace(out.String()+said.String()), paddock.Unavailable)
	}
	var answer struct{ Username, Secret string }
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		return registry.Credentials{}, fmt.Errorf("%s: its answer is not JSON: %w", program, paddock.Invalid)
	}
	if answer.Username == token {
		return registry.Credentials{Token: answer.Secret}, nil
	}
	return registry.Credentials{Username: answer.Username, Password: answer.Secret}, nil
}

func (r Reader) dirs() []string {
	if r.Dirs != nil {
		return r.Dirs
	}
	return hostroot.ProgramDirs()
}

// find finds a helper where no sandbox has planted it.
func (r Reader) find(name string) (string, error) {
	if name != filepath.Base(name) {
		return "", fmt.Errorf("%.100q is no name of a helper: %w", name, paddock.Invalid)
	}
	for _, dir := range r.dirs() {
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("%s is in none of %s, and PATH is not used, because a sandbox may write in it: %w", name, strings.Join(r.dirs(), ", "), paddock.NotFound)
}

// without returns an environment without a variable.
func without(env []string, name string) (list []string) {
	for _, one := range env {
		if !strings.HasPrefix(one, name+"=") {
			list = append(list, one)
		}
	}
	return list
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(data []byte) (int, error) {
	b.Buffer.Write(data[:min(len(data), maxAnswer-b.Len())])
	return len(data), nil
}
