package envd

import (
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
)

// plain unpacks the messages of a stream.
func plain(t *testing.T, body string) string {
	t.Helper()
	var text strings.Builder
	for rest := body; len(rest) > 5; {
		n := 5 + int(binary.BigEndian.Uint32([]byte(rest[1:5])))
		if n > len(rest) {
			return body // of another form
		}
		message := rest[5:n]
		if rest[0]&1 != 0 {
			z, err := gzip.NewReader(strings.NewReader(message))
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
			message = string(data)
		}
		text.WriteString(message)
		rest = rest[n:]
	}
	return text.String()
}

// Whatever a client sends in place of a message, nothing is started by it, nothing is held of
// it afterwards, and it is told so in the protocol's words.
func TestWhatIsNoMessageStartsNothing(t *testing.T) {
	tr := newTrial(t)
	good := start("sleep 4321")
	length := func(flag byte, n uint32) string {
		var head [5]byte
		head[0] = flag
		binary.BigEndian.PutUint32(head[1:], n)
		return string(head[:])
	}
	bomb := zip(t, `{"process":{"cmd":"/bin/sleep","args":["4321"`+strings.Repeat(" ", 80<<20)+`]}}`)
	for what, c := range map[string]struct {
		body   string
		header []string
	}{
		"nothing":                      {"", nil},
		"half a head":                  {"\x00\x00", nil},
		"a length of 4 GiB":            {length(0, 1<<32-1) + good, nil},
		"a length beyond its end":      {length(0, uint32(len(good)+1)) + good, nil},
		"a length before its end":      {length(0, uint32(len(good)-1)) + good, nil},
		"flags that are not known":     {frame(0x7c, good), nil},
		"the end in place of it":       {frame(2, good), nil},
		"packed, and nobody said how":  {frame(1, zip(t, good)), nil},
		"packed, and it is not":        {frame(1, good), []string{"Connect-Content-Encoding", "gzip"}},
		"packed in an unknown way":     {frame(1, good), []string{"Connect-Content-Encoding", "br"}},
		"packed, and large":            {frame(1, bomb), []string{"Connect-Content-Encoding", "gzip"}},
		"two messages":                 {frame(0, good) + frame(0, good), nil},
		"JSON with something after it": {frame(0, good+"{}"), nil},
		"JSON that is none":            {frame(0, good[:len(good)-1]), nil},
		"JSON as the other form":       {frame(0, good), []string{"Content-Type", "application/connect+proto"}},
		"no protocol's version":        {frame(0, good), []string{"Connect-Protocol-Version", "2"}},
		"a time that is none":          {frame(0, good), []string{"Connect-Timeout-Ms", "-1"}},
		"a time without an end":        {frame(0, good), []string{"Connect-Timeout-Ms", strings.Repeat("9", 30)}},
		"no form of a stream's":        {good, []string{"Content-Type", "application/json"}},
	} {
		code, body, h := tr.ask("POST", "/process.Process/Start", c.body, append([]string{"Content-Type", "application/connect+json", "Connect-Protocol-Version", "1"}, c.header...)...)
		if body = plain(t, body); strings.Contains(body, `"start"`) || code == http.StatusOK && !strings.Contains(body, `"error"`) {
			t.Errorf("%s: %d %q %v", what, code, body, h)
		}
	}
	list, err := tr.sb.Processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		if p.Exit == nil && slices.Contains(p.Args, "sleep 4321") {
			t.Errorf("it runs: %+v", p)
		}
	}
	tr.web.Close() // waits for its requests
	if n := tr.box.held.Load(); n != 0 {
		t.Errorf("%d bytes are held of no request", n)
	}
}

// Who shows no token sends nothing that the server waits for, whatever is asked for.
func TestNobodyWaitsForWhatAStrangerSends(t *testing.T) {
	tr := newTrial(t, func(o *Options) { o.Token = token })
	for _, path := range []string{"/process.Process/List", "/filesystem.Filesystem/Stat", "/files/compose", "/nothing"} {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", tr.web.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\nx"); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 40") {
			t.Errorf("%s: %.60q, then %v", path, answer, err)
		}
	}
}

func TestTheHeadOfAPartIsBounded(t *testing.T) {
	tr := newTrial(t)
	upload := func(head, name string) (int, string) {
		body := "--x\r\nContent-Disposition: form-data; name=other\r\n\r\n" + strings.Repeat("o", 300<<10) + "\r\n--x\r\n" + head +
			"Content-Disposition: form-data; name=file; filename=" + name + "\r\n\r\ntext\r\n--x--\r\n"
		code, answer, _ := tr.ask("POST", "/files", body, "Content-Type", "multipart/form-data; boundary=x")
		return code, answer
	}
	if code, answer := upload("X-A: b\r\n", "fine"); code != 200 {
		t.Errorf("a short one: %d %s", code, answer)
	}
	for what, head := range map[string]string{
		"one line":   "X-A: " + strings.Repeat("a", 1<<20) + "\r\n",
		"many lines": strings.Repeat("X-A: b\r\n", 100_000),
	} {
		if code, answer := upload(head, "long"); code != 400 || !strings.Contains(answer, "error reading form") {
			t.Errorf("%s: %d %.200s", what, code, answer)
		}
	}
	if code, answer, _ := tr.ask("GET", "/files?path=fine", ""); code != 200 || answer != "text" {
		t.Errorf("%d %q", code, answer)
	}
	if code, _, _ := tr.ask("GET", "/files?path=long", ""); code != 404 {
		t.Errorf("it was written: %d", code)
	}
}

