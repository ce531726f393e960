package e2b

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
)

// Times of a template's start command, as E2B's.
const (
	readyEvery  = 2 * time.Second
	readyWithin = 10 * time.Minute
	stepTime    = time.Hour
	usualReady  = "sleep 20"
)

// A work is the sandbox of a build, with the settings of its steps.
type work struct {
	b    *build
	h    *Handler
	sb   paddock.Sandbox
	env  map[string]string
	own  string // the sandbox's user
	user string
	dir  string
}

// do runs a step.
func (w *work) do(ctx context.Context, where string, s step) error {
	w.b.say("info", where, s.Type+" "+strings.Join(s.Args, " "))
	switch s.Type {
	case "RUN":
		who := w.user
		if len(s.Args) == 2 && s.Args[1] != "" {
			who = s.Args[1]
		}
		return w.runs(ctx, where, who, s.Args[0])
	case "COPY":
		return w.copies(ctx, where, s)
	case "ENV":
		return w.sets(s.Args)
	case "WORKDIR":
		return w.enters(ctx, w.absolute(s.Args[0]))
	case "USER":
		if err := w.knows(ctx, s.Args[0]); err != nil {
			return err
		}
		w.user = s.Args[0]
	}
	return nil
}

// sets gives variables their values, which may refer to earlier ones.
func (w *work) sets(args []string) error {
	size := sizeOf(w.env)
	for i := 0; i+1 < len(args); i += 2 {
		name := args[i]
		if err := environment(map[string]string{name: args[i+1]}); err != nil {
			return err
		}
		if old, ok := w.env[name]; ok {
			size -= len(name) + len(old)
		}
		value, ok := expand(args[i+1], w.env, paddock.MaxEnv-size-len(name))
		if !ok {
			return fmt.Errorf("ENV %s: with its value the environment would exceed the maximum of %d bytes: %w", dialect.Printable(name), paddock.MaxEnv, paddock.Exhausted)
		}
		w.env[name] = value
		size += len(name) + len(value)
	}
	return nil
}

// expand replaces $NAME and ${NAME} in a text by variables. It returns false if the result
// would have more than most bytes. It allocates no more than that beyond the text itself,
// because A=$A$A doubles A each time, and a short request could exhaust the machine.
func expand(text string, vars map[string]string, most int) (string, bool) {
	left := most
	text = os.Expand(text, func(name string) string {
		value := vars[name]
		if left -= len(value); left < 0 {
			left = -1 // and no later value fits
			return ""
		}
		return value
	})
	return text, left >= 0 && len(text) <= most
}

func (w *work) absolute(name string) string {
	if name == "~" || strings.HasPrefix(name, "~/") {
		name = w.home() + name[1:]
	}
	if !path.IsAbs(name) {
		name = w.dir + "/" + name
	}
	return path.Clean(name)
}

func (w *work) home() string {
	if w.user == "root" {
		return "/root"
	}
	return "/home/" + w.user
}

// opens lets the steps of all users create files directly in directories that belong to the
// sandbox's own user. In E2B, root creates them; here root has no capabilities for that.
// The returned function restores the permissions of each directory whose permissions no
// step changed.
func (w *work) opens(ctx context.Context, places ...string) (func(context.Context) error, error) {
	const open = 0o777
	files := w.sb.FS()
	was := map[string]fs.FileMode{}
	for _, name := range places {
		st, err := files.Stat(ctx, name)
		if errors.Is(err, paddock.NotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("open %s to steps: %w", name, err)
		}
		if st.User != w.own {
			continue
		}
		switch err := files.Chmod(ctx, name, open); {
		case errors.Is(err, paddock.Denied):
			continue // on a tier with a read-only tree
		case err != nil:
			return nil, fmt.Errorf("open %s to steps: %w", name, err)
		}
		was[name] = st.Mode.Perm()
	}
	return func(ctx context.Context) error {
		for name, mode := range was {
			st, err := files.Stat(ctx, name)
			if errors.Is(err, paddock.NotFound) {
				continue // a step removed it
			}
			if err == nil && st.Mode.Perm() == open {
				err = files.Chmod(ctx, name, mode)
			}
			if err != nil {
				return fmt.Errorf("close %s after the steps: %w", name, err)
			}
		}
		return nil
	}, nil
}

// enters makes a directory the working directory of later steps. It is created with the
// rights of the sandbox's own user, who may create more than root without capabilities. For
// steps of another user it is made writable to all, because its owner cannot be changed.
func (w *work) enters(ctx context.Context, dir string) error {
	files := w.sb.FS()
	_, err := files.Stat(ctx, dir)
	isNew := errors.Is(err, paddock.NotFound)
	if err = files.Mkdir(ctx, dir, paddock.MkdirOptions{Parents: true}); err == nil && isNew && w.user != w.own {
		err = files.Chmod(ctx, dir, 0o777)
	}
	if err != nil {
		return fmt.Errorf("make the directory %s: %w", dialect.Printable(dir), err)
	}
	w.dir = dir
	return nil
}

