package auxiliary

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/moby/patternmatcher/ignorefile"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/image/dockerfile"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

// network is what RUN may reach.
func (f *buildFlags) network() (paddock.NetworkPolicy, error) {
	var n paddock.NetworkPolicy
	for _, list := range []struct {
		flag   string
		values []string
		deny   bool
	}{{"allow", f.allow, false}, {"deny", f.deny, true}} {
		for _, text := range list.values {
			for one := range strings.SplitSeq(text, ",") {
				rules, err := policy.Rules(strings.TrimSpace(one), list.deny, nil)
				if err != nil {
					return n, cli.WithHint(fmt.Errorf("--%s %s: %w", list.flag, text, err), "write a name, \"*.example.com\", an address, a range, or group:NAME, each with or without :PORT")
				}
				n.Rules = append(n.Rules, rules...)
			}
		}
	}
	if len(n.Rules) == 0 {
		return n, nil
	}
	n.Mode = paddock.NetworkList
	if _, err := decide.Compile(n); err != nil {
		return n, cli.WithHint(fmt.Errorf("network: %w", err), "see docs/reference/policy.md")
	}
	return n, nil
}

// arguments are the values of --build-arg.
func (f *buildFlags) arguments(a *cli.App) (map[string]string, error) {
	args := map[string]string{}
	for _, text := range f.args {
		name, value, given := strings.Cut(text, "=")
		if name == "" {
			return nil, cli.WithHint(fmt.Errorf("--build-arg %s: the name is empty: %w", text, paddock.Invalid), "write NAME=VALUE, or NAME to pass on your own")
		}
		if !given {
			if value, given = a.Lookup(name); !given {
				continue // as with docker: the Dockerfile's own value counts
			}
		}
		args[name] = value
	}
	return args, nil
}

const (
	maxSecret = 500 << 10
	secretHow = "write id=NAME,src=FILE or id=NAME,env=VARIABLE"
)

// secretValues are the values of --secret. What is refused is not repeated, because it may hold the secret itself.
func (f *buildFlags) secretValues(a *cli.App) (map[string][]byte, error) {
	values := map[string][]byte{}
	for _, text := range f.secrets {
		parts := map[string]string{}
		for one := range strings.SplitSeq(text, ",") {
			k, v, _ := strings.Cut(one, "=")
			switch k {
			case "id", "env":
			case "src", "source":
				k = "src"
			case "type":
				if v != "file" && v != "env" {
					return nil, cli.WithHint(fmt.Errorf("--secret: there is no such type: %w", paddock.Invalid), secretHow)
				}
				continue
			default:
				return nil, cli.WithHint(fmt.Errorf("--secret: it has a word that is none: %w", paddock.Invalid), secretHow)
			}
			if _, twice := parts[k]; twice || v == "" {
				return nil, cli.WithHint(fmt.Errorf("--secret: %s is empty or there twice: %w", k, paddock.Invalid), secretHow)
			}
			parts[k] = v
		}
		id, source, variable := parts["id"], parts["src"], parts["env"]
		switch {
		case id == "" || (source == "") == (variable == ""):
			return nil, cli.WithHint(fmt.Errorf("--secret: it needs a name, and a file or a variable: %w", paddock.Invalid), secretHow)
		case values[id] != nil:
			return nil, fmt.Errorf("--secret %s is given twice: %w", cli.OneLine(id), paddock.Invalid)
		case variable != "":
			value, ok := a.Lookup(variable)
			if !ok {
				return nil, cli.WithHint(fmt.Errorf("--secret %s: the variable is not set: %w", cli.OneLine(id), paddock.NotFound), "what follows env= is a variable that is exported here")
			}
			values[id] = []byte(value)
		default:
			data, err := readAll(os.OpenFile, absolute(a, source), maxSecret)
			if err != nil {
				return nil, fmt.Errorf("--secret %s: %w", cli.OneLine(id), err)
			}
			values[id] = data
		}
	}
	return values, nil
}

func absolute(a *cli.App, name string) string {
	if dir, err := a.Dir(); err == nil && !filepath.IsAbs(name) {
		return filepath.Join(dir, name)
	}
	return name
}

const (
	dockerfileName = "Dockerfile"
	ignoreName     = ".dockerignore"
)

// read reads the Dockerfile, and the patterns of files that are left out. Files of the context are opened in it, whatever
// links there are; a file that the caller names is opened as it is.
func (f *buildFlags) read(a *cli.App, dir *os.Root) (text []byte, ignore []string, err error) {
	open, name := dir.OpenFile, dockerfileName
	switch f.file {
	case "":
	case standard:
		text, err = limited(a.Stdin, dockerfile.MaxText)
		if err != nil {
			return nil, nil, fmt.Errorf("standard input: %w", err)
		}
	default:
		open, name = os.OpenFile, absolute(a, f.file)
	}
	if f.file != standard {
		if text, err = readAll(open, name, dockerfile.MaxText); err != nil {
			return nil, nil, cli.WithHint(fmt.Errorf("%s: %w", name, err), "-f FILE names a Dockerfile of another name")
		}
		list, err := ignored(open, name+ignoreName)
		if !errors.Is(err, paddock.NotFound) {
			return text, list, err
		}
	}
	list, err := ignored(dir.OpenFile, ignoreName)
	if errors.Is(err, paddock.NotFound) {
		return text, nil, nil
	}
	return text, list, err
}

func ignored(open func(string, int, fs.FileMode) (*os.File, error), name string) ([]string, error) {
	data, err := readAll(open, name, dockerfile.MaxText)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	list, err := ignorefile.ReadAll(strings.NewReader(string(data)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", filepath.Base(name), err, paddock.Invalid)
	}
	return list, nil
}

// readAll reads a file of a bounded size. It waits for nobody: what is no file is refused.
func readAll(open func(string, int, fs.FileMode) (*os.File, error), name string, most int64) ([]byte, error) {
	f, err := open(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no such file: %w", paddock.NotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("it cannot be opened: %w: %w", err, paddock.Denied)
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, fmt.Errorf("it is no regular file: %w", paddock.Invalid)
	}
	return limited(f, most)
}

func limited(r io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("it has more than %d bytes: %w", most, paddock.Exhausted)
	}
	return data, nil
}
