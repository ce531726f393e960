package sudo

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// A Request asks for a command. Three descriptors accompany it, the streams of the command, and the
// caller's credentials, which the kernel vouches for.
type Request struct {
	User     []byte   `json:"user,omitempty"` // name or number; empty is root
	Args     [][]byte `json:"args,omitempty"` // empty only with Shell
	Dir      []byte   `json:"dir,omitempty"`  // absolute; empty is the user's home with Login, else "/"
	Env      [][]byte `json:"env,omitempty"`  // NAME=value, what it keeps of the caller's
	Set      [][]byte `json:"set,omitempty"`  // NAME=value, which wins over all
	Shell    bool     `json:"shell,omitempty"`
	Login    bool     `json:"login,omitempty"`     // as Shell, and the environment is a login's
	KeepHome bool     `json:"keep_home,omitempty"` // HOME is the caller's
	Terminal bool     `json:"terminal,omitempty"`  // descriptor 0 becomes the controlling terminal
}

// An Answer is the agent's last message.
type Answer struct {
	Error  string `json:"error,omitempty"` // why there was no command
	Code   int    `json:"code"`            // of its end
	Signal int    `json:"signal,omitempty"`
}

// Bounds of a message, in bytes.
const (
	MaxRequest = 256 << 10
	maxAnswer  = 64 << 10
	maxWords   = 32 << 10 // arguments and variables, each
)

// Head is the size of a message's head in bytes: the length of the message, lowest byte first.
const Head = 4

// Length reads a head.
func Length(head [Head]byte, most int) (int, error) {
	n := binary.LittleEndian.Uint32(head[:])
	if uint64(n) > uint64(most) {
		return 0, fmt.Errorf("a message of %d bytes: %w", n, paddock.Invalid)
	}
	return int(n), nil
}

// Encode returns a message with its head.
func Encode(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(data))), data...), nil
}

// Decode reads a request, and refuses a request that describes no valid command.
func Decode(data []byte) (*Request, error) {
	wrong := func(what string) (*Request, error) {
		return nil, fmt.Errorf("%s: %w", what, paddock.Invalid)
	}
	if len(data) > MaxRequest {
		return wrong("the request is too long")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	r := &Request{}
	if err := d.Decode(r); err != nil {
		return wrong("the request cannot be read")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return wrong("something follows the request")
	}
	if len(r.Args)+len(r.Env)+len(r.Set) > maxWords {
		return wrong("too many arguments or variables")
	}
	if r.Login {
		r.Shell = true
	}
	if !r.Shell && (len(r.Args) == 0 || len(r.Args[0]) == 0) {
		return wrong("a command needs a program")
	}
	for _, list := range [][][]byte{r.Args, r.Env, r.Set, {r.User, r.Dir}} {
		for _, text := range list {
			if bytes.IndexByte(text, 0) >= 0 {
				return wrong("there is a NUL byte in it")
			}
		}
	}
	if len(r.Dir) > 0 && r.Dir[0] != '/' {
		return wrong("the directory is not absolute")
	}
	for _, list := range [][][]byte{r.Env, r.Set} {
		for _, v := range list {
			if bytes.IndexByte(v, '=') < 1 {
				return wrong("a variable has no name")
			}
		}
	}
	return r, nil
}

// ReadAnswer reads the agent's answer.
func ReadAnswer(r io.Reader) (a Answer, err error) {
	var head [Head]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return a, err
	}
	n, err := Length(head, maxAnswer)
	if err != nil {
		return a, err
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(r, data); err != nil {
		return a, err
	}
	return a, json.Unmarshal(data, &a)
}

// An Account is a user of the sandbox.
type Account struct {
	Name  string
	UID   int
	GID   int
	Home  string
	Shell string
}

// Command returns the command to execute as a user: the program name to look up, its arguments (the
// first is its own name), its environment and its directory.
func (r *Request) Command(as, caller Account) (program string, args []string, env map[string]string, dir string) {
	for _, a := range r.Args {
		args = append(args, string(a))
	}
	line := strings.Join(args, " ")
	env = map[string]string{}
	put := func(list [][]byte) {
		for _, v := range list {
			name, value, _ := strings.Cut(string(v), "=")
			env[name] = value
		}
	}
	put(r.Env)
	shell := as.Shell
	if own := env["SHELL"]; r.Shell && !r.Login && own != "" {
		shell = own
	}
	if shell == "" {
		shell = "/bin/sh"
	}
	if r.KeepHome && env["HOME"] != "" {
		// As the caller has it.
	} else {
		env["HOME"] = as.Home
	}
	env["PATH"], env["USER"], env["LOGNAME"] = SecurePath, as.Name, as.Name
	if env["SHELL"] == "" || r.Login {
		env["SHELL"] = shell
	}
	if env["TERM"] == "" {
		env["TERM"] = "unknown"
	}
	dir = string(r.Dir)
	if dir == "" {
		dir = "/"
		if r.Login && as.Home != "" {
			dir = as.Home
		}
	}
	if r.Shell {
		name := shell
		if r.Login {
			name = "-" + shell[strings.LastIndexByte(shell, '/')+1:]
		}
		given := args
		program, args = shell, []string{name}
		if len(given) > 0 {
			args, line = append(args, "-c", quote(given)), shell+" -c "+quote(given)
		} else {
			line = shell
		}
	} else {
		program = args[0]
	}
	env["SUDO_COMMAND"], env["SUDO_USER"] = line, caller.Name
	env["SUDO_UID"], env["SUDO_GID"] = fmt.Sprint(caller.UID), fmt.Sprint(caller.GID)
	put(r.Set)
	return program, args, env, dir
}

// quote makes one line of a shell's of arguments, as sudo does: what could mean
// something to a shell is escaped, but for the dollar sign.
func quote(args []string) string {
	var b strings.Builder
	for i, a := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		for j := range len(a) {
			c := a[j]
			plain := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80 || c == '_' || c == '-' || c == '$'
			if !plain {
				b.WriteByte('\\')
			}
			b.WriteByte(c)
		}
	}
	return b.String()
}