// knows returns E2B's error if there is no user of a name.
func (w *work) knows(ctx context.Context, name string) error {
	exit, err := w.exec(ctx, "", paddock.Cmd{Args: []string{"/bin/bash", "-c", `id -u -- "$1" >/dev/null 2>&1`, "user", name}, Env: w.env, Dir: "/", Timeout: time.Minute}, nil)
	if err == nil && exit.Code != 0 {
		return fmt.Errorf("unauthenticated: invalid username: '%s'", dialect.Printable(name))
	}
	return err
}

// runs executes a shell command, and writes its output to the log.
func (w *work) runs(ctx context.Context, where, who, command string) error {
	if who != w.user {
		if err := w.knows(ctx, who); err != nil {
			return fmt.Errorf("failed to run command '%s': command failed: %w", dialect.Printable(command), err)
		}
	}
	out, errs := &liner{say: func(text string) { w.b.say("info", where, "[stdout]: "+text) }}, &liner{say: func(text string) { w.b.say("info", where, "[stderr]: "+text) }}
	exit, err := w.exec(ctx, who, paddock.Cmd{
		Args: []string{"/bin/bash", "-l", "-c", command}, Env: w.env, Dir: w.dir, Timeout: stepTime, Output: paddock.Output{Stdout: out, Stderr: errs},
	}, nil)
	out.end()
	errs.end()
	switch {
	case err != nil:
		return fmt.Errorf("failed to run command '%s': %w", dialect.Printable(command), err)
	case exit.Cause != paddock.Exited || exit.Code != 0:
		return fmt.Errorf("failed to run command '%s': %s", dialect.Printable(command), told(exit))
	}
	return nil
}

// told describes a failed exit.
func told(e paddock.Exit) string {
	if e.Cause == paddock.Exited {
		return fmt.Sprintf("exit status %d", e.Code)
	}
	return string(e.Cause)
}

// other returns the user of later steps, or "" if it is the sandbox's own.
func (w *work) other() string {
	if w.user == w.own {
		return ""
	}
	return w.user
}

// exec runs a command as a user and waits for its end. in is its input, or nil.
func (w *work) exec(ctx context.Context, who string, cmd paddock.Cmd, in io.Reader) (paddock.Exit, error) {
	if cmd.Input = in != nil; who != w.own {
		cmd.User = who
	}
	p, err := w.sb.Start(ctx, cmd)
	if err != nil {
		return paddock.Exit{}, err
	}
	defer p.Release()
	stop := context.AfterFunc(ctx, p.Release) // which ends a write that the command does not read
	defer stop()
	if in != nil {
		_, copied := io.Copy(p.Input(), in)
		// A command that needs no more input ends, and its exit has the cause.
		if err := errors.Join(copied, p.Input().Close()); err != nil && ctx.Err() != nil {
			return paddock.Exit{}, err
		}
	}
	return p.Wait(ctx)
}

// merge puts files in place as a Dockerfile's COPY does. $1 is the source as written, $2
// the destination, $3 the mode.
const merge = `set -e
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
tar -x -z -f - -C "$d" 2>/dev/null || { echo "the files are not an archive" >&2; exit 1; }
[ -z "$3" ] || chmod -R "$3" "$d"/*
src=${1#./}; fixed=$src
case "$src" in *[*?[]*) fixed=${src%%[*?[]*}; case "$fixed" in */*) fixed=${fixed%/*} ;; *) fixed=. ;; esac ;; esac
if [ -d "$d/$fixed" ]; then mkdir -p "$2"; cp -a "$d/$fixed/." "$2/"
else case "$2" in */) mkdir -p "$2"; cp -a "$d/$fixed" "$2" ;; *) if [ -d "$2" ]; then cp -a "$d/$fixed" "$2/"; else mkdir -p "$(dirname "$2")"; cp -a "$d/$fixed" "$2"; fi ;; esac
fi`

// tools returns a PATH for merge, also for an image that sets none.
func (w *work) tools() map[string]string {
	places := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	if own := w.env["PATH"]; own != "" {
		places = own + ":" + places
	}
	return map[string]string{"PATH": places}
}

