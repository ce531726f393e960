package procevent_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/procevent"
)

// recorded reads a packet that was recorded from a sentry.
func recorded(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".hex"))
	if err != nil {
		t.Fatal(err)
	}
	packet, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return packet
}

func TestRecordedPacketsBecomeEvents(t *testing.T) {
	shell := audit.Process{PID: 10, Parent: 1, UID: 1000, Name: "sh"}
	forked := audit.Process{PID: 11, Parent: 10, UID: 1000, Name: "sh"} // an exec has the old name
	cat := audit.Process{PID: 11, Parent: 10, UID: 1000, Name: "cat"}
	python := audit.Process{PID: 12, Parent: 10, UID: 1000, Name: "python3"}
	for _, row := range []struct {
		name string
		want audit.Event
	}{
		{"clone", audit.Event{Kind: audit.Clone, Process: shell, Child: 11}},
		{"exec", audit.Event{Kind: audit.Exec, Process: forked, Path: "/usr/bin/cat", Args: []string{"cat", "nothere"}, Dir: "/tmp"}},
		{"open-read", audit.Event{Kind: audit.Open, Process: shell, Path: "/etc/ld.so.cache", Flags: "read"}},
		{"open-created", audit.Event{Kind: audit.Open, Process: shell, Path: "/tmp/new", Flags: "write create truncate"}},
		{"open-missing", audit.Event{Kind: audit.Open, Process: cat, Path: "nothere", Dir: "/tmp", Flags: "read", Error: "no such file or directory"}},
		{"connect-ipv4", audit.Event{Kind: audit.Connect, Process: python, Address: "93.184.216.34:443"}},
		{"connect-ipv6", audit.Event{Kind: audit.Connect, Process: python, Address: "[2001:db8::1]:80"}},
		{"connect-unix", audit.Event{Kind: audit.Connect, Process: python, Address: "unix:/tmp/x.sock"}},
		{"connect-abstract", audit.Event{Kind: audit.Connect, Process: python, Address: "unix:@hidden"}},
		{"exit-zero", audit.Event{Kind: audit.Exited, Process: python, Exit: &audit.Exit{}}},
		{"exit-one", audit.Event{Kind: audit.Exited, Process: cat, Exit: &audit.Exit{Code: 1}}},
		{"exit-killed", audit.Event{Kind: audit.Exited, Process: shell, Exit: &audit.Exit{Code: 137, Signal: 9}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, err := procevent.Decode(recorded(t, row.name))
			if err != nil {
				t.Fatal(err)
			}
			p.Event.Time = row.want.Time
			if !reflect.DeepEqual(p.Event, row.want) || p.Lost != 0 || !p.Header {
				t.Errorf("got  %+v\nwant %+v", p, row.want)
			}
		})
	}
}

// A message is built field by field.
type message []byte

func (m message) number(id protowire.Number, n uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, id, protowire.VarintType), n)
}

func (m message) bytes(id protowire.Number, b []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, id, protowire.BytesType), b)
}

func (m message) text(id protowire.Number, s string) message { return m.bytes(id, []byte(s)) }

// by starts a message of a process.
func by(pid uint64) message { return message{}.bytes(1, message{}.number(4, pid)) }

// packet adds a header to a message.
func packet(kind byte, lost byte, m message) []byte {
	return append([]byte{8, 0, kind, 0, lost, 0, 0, 0}, m...)
}

const (
	clone, exec, exit, open, connect = 2, 3, 4, 7, 10
)

func TestTheEnvironmentIsNeverRead(t *testing.T) {
	p, err := procevent.Decode(packet(exec, 0, by(1).text(2, "/bin/true").text(4, "TOKEN=secret")))
	if err != nil {
		t.Fatal(err)
	}
	if line, _ := audit.Line(p.Event); strings.Contains(string(line), "secret") {
		t.Errorf("a variable is in the event: %s", line)
	}
}

func TestHostilePacketsAreRefused(t *testing.T) {
	deep := message{}
	for range 2000 {
		deep = message{}.bytes(1, deep)
	}
	for _, row := range []struct {
		name   string
		packet []byte
		header bool // the count of lost packets is used
	}{
		{"nothing", nil, false},
		{"half a header", []byte{8, 0, 3, 0}, false},
		{"header longer than the packet", []byte{9, 0, 3, 0, 0, 0, 0, 0}, false},
		{"header shorter than itself", []byte{7, 0, 3, 0, 0, 0, 0, 0}, false},
		{"too long", make([]byte, procevent.MaxPacket+1), false},
		{"unknown type", packet(99, 7, by(1)), true},
		{"no process", packet(exec, 7, message{}.text(2, "/bin/true")), true},
		{"process zero", packet(exec, 7, by(0)), true},
		{"process too large", packet(exec, 7, by(1<<40)), true},
		{"process that would wrap", packet(exec, 7, by(1<<32+1)), true},
		{"text beyond the end", packet(exec, 7, append(by(1), 0x12, 0xff, 0x01)), true},
		{"text of a negative size", packet(exec, 7, append(by(1), 0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01)), true},
		{"number without an end", packet(clone, 7, append(by(1), 0x20, 0xff)), true},
		{"tens of thousands of fields", packet(exec, 7, append(by(1), bytes.Repeat([]byte{0x38, 1}, 30_000)...)), true},
		{"a group", packet(exec, 7, append(by(1), 0x0b, 0x0b, 0x0b)), true},
		{"deep", packet(exec, 7, deep), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, err := procevent.Decode(row.packet)
			if err == nil {
				t.Fatalf("decoded as %+v", p)
			}
			if p.Header != row.header || (row.header && p.Lost != 7) {
				t.Errorf("the header is read: %v, and tells of %d", p.Header, p.Lost)
			}
		})
	}
}

