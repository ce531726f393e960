package execserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A box is a sandbox of which only processes and files answer.
type box struct {
	paddock.Sandbox
	files *tree

	mu      sync.Mutex
	started []paddock.Cmd
}

func (*box) ID() paddock.ID   { return "box-1" }
func (b *box) FS() paddock.FS { return b.files }

// Start starts a process that writes its arguments, and with input goes on until it is killed or its input is "end".
func (b *box) Start(_ context.Context, cmd paddock.Cmd) (paddock.Process, error) {
	b.mu.Lock()
	b.started = append(b.started, cmd)
	b.mu.Unlock()
	if cmd.Args[0] == "missing" {
		return nil, fmt.Errorf("no such program: %w", paddock.NotFound)
	}
	r, w := io.Pipe()
	p := &program{in: w, killed: make(chan struct{}), over: make(chan struct{})}
	go func() {
		defer close(p.over)
		fmt.Fprintln(cmd.Output.Stdout, strings.Join(cmd.Args, " "))
		if !cmd.Input {
			return
		}
		go func() { <-p.killed; r.Close() }()
		for lines := bufio.NewScanner(r); lines.Scan() && lines.Text() != "end"; {
			fmt.Fprintln(cmd.Output.Stdout, "got "+lines.Text())
		}
	}()
	return p, nil
}

type program struct {
	paddock.Process
	in     io.WriteCloser
	once   sync.Once
	killed chan struct{}
	over   chan struct{}
}

func (p *program) Input() io.WriteCloser { return p.in }
func (p *program) Release()              {}
func (p *program) Signal(context.Context, syscall.Signal) error {
	p.once.Do(func() { close(p.killed) })
	return nil
}

func (p *program) Wait(context.Context) (paddock.Exit, error) {
	<-p.over
	select {
	case <-p.killed:
		return paddock.Exit{Code: 137, Cause: paddock.Signaled}, nil
	default:
		return paddock.Exit{Cause: paddock.Exited}, nil
	}
}

// A tree holds texts of files, and links as "-> target".
type tree struct {
	paddock.FS
	mu    sync.Mutex
	files map[string]string
}

func (f *tree) Stat(_ context.Context, name string) (paddock.FileInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, ok := f.files[name]
	switch to, link := strings.CutPrefix(text, "-> "); {
	case link:
		return paddock.FileInfo{Name: name, Mode: fs.ModeSymlink | 0o777, Link: to}, nil
	case ok:
		return paddock.FileInfo{Name: name, Mode: 0o644, Size: int64(len(text)), ModTime: time.UnixMilli(7)}, nil
	}
	for other := range f.files {
		if name == "/" || strings.HasPrefix(other, name+"/") {
			return paddock.FileInfo{Name: name, Mode: fs.ModeDir | 0o755}, nil
		}
	}
	return paddock.FileInfo{}, fmt.Errorf("%q: %w", name, paddock.NotFound)
}

func (f *tree) Open(_ context.Context, name string, o paddock.OpenOptions) (io.ReadCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := f.files[name]
	text = text[min(int(o.Offset), len(text)):]
	if o.Length > 0 {
		text = text[:min(int(o.Length), len(text))]
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

type toFile struct {
	bytes.Buffer
	close func(string)
}

func (w *toFile) Close() error { w.close(w.String()); return nil }

func (f *tree) Create(_ context.Context, name string, _ paddock.CreateOptions) (io.WriteCloser, error) {
	return &toFile{close: func(text string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.files[name] = text
	}}, nil
}

func (f *tree) List(_ context.Context, name string, _ int) iter.Seq2[paddock.FileInfo, error] {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []string
	for other := range f.files {
		if rest, ok := strings.CutPrefix(other, name+"/"); ok && !strings.Contains(rest, "/") {
			list = append(list, other)
		}
	}
	return func(yield func(paddock.FileInfo, error) bool) {
		for _, n := range list {
			info, err := f.Stat(context.Background(), n)
			if !yield(info, err) {
				return
			}
		}
	}
}

func (f *tree) Mkdir(context.Context, string, paddock.MkdirOptions) error { return nil }
func (f *tree) Remove(_ context.Context, name string, _ bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.files, name)
	return nil
}

// A codex is a client.
type codex struct {
	t     *testing.T
	box   *box
	in    *io.PipeWriter
	lines *bufio.Scanner
	n     int
	told  []string // notifications that came before an answer
	done  chan error
}

func begin(t *testing.T) *codex {
	t.Helper()
	b := &box{files: &tree{files: map[string]string{
		"/work/a.txt": "hello", "/work/link": "-> a.txt", "/work/up": "-> /work/../work/link", "/work/loop": "-> loop", "/work/nowhere": "-> /none",
	}}}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &codex{t: t, box: b, in: inW, lines: bufio.NewScanner(outR), done: make(chan error, 1)}
	c.lines.Buffer(nil, maxMessage)
	go func() {
		c.done <- Serve(context.Background(), Options{Sandbox: b, Dir: "/work", Home: "/home/user", Shell: "/bin/bash"}, inR, outW)
		outW.Close()
	}()
	return c
}

// ask sends a request and returns its result, or its error.
func (c *codex) ask(method, params string) (string, problem) {
	c.t.Helper()
	c.n++
	fmt.Fprintf(c.in, "{\"id\":%d,\"method\":%q,\"params\":%s}\n", c.n, method, params)
	for {
		var m struct {
			ID     *int
			Result json.RawMessage
			Error  problem
			Method string
		}
		line := c.next()
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			c.t.Fatalf("%s: %v", line, err)
		}
		if m.Method != "" {
			c.told = append(c.told, line)
			continue
		}
		if m.ID == nil || *m.ID != c.n {
			c.t.Fatalf("%s: %s answers request %d", method, line, c.n)
		}
		return string(m.Result), m.Error
	}
}