// Each range of a file may be a call into the sandbox.
func TestAFileIsSentWholeToWhoAsksForTooManyPieces(t *testing.T) {
	tr := newTrial(t)
	text := strings.Repeat("0123456789", 100)
	tr.put("a.txt", text)
	ranges := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("%d-%[1]d", 2*i))
		}
		return "bytes=" + strings.Join(list, ",")
	}
	if code, body, h := tr.ask("GET", "/files?path=a.txt", "", "Range", ranges(5)); code != 206 || strings.Count(body, "Content-Range") != 5 {
		t.Errorf("a few: %d %q %v", code, body, h)
	}
	if code, body, h := tr.ask("GET", "/files?path=a.txt", "", "Range", ranges(400)); code != 200 || body != text {
		t.Errorf("too many: %d %.100q %v", code, body, h)
	}
}

// What a process was started with is kept for lists while it runs, when its client has gone,
// too: there may be as many processes as the sandbox lets there be.
func TestOfALongCommandOnlyItsNameIsKept(t *testing.T) {
	tr := newTrial(t)
	env := `"envs":{"LONG":"` + strings.Repeat("x", 200<<10) + `"}`
	request := fmt.Sprintf(`{"process":{"cmd":"/bin/sleep","args":["4321"],%s},"tag":"long"}`, env)
	s := tr.open("process.Process/Start", request)
	pid := s.pid()
	p := tr.box.processes.get(uint32(pid))
	p.mu.Lock()
	size := proto.Size(p.config)
	p.mu.Unlock()
	if size > 100<<10 {
		t.Errorf("%d bytes are kept of a process", size)
	}
	list, ok := tr.must("process.Process/List", `{}`)["processes"].([]any)
	if !ok || len(list) != 1 {
		t.Fatalf("%v", list)
	}
	one, _ := list[0].(map[string]any)
	config, _ := one["config"].(map[string]any)
	if config["cmd"] != "/bin/sleep" || fmt.Sprint(config["args"]) != "[4321]" || one["tag"] != "long" {
		t.Errorf("%.300v", one)
	}
	s.quit()
	if _, failure := tr.call("process.Process/SendSignal", `{"process":{"tag":"long"},"signal":"SIGNAL_SIGKILL"}`); failure != "" {
		t.Error(failure)
	}
}

// A narrow room has so many bytes for several sandboxes.
type narrow struct{ room chan int64 }

func newNarrow(n int64) *narrow {
	r := &narrow{make(chan int64, 1)}
	r.room <- n
	return r
}

func (r *narrow) Take(n int64) bool {
	left := <-r.room
	ok := left >= n
	if ok {
		left -= n
	}
	r.room <- left
	return ok
}

func (r *narrow) Give(n int64) { r.room <- <-r.room + n }

func TestRequestsOfSeveralBoxesShareTheRoomOfTheirOwner(t *testing.T) {
	const most = 100 << 10
	room := newNarrow(most)
	a, b := newTrial(t, func(o *Options) { o.Room = room }), newTrial(t, func(o *Options) { o.Room = room })
	s := a.open("process.Process/Start", `{"process":{"cmd":"/bin/sleep","args":["4321"]},"tag":"`+strings.Repeat("x", 100)+`"}`)
	s.pid()
	long := `{"path":"/` + strings.Repeat("x", 60<<10) + `"}`
	if _, failure := b.call("filesystem.Filesystem/Stat", long); !strings.HasPrefix(failure, "invalid_argument: ") {
		t.Errorf("there is room: %.100q", failure)
	}
	if !room.Take(60 << 10) {
		t.Fatal("a call that ended holds something")
	}
	for what, body := range map[string]string{"plain": long, "packed": zip(t, long)} {
		header := []string{}
		if what == "packed" {
			header = []string{"Content-Encoding", "gzip"}
		}
		if _, failure := b.call("filesystem.Filesystem/Stat", body, header...); !strings.HasPrefix(failure, "resource_exhausted: ") {
			t.Errorf("%s, where there is none: %.100q", what, failure)
		}
	}
	if _, failure := b.call("filesystem.Filesystem/Stat", `{"path":"/"}`); failure != "" {
		t.Errorf("a short one: %s", failure)
	}
	room.Give(60 << 10)
	s.quit()
	a.web.Close()
	b.web.Close()
	if left := <-room.room; left != most {
		t.Errorf("%d bytes are held of nobody's requests", most-left)
	}
}
