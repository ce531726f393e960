package envd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of file operations as another user.
const (
	otherTime    = 10 * time.Minute // of a command
	otherCopy    = 2 * time.Hour    // of a command that copies
	otherEnd     = 10 * time.Second // of its end
	otherWords   = 4 << 10          // bytes of a command's error output
	otherEntry   = 3*maxName + 1024 // bytes of a file's description
	otherRecords = 3                // fields of a description, each ended by NUL
)

// filesKey is the key of the context value with the files of a request.
type filesKey struct{}

// files returns the files of a request: with the rights of the sandbox's own user, or
// another's.
func (b *Box) files(ctx context.Context) paddock.FS {
	if o, ok := ctx.Value(filesKey{}).(*otherFiles); ok {
		return o
	}
	return b.o.Sandbox.FS()
}

// as makes the context use the rights of a user. Empty is the sandbox's own user.
func (b *Box) as(ctx context.Context, user string) (context.Context, error) {
	own, err := b.own(ctx, user)
	if err != nil || own {
		return ctx, err
	}
	if len(user) > maxTag || strings.ContainsAny(user, "\x00\n:") {
		return ctx, unknownUser(user, "")
	}
	o := &otherFiles{FS: b.o.Sandbox.FS(), b: b, user: user}
	if err := o.run(ctx, user, nil, "exit 0"); err != nil { // report a missing user first
		return ctx, err
	}
	return context.WithValue(ctx, filesKey{}, o), nil
}

// otherFiles accesses the files of a sandbox with the rights of another user. Each call
// runs a command as that user, because the agent inside acts as the sandbox's own user.
// Only Watch uses the rights of the sandbox's own user.
type otherFiles struct {
	paddock.FS // Watch
	b          *Box
	user       string
}

// A capped writer keeps the beginning of what is written.
type capped struct {
	bytes.Buffer
}