func (c *codex) next() string {
	c.t.Helper()
	if !c.lines.Scan() {
		c.t.Fatalf("nothing comes: %v", c.lines.Err())
	}
	return c.lines.Text()
}

// notes reads notifications until one is of a method.
func (c *codex) notes(method string) []string {
	c.t.Helper()
	for {
		for i, line := range c.told {
			if strings.Contains(line, `"method":"`+method+`"`) {
				return c.told[:i+1]
			}
		}
		c.told = append(c.told, c.next())
	}
}

func (c *codex) ready() *codex {
	c.t.Helper()
	if _, p := c.ask("initialize", `{"clientName":"x","resumeSessionId":null}`); p.Code != 0 {
		c.t.Fatal(p)
	}
	fmt.Fprintln(c.in, `{"method":"initialized","params":{}}`)
	return c
}

func (c *codex) end() {
	c.t.Helper()
	c.in.Close()
	for c.lines.Scan() { // what is told of processes that end
	}
	if err := <-c.done; err != nil {
		c.t.Errorf("Serve: %v", err)
	}
}

const start = `{"processId":"p","argv":["echo","x"],"cwd":"file:///work","envPolicy":{"set":{"A":"1"}},"env":{"B":"2"},"tty":false,"pipeStdin":%t,"arg0":null,"sandbox":null}`

func TestProcess(t *testing.T) {
	c := begin(t)
	if _, p := c.ask("process/start", fmt.Sprintf(start, false)); p.Code != invalidRequest {
		t.Errorf("before initialize: %v", p)
	}
	c.ready()
	if r, p := c.ask("process/start", fmt.Sprintf(start, true)); p.Code != 0 || !strings.Contains(r, `"processId":"p"`) || len(c.told) > 0 {
		t.Fatalf("start: %s, %v, %s before it", r, p, c.told)
	}
	if _, p := c.ask("process/start", fmt.Sprintf(start, true)); p.Code != invalidRequest {
		t.Errorf("the same processId: %v", p)
	}
	for _, text := range []string{"b25lCg==", "dHdvCg==", "ZW5kCg=="} { // one, two, end
		if r, p := c.ask("process/write", `{"processId":"p","writeId":"w","chunk":"`+text+`"}`); r != `{"status":"accepted"}` {
			t.Errorf("write: %s, %v", r, p)
		}
	}
	all := c.notes("process/closed")
	want := []string{`"seq":1,"stream":"stdout"`, `"seq":2`, `"seq":3`, `"exitCode":0,"processId":"p","sandboxDenied":false,"seq":4`, `"processId":"p","seq":5`}
	if len(all) != len(want) {
		t.Fatalf("told: %s", all)
	}
	for i, w := range want {
		if !strings.Contains(all[i], w) {
			t.Errorf("%s, want %s", all[i], w)
		}
	}
	r, p := c.ask("process/read", `{"processId":"p","afterSeq":1,"maxBytes":8,"waitMs":60000}`)
	if !strings.Contains(r, `{"seq":2,"stream":"stdout","chunk":"Z290IG9uZQo="}],"nextSeq":3,"exited":true,"exitCode":0,"closed":true`) {
		t.Errorf("read: %s, %v", r, p)
	}
	cmd := c.box.started[0]
	if cmd.Dir != "/work" || len(cmd.Env) != 2 || cmd.Env["A"] != "1" || cmd.Env["B"] != "2" {
		t.Errorf("the command is %+v", cmd)
	}
	c.end()
}

func TestTerminateAndEnd(t *testing.T) {
	c := begin(t).ready()
	c.ask("process/start", fmt.Sprintf(start, true))
	if r, p := c.ask("process/terminate", `{"processId":"p"}`); r != `{"running":true}` {
		t.Errorf("terminate: %s, %v", r, p)
	}
	if all := c.notes("process/exited"); !strings.Contains(all[len(all)-1], `"exitCode":137`) {
		t.Errorf("told: %s", all)
	}
	c.ask("process/start", strings.Replace(fmt.Sprintf(start, true), `"p"`, `"q"`, 1))
	c.end() // which ends q, or it would wait for ever
}