// copies puts uploaded files into the sandbox. The archive is unpacked inside, with the
// tools there, and is not read here.
func (w *work) copies(ctx context.Context, where string, s step) error {
	who := w.own // may write more than root without capabilities
	if len(s.Args) > 2 && s.Args[2] != "" {
		var group string
		if who, group, _ = strings.Cut(s.Args[2], ":"); group != "" && group != who {
			return fmt.Errorf("COPY: files are those of a user and of the group with its name here, and not of %s: %w", dialect.Printable(s.Args[2]), paddock.Unsupported)
		}
		if err := w.knows(ctx, who); err != nil {
			return fmt.Errorf("COPY: %w", err)
		}
	}
	mode := ""
	if len(s.Args) > 3 {
		mode = s.Args[3]
	}
	dir, err := w.h.uploads(w.b.caller.Tenant)
	if err != nil {
		return err
	}
	defer dir.Close()
	_, file := place("", s.FilesHash)
	f, err := dir.Open(file)
	if err != nil {
		return fmt.Errorf("COPY %s: its files were not uploaded: %w", dialect.Printable(s.Args[0]), paddock.NotFound)
	}
	defer f.Close()
	in, script, err := archive(f)
	if err != nil {
		return err
	}
	dest := w.absolute(s.Args[1])
	if strings.HasSuffix(s.Args[1], "/") && dest != "/" {
		dest += "/"
	}
	errs := &liner{say: func(text string) { w.b.say("error", where, text) }}
	exit, err := w.exec(ctx, who, paddock.Cmd{
		Args: []string{"/bin/bash", "-c", script, "copy", s.Args[0], dest, mode}, Env: w.tools(), Dir: w.dir, Timeout: stepTime, Output: paddock.Output{Stderr: errs},
	}, in)
	errs.end()
	if err == nil && (exit.Cause != paddock.Exited || exit.Code != 0) {
		err = fmt.Errorf("COPY %s: %s", dialect.Printable(s.Args[0]), told(exit))
	}
	return err
}

// archive returns the script for a compressed or plain archive.
func archive(f io.Reader) (io.Reader, string, error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(f, head); err != nil {
		return nil, "", fmt.Errorf("the uploaded files are not an archive: %w", paddock.Invalid)
	}
	in := io.MultiReader(bytes.NewReader(head), f)
	if head[0] == 0x1f && head[1] == 0x8b {
		return in, merge, nil
	}
	return in, strings.Replace(merge, "-x -z -f", "-x -f", 1), nil
}

// begin starts the template's command and waits until it is ready.
func (w *work) begin(ctx context.Context, q buildRequest) error {
	if q.StartCmd != "" {
		w.b.say("info", "finalize", "starting "+q.StartCmd)
		_, err := w.sb.Start(ctx, paddock.Cmd{
			Args: []string{"/bin/bash", "-l", "-c", q.StartCmd}, Env: w.env, Dir: w.dir, User: w.other(), Output: paddock.Output{Detached: true},
		})
		if err != nil {
			return fmt.Errorf("start command: %w", err)
		}
		if q.ReadyCmd == "" {
			q.ReadyCmd = usualReady
		}
	}
	if q.ReadyCmd == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for {
		exit, err := w.exec(ctx, w.user, paddock.Cmd{Args: []string{"/bin/bash", "-l", "-c", q.ReadyCmd}, Env: w.env, Dir: w.dir, Timeout: readyWithin}, nil)
		if err == nil && exit.Cause == paddock.Exited && exit.Code == 0 {
			w.b.say("info", "finalize", "it is ready")
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the ready command did not succeed within %v: %w", readyWithin, paddock.Timeout)
		case <-tick.C:
		}
		if err != nil && paddock.KindOf(err) != paddock.Timeout {
			return fmt.Errorf("ready command: %w", err)
		}
	}
}

// keep takes the snapshot. It includes memory if a command was started.
func (w *work) keep(ctx context.Context, whole bool) (built, error) {
	st, err := w.sb.Status(ctx)
	if err != nil {
		return built{}, err
	}
	id, err := w.sb.Snapshot(ctx, paddock.SnapshotOptions{Memory: whole})
	if err != nil {
		return built{}, fmt.Errorf("the tier %s cannot take a snapshot: %w", st.Tier, err)
	}
	return built{Snapshot: id, Tier: st.Tier, Whole: whole, Limits: st.Limits, Env: maps.Clone(w.env), User: w.user, Dir: w.dir}, nil
}

// A liner splits output into lines of bounded length.
type liner struct {
	say  func(string)
	rest []byte
}

func (l *liner) Write(data []byte) (int, error) {
	l.rest = append(l.rest, data...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok && len(l.rest) < maxLine {
			return len(data), nil
		}
		if !ok {
			line, rest = l.rest, nil
		}
		l.say(string(line))
		l.rest = rest
	}
}

// end writes the last line, which may have no newline.
func (l *liner) end() {
	if len(l.rest) > 0 {
		l.say(string(l.rest))
		l.rest = nil
	}
}