func (c *capped) Write(p []byte) (int, error) {
	if room := otherWords - c.Len(); room > 0 {
		c.Buffer.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

// start starts a script. The first argument is the file to act on.
func (o *otherFiles) start(ctx context.Context, t time.Duration, in bool, out, errs io.Writer, script string, args []string) (paddock.Process, error) {
	p, err := o.b.o.Sandbox.Start(ctx, paddock.Cmd{
		Args: append([]string{"/bin/bash", "-c", script, "files"}, args...), Dir: "/", User: o.user, Timeout: t, Input: in,
		Env:    map[string]string{"LC_ALL": "C", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Output: paddock.Output{Stdout: out, Stderr: errs},
	})
	var not *paddock.StartError
	switch {
	case err == nil:
		return p, nil
	case errors.As(err, &not):
		return nil, fmt.Errorf("files of %s need bash in the sandbox: %w", o.user, paddock.Unsupported)
	case paddock.KindOf(err) == paddock.Unsupported:
		return nil, unknownUser(o.user, o.b.only(ctx, "files are read and written as"))
	case paddock.KindOf(err) == paddock.NotFound:
		o.b.alive(ctx, err)
		return nil, unknownUser(o.user, "")
	}
	return nil, err
}

// run runs a script and waits for its end.
func (o *otherFiles) run(ctx context.Context, name string, out io.Writer, script string, args ...string) error {
	var errs capped
	p, err := o.start(ctx, otherTime, false, out, &errs, script, append([]string{name}, args...))
	if err != nil {
		return err
	}
	defer p.Release()
	exit, err := p.Wait(ctx)
	if err != nil {
		_ = p.Signal(context.WithoutCancel(ctx), syscall.SIGKILL) // it may have ended
		return err
	}
	return outcome(name, exit, errs.String())
}

// outcome classifies a command's error output by the messages of the C library.
func outcome(name string, exit paddock.Exit, said string) error {
	switch {
	case exit.Cause == paddock.TimedOut:
		return fmt.Errorf("%s: %w", clean(name), paddock.Timeout)
	case exit.Dropped > 0: // the output was not read for too long, for example during a pause
		return fmt.Errorf("%s: %d bytes of its content were lost on their way: %w", clean(name), exit.Dropped, paddock.Unavailable)
	case exit.Cause == paddock.Exited && exit.Code == 0:
		return nil
	case exit.Cause == paddock.Exited && exit.Code == 127:
		return fmt.Errorf("files of another user need the usual tools for files in the sandbox (GNU's coreutils and find): %w", paddock.Unsupported)
	}
	for _, x := range []struct {
		text string
		kind paddock.Kind
	}{
		{"No such file or directory", paddock.NotFound},
		{"File exists", paddock.Exists},
		{"cannot overwrite existing file", paddock.Exists},
		{"Permission denied", paddock.Denied},
		{"Operation not permitted", paddock.Denied},
		{"Read-only file system", paddock.Denied},
		{"Directory not empty", paddock.Conflict},
		{"No space left on device", paddock.Exhausted},
		{"Disk quota exceeded", paddock.Exhausted},
		{"File too large", paddock.Exhausted},
		{"Is a directory", paddock.Invalid},
		{"Not a directory", paddock.Invalid},
		{"cannot overwrite", paddock.Invalid},
		{"File name too long", paddock.Invalid},
		{"Too many levels of symbolic links", paddock.Invalid},
		{"Invalid argument", paddock.Invalid},
	} {
		if strings.Contains(said, x.text) {
			return fmt.Errorf("%s: %s: %w", clean(name), strings.ToLower(x.text[:1])+x.text[1:], x.kind)
		}
	}
	return fmt.Errorf("%s: a command for files ended with %s %d: %w", clean(name), exit.Cause, exit.Code, paddock.Internal)
}

// told makes find describe a file in the form that described parses.
const told = `-printf '%y %m %s %T@ %U %G %u %g\0%p\0%l\0'`

// Stat implements [paddock.FS].
func (o *otherFiles) Stat(ctx context.Context, name string) (paddock.FileInfo, error) {
	for info, err := range o.find(ctx, name, `exec find "$1" -maxdepth 0 `+told) {
		return info, err
	}
	return paddock.FileInfo{}, fmt.Errorf("%s: %w", clean(name), paddock.NotFound)
}

// List implements [paddock.FS].
func (o *otherFiles) List(ctx context.Context, name string, depth int) iter.Seq2[paddock.FileInfo, error] {
	return o.find(ctx, name, `[ -d "$1" ] || { [ -e "$1" ] && echo "Not a directory" >&2 && exit 1; }; exec find "$1" -mindepth 1 -maxdepth "$2" `+told, strconv.Itoa(depth))
}

// find parses the files that a script describes. The output is untrusted.
func (o *otherFiles) find(ctx context.Context, name, script string, args ...string) iter.Seq2[paddock.FileInfo, error] {
	return func(yield func(paddock.FileInfo, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		r, w := io.Pipe()
		var ran error
		var wg sync.WaitGroup
		defer wg.Wait()
		defer func() { _ = r.Close() }() // it never fails
		wg.Go(func() {
			ran = o.run(ctx, name, w, script, args...)
			_ = w.Close() // it never fails
		})
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, otherEntry)
		lines.Split(records)
		for lines.Scan() {
			info, err := described(lines.Bytes())
			if err != nil {
				yield(info, fmt.Errorf("%s: what is told of it cannot be read: %w", clean(name), err))
				cancel()
				return
			}
			if !yield(info, nil) {
				cancel()
				return
			}
		}
		_ = r.Close() // stop reading if it is too long
		wg.Wait()
		err := ran
		if err == nil {
			err = lines.Err()
		}
		if err != nil {
			yield(paddock.FileInfo{}, err)
		}
	}
}

// records splits find's output into descriptions.
func records(data []byte, end bool) (int, []byte, error) {
	at := 0
	for range otherRecords {
		i := bytes.IndexByte(data[at:], 0)
		if i < 0 {
			if end && len(data) > 0 {
				return 0, nil, io.ErrUnexpectedEOF
			}
			return 0, nil, nil
		}
		at += i + 1
	}
	return at, data[:at], nil
}

// described parses one description.
func described(data []byte) (i paddock.FileInfo, err error) {
	parts := strings.Split(string(data), "\x00")
	fields := strings.Split(parts[0], " ")
	bad := fmt.Errorf("%.40q: %w", parts[0], paddock.Internal)
	if len(parts) != otherRecords+1 || len(fields) != 8 || len(fields[0]) != 1 {
		return i, bad
	}
	mode, err1 := strconv.ParseUint(fields[1], 8, 12)
	size, err2 := strconv.ParseInt(fields[2], 10, 64)
	seconds, _, _ := strings.Cut(fields[3], ".")
	at, err3 := strconv.ParseInt(seconds, 10, 64)
	uid, err4 := strconv.ParseInt(fields[4], 10, 64)
	gid, err5 := strconv.ParseInt(fields[5], 10, 64)
	kinds := map[string]fs.FileMode{"f": 0, "d": fs.ModeDir, "l": fs.ModeSymlink, "p": fs.ModeNamedPipe, "s": fs.ModeSocket, "c": fs.ModeDevice | fs.ModeCharDevice, "b": fs.ModeDevice}
	kind, ok := kinds[fields[0]]
	if errors.Join(err1, err2, err3, err4, err5) != nil || !ok || size < 0 || !strings.HasPrefix(parts[1], "/") {
		return i, bad
	}
	i = paddock.FileInfo{Name: parts[1], Size: size, Mode: kind | fs.FileMode(mode&0o777), ModTime: time.Unix(at, 0).UTC(), Link: parts[2], UID: int(uid), GID: int(gid)}
	if mode&0o1000 != 0 {
		i.Mode |= fs.ModeSticky
	}
	if fields[6] != fields[4] {
		i.User = fields[6]
	}
	if fields[7] != fields[5] {
		i.Group = fields[7]
	}
	return i, nil
}

// Mkdir implements [paddock.FS].
func (o *otherFiles) Mkdir(ctx context.Context, name string, m paddock.MkdirOptions) error {
	if m.Parents {
		return o.run(ctx, name, nil, `exec mkdir -p -- "$1"`)
	}
	return o.run(ctx, name, nil, `exec mkdir -- "$1"`)
}

// Rename implements [paddock.FS].
func (o *otherFiles) Rename(ctx context.Context, from, to string) error {
	return o.run(ctx, from, nil, `exec mv -T -- "$1" "$2"`, to)
}

// Remove implements [paddock.FS].
func (o *otherFiles) Remove(ctx context.Context, name string, all bool) error {
	if all {
		return o.run(ctx, name, nil, `exec rm -rf -- "$1"`)
	}
	return o.run(ctx, name, nil, `if [ -d "$1" ] && [ ! -L "$1" ]; then exec rmdir -- "$1"; fi; exec rm -- "$1"`)
}

// Chmod implements [paddock.FS].
func (o *otherFiles) Chmod(ctx context.Context, name string, mode fs.FileMode) error {
	return o.run(ctx, name, nil, `exec chmod -- "$2" "$1"`, fmt.Sprintf("%04o", mode.Perm()))
}

// Symlink implements [paddock.FS].
func (o *otherFiles) Symlink(ctx context.Context, target, name string) error {
	return o.run(ctx, name, nil, `exec ln -sT -- "$2" "$1"`, target)
}

// opened is what a script prints when its file is open.
const opened = "x"

// A copying is a process that reads or writes a file.
type copying struct {
	o    *otherFiles
	name string
	p    paddock.Process
	out  *io.PipeReader
	errs capped
	stop func() bool // detaches the process from the end of the call
	wg   sync.WaitGroup
	end  error // set when wg is done
}

// copying starts a script, and waits until its file is open.
func (o *otherFiles) copying(ctx context.Context, in bool, script, name string, args ...string) (*copying, error) {
	c := &copying{o: o, name: name}
	r, w := io.Pipe()
	c.out = r
	p, err := o.start(ctx, otherCopy, in, w, &c.errs, script, append([]string{name}, args...))
	if err != nil {
		return nil, err
	}
	c.p = p
	c.wg.Go(func() {
		exit, err := p.Wait(context.Background()) // Release ends it
		if err == nil {
			err = outcome(name, exit, c.errs.String())
		}
		c.end = err
		w.CloseWithError(err)
	})
	// A command that a hostile sandbox stopped must not block the caller beyond its
	// deadline.
	c.stop = context.AfterFunc(ctx, func() {
		w.CloseWithError(context.Cause(ctx))
		p.Release()
		c.slay()
	})
	if _, err := io.ReadFull(r, make([]byte, len(opened))); err != nil {
		c.kill()
		if c.end != nil && ctx.Err() == nil {
			err = c.end
		}
		return nil, err
	}
	return c, nil
}

// kill ends the process, if it has not ended.
func (c *copying) kill() {
	c.stop()
	_ = c.out.Close() // it never fails
	c.p.Release()
	c.wg.Wait()
	c.slay()
}

// slay kills the command by signal 9, and waits a bounded time for the agent's answer.
func (c *copying) slay() {
	ctx, cancel := context.WithTimeout(context.Background(), otherEnd)
	defer cancel()
	_ = c.p.Signal(ctx, syscall.SIGKILL) // it may have ended
}

// Open implements [paddock.FS].
func (o *otherFiles) Open(ctx context.Context, name string, from paddock.OpenOptions) (io.ReadCloser, error) {
	c, err := o.copying(ctx, false, `[ ! -d "$1" ] || { echo "Is a directory" >&2; exit 1; }
exec 3<"/.$1" || exit 1
printf `+opened+`
if [ "$3" != 0 ]; then tail -c "+$2" <&3 | head -c "$3"; else exec tail -c "+$2" <&3; fi`, name, strconv.FormatInt(from.Offset+1, 10), strconv.FormatInt(from.Length, 10))
	if err != nil {
		return nil, err
	}
	return reading{c}, nil
}

type reading struct{ c *copying }

func (r reading) Read(p []byte) (int, error) { return r.c.out.Read(p) }

func (r reading) Close() error {
	r.c.kill()
	return nil
}

// Create implements [paddock.FS].
func (o *otherFiles) Create(ctx context.Context, name string, w paddock.CreateOptions) (io.WriteCloser, error) {
	how := ""
	if w.Parents {
		how += "p"
	}
	if w.Exclusive {
		how += "e"
	}
	if w.Append {
		how += "a"
	}
	c, err := o.copying(ctx, true, `case $2 in *p*) mkdir -p -- "${1%/*}/" || exit 1 ;; esac
case $2 in *e*) set -C ;; esac
case $2 in *a*) exec 3>>"/.$1" || exit 1 ;; *) exec 3>"/.$1" || exit 1 ;; esac
printf `+opened+`
exec cat >&3`, name, how)
	if err != nil {
		return nil, err
	}
	return &filling{c: c}, nil
}

type filling struct {
	c    *copying
	done bool
}

func (f *filling) Write(p []byte) (int, error) {
	n, err := f.c.p.Input().Write(p)
	if err != nil { // the command has ended; its exit has the cause
		if end := f.finish(); end != nil {
			err = end
		}
	}
	return n, err
}

// finish waits for the end of the command, which has then written everything.
func (f *filling) finish() error {
	if !f.done {
		f.done = true
		_, _ = io.Copy(io.Discard, f.c.out) // until the end of the command, whose error is returned
		f.c.wg.Wait()
		f.c.stop()
		f.c.p.Release()
	}
	return f.c.end
}

func (f *filling) Close() error {
	if f.done {
		return f.c.end
	}
	if err := f.c.p.Input().Close(); err != nil {
		f.c.kill()
		f.done = true
		return errors.Join(err, f.c.end)
	}
	return f.finish()
}