func TestRefusals(t *testing.T) {
	c := begin(t).ready()
	refused := func(method, params, want string) {
		t.Helper()
		if r, p := c.ask(method, params); p.Code == 0 || !strings.Contains(p.Message, want) {
			t.Errorf("%s %s: %s, %v", method, params, r, p)
		}
	}
	change := func(from, to string) string { return strings.Replace(fmt.Sprintf(start, false), from, to, 1) }
	refused("process/start", change(`"sandbox":null`, `"sandbox":{"permissions":{"type":"managed"}}`), "danger-full-access")
	refused("process/start", change(`"sandbox":null`, `"sandbox":{}`), "danger-full-access")
	refused("process/start", change(`"sandbox":null`, `"enforceManagedNetwork":true`), "network")
	refused("process/start", change(`"envPolicy":{"set":{"A":"1"}},`, ``), "environment")
	refused("process/start", change(`"arg0":null`, `"arg0":"sh"`), "arg0")
	refused("process/start", change(`file:///work`, `/work`), "file:")
	refused("process/start", change(`"echo"`, `"missing"`), "no such program")
	refused("fs/writeFile", `{"path":"file:///work/b","dataBase64":"aGk=","sandbox":{"permissions":{"type":"managed"}}}`, "danger-full-access")
	refused("fs/readFile", `{"path":"file://elsewhere/work/a.txt"}`, "another host")
	refused("fs/readFile", `{"path":"file:///work%00/a.txt"}`, "NUL")
	refused("fs/readFile", `{"path":"file:///work"}`, "regular")
	refused("fs/readFile", `{"path":"file:///work/loop"}`, "links")
	refused("http/request", `{}`, "not known")
	if len(c.box.started) != 1 { // the missing one
		t.Errorf("started: %v", c.box.started)
	}
	c.end()
}

func TestFiles(t *testing.T) {
	c := begin(t).ready()
	same := func(method, params, want string) {
		t.Helper()
		if r, p := c.ask(method, params); r != want {
			t.Errorf("%s %s: %s, %v, want %s", method, params, r, p, want)
		}
	}
	same("fs/readFile", `{"path":"file:///work/up","sandbox":null}`, `{"dataBase64":"aGVsbG8="}`)
	same("fs/canonicalize", `{"path":"file:///work/up"}`, `{"path":"file:///work/a.txt"}`)
	same("fs/getMetadata", `{"path":"file:///work/link"}`, `{"createdAtMs":0,"isDirectory":false,"isFile":true,"isSymlink":true,"modifiedAtMs":7,"size":5}`)
	same("fs/writeFile", `{"path":"file:///work/d/b%20c","dataBase64":"aGk="}`, `{}`)
	same("fs/copy", `{"sourcePath":"file:///work/link","destinationPath":"file:///work/d/e","recursive":false}`, `{}`)
	same("fs/open", `{"handleId":"h","path":"file:///work/a.txt"}`, `{"handleId":"h"}`)
	same("fs/readBlock", `{"handleId":"h","offset":3,"len":4}`, `{"chunk":"bG8=","eof":true}`)
	same("fs/close", `{"handleId":"h"}`, `{}`)
	same("fs/remove", `{"path":"file:///work/d/e","recursive":false,"force":false}`, `{}`)
	if _, p := c.ask("fs/getMetadata", `{"path":"file:///work/d/e"}`); p.Code != notFound {
		t.Errorf("a file that was removed: %v", p)
	}
	same("fs/readDirectory", `{"path":"file:///work/d"}`, `{"entries":[{"fileName":"b c","isDirectory":false,"isFile":true}]}`)
	c.end()
}

func TestMessagesAreBounded(t *testing.T) {
	b := &box{files: &tree{files: map[string]string{}}}
	err := Serve(t.Context(), Options{Sandbox: b}, io.MultiReader(strings.NewReader(`{"id":1,"method":"`), bytes.NewReader(bytes.Repeat([]byte("x"), maxMessage))), io.Discard)
	if !errors.Is(err, paddock.Exhausted) {
		t.Errorf("Serve: %v", err)
	}
}

// Whatever a client says, the server answers with lines of JSON, and ends.
func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"id":"a","method":"process/start","params":` + fmt.Sprintf(start, true) + `}`))
	f.Add([]byte(`{"id":2,"method":"fs/readBlock","params":{"handleId":"h","offset":-1,"len":9}}`))
	f.Add([]byte(`{"id":3,"method":"process/read","params":{"processId":"p","afterSeq":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := &box{files: &tree{files: map[string]string{"/work/a": "b"}}}
		var out bytes.Buffer
		in := append([]byte("{\"id\":1,\"method\":\"initialize\",\"params\":{}}\n"), data...)
		if err := Serve(t.Context(), Options{Sandbox: b, Dir: "/work", Shell: "/bin/sh"}, bytes.NewReader(in), &out); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(out.Bytes()) {
			if !json.Valid(line) {
				t.Errorf("%q is no JSON", line)
			}
		}
	})
}