func TestAHeaderMayGrow(t *testing.T) {
	p, err := procevent.Decode(append([]byte{12, 0, clone, 0, 1, 2, 0, 0, 9, 9, 9, 9}, by(5).number(4, 6)...))
	if err != nil || p.Lost != 0x201 || p.Event.Child != 6 {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestAddressesInWords(t *testing.T) {
	for _, row := range []struct{ raw, want string }{
		{"", "nothing"},
		{"\x02", "nothing"},
		{"\x00\x00", "unspecified"},
		{"\x02\x00\x01\xbb\x7f\x00\x00\x01", "127.0.0.1:443"},
		{"\x02\x00\x01\xbb\x7f\x00\x00", "family 2"},
		{"\x0a\x00\x00\x50\x00\x00\x00\x00" + strings.Repeat("\x00", 10) + "\xff\xff\x7f\x00\x00\x01", "[::ffff:127.0.0.1]:80"},
		{"\x0a\x00\x00\x50\x00\x00\x00\x00\xfe\x80" + strings.Repeat("\x00", 13) + "\x01\x03\x00\x00\x00", "[fe80::1%3]:80"},
		{"\x0a\x00\x00\x50", "family 10"},
		{"\x01\x00", "unix:"},
		{"\x01\x00/run/a\x00rest", "unix:/run/a"},
		{"\x01\x00\x00a\x00b", "unix:@a\x00b"},
		{"\x01\x00/\xff", "unix:/\ufffd"},
		{"\x10\x00\x00\x00", "netlink"},
		{"\x28\x00\x00\x00", "family 40"},
	} {
		p, err := procevent.Decode(packet(connect, 0, by(1).text(6, row.raw)))
		if err != nil || p.Event.Address != row.want {
			t.Errorf("%q is %q, want %q (%v)", row.raw, p.Event.Address, row.want, err)
		}
	}
}

func TestFlagsInWords(t *testing.T) {
	for _, row := range []struct {
		flags int
		want  string
	}{
		{os.O_RDONLY, "read"},
		{os.O_RDWR | os.O_CREATE | os.O_EXCL, "read-write create exclusive"},
		{os.O_WRONLY | os.O_APPEND, "write append"},
		{3, "no-access"},
		{0x200000, "path"},
	} {
		p, err := procevent.Decode(packet(open, 0, by(1).number(7, uint64(row.flags))))
		if err != nil || p.Event.Flags != row.want {
			t.Errorf("%#x is %q, want %q (%v)", row.flags, p.Event.Flags, row.want, err)
		}
	}
}

func TestManyArgumentsAreCutAndSaidToBe(t *testing.T) {
	m := by(1)
	for range 500 {
		m = m.text(3, "x")
	}
	p, err := procevent.Decode(packet(exec, 0, m))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.Event.Args); n != audit.MaxCount || p.Event.Args[n-1] != audit.Cut {
		t.Errorf("%d arguments, the last is %q", n, p.Event.Args[n-1])
	}
	p, err = procevent.Decode(packet(exec, 0, by(1).text(3, strings.Repeat("x", audit.MaxArgs)).text(3, "y")))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.Event.Args); n != 2 || p.Event.Args[1] != audit.Cut {
		t.Errorf("a long argument hides the one after it: %d arguments", n)
	}
}

func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/*.hex")
	if err != nil || len(files) == 0 {
		f.Fatal("no recorded packets", err)
	}
	for _, name := range files {
		f.Add(recorded(f, strings.TrimSuffix(filepath.Base(name), ".hex")))
	}
	for _, s := range []string{"\xff", "ä", "\x1b"} { // shortened texts
		long := strings.Repeat(s, 5000)
		f.Add(packet(exec, 0, by(1).text(2, long).text(3, long).text(3, long)))
		f.Add(packet(open, 0, by(1).text(5, long).text(6, long)))
		f.Add(packet(connect, 0, by(1).text(6, "\x01\x00"+long)))
		f.Add(packet(clone, 0, message{}.bytes(1, message{}.number(4, 1).text(8, long).text(9, long))))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := procevent.Decode(b)
		if err != nil {
			return
		}
		e := p.Event
		if e.Process.PID < 1 || e.Process.PID > 1<<22 || e.Process.Parent < 0 || e.Child < 0 || e.Kind == "" {
			t.Errorf("accepted %+v", e)
		}
		if !reflect.DeepEqual(e, e.Clean()) {
			t.Errorf("not clean: %+v", e)
		}
		line, err := audit.Line(e)
		if err != nil || len(line) > audit.MaxLine || !utf8.Valid(line) || strings.Count(string(line), "\n") != 1 {
			t.Errorf("a line of %d bytes: %q (%v)", len(line), line, err)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	packet := recorded(b, "open-read")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := procevent.Decode(packet); err != nil {
			b.Fatal(err)
		}
	}
}
