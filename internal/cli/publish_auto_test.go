package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

const socketTable = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0
   1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0
   2: 0F0012C6:0001 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   3: 0100007F:1F91 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0
   4: 0100007F:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0
   5: 00000000000000000000000001000000:1435 00000000000000000000000000000000:0000 0A 0:0 0:0 0 1000 0 1
   6: 00000000000000000000000000000000:1436 00000000000000000000000000000000:0000 0A 0:0 0:0 0 1000 0 1
   7: 0000000000000000FFFF00000100007F:1437 00000000000000000000000000000000:0000 0A 0:0 0:0 0 1000 0 1
   8: 747A6FFD000000000000000002000000:1438 00000000000000000000000000000000:0000 0A 0:0 0:0 0 1000 0 1
  `

func TestWhatListensInsideIsReadOutOfTheKernelsTable(t *testing.T) {
	found := map[int]bool{}
	listening([]byte(socketTable), found)
	if got, want := slices.Sorted(maps.Keys(found)), []int{80, 3000, 5173, 5174, 5175, 8080}; !slices.Equal(got, want) {
		t.Errorf("%d, want %d", got, want)
	}
}

func FuzzListening(f *testing.F) {
	f.Add([]byte(socketTable))
	f.Add([]byte("a b:c d 0A\nx :FFFF y 0A\nx 00000000:10000 y 0A"))
	f.Fuzz(func(t *testing.T, table []byte) {
		found := map[int]bool{}
		listening(table, found)
		for port := range found {
			if port < 1 || port > 65535 {
				t.Errorf("port %d", port)
			}
		}
		if len(found) > bytes.Count(table, []byte("0A")) {
			t.Errorf("%d ports", len(found))
		}
	})
}

// newWatch has a watch whose ports are not really taken: those of taken are somebody else's.
func newWatch(t *testing.T, taken ...int) (*portWatch, *bytes.Buffer) {
	t.Helper()
	var said bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	all := &publishing{most: make(chan struct{}, 8), closing: ctx, close: cancel}
	free := 40000
	w := &portWatch{all: all, app: &App{Stderr: &said}, sandbox: greeter{}, line: "\n", asked: map[int]bool{}, at: map[int]*foundPort{}, before: map[int]int{},
		listen: func(p publication) (*published, error) {
			if slices.Contains(taken, p.local) {
				return nil, paddock.Conflict
			}
			if p.local == 0 {
				free++
				p.local = free
			}
			return &published{publication: p, listeners: []net.Listener{nobody{p.local}}}, nil
		}}
	t.Cleanup(func() { cancel(); all.accepting.Wait() })
	return w, &said
}

// nobody is a listener to which nobody connects.
type nobody struct{ port int }

func (nobody) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (nobody) Close() error              { return nil }
func (n nobody) Addr() net.Addr          { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: n.port} }

func ports(list ...int) map[int]bool {
	m := map[int]bool{}
	for _, port := range list {
		m[port] = true
	}
	return m
}

func TestAPortIsPublishedWhenSomethingBeginsToListen(t *testing.T) {
	w, said := newWatch(t, 3001)
	w.asked[8080] = true // by name
	for range 3 {
		w.settle(ports(22, 1023, 3000, 3001, 5432, 8080, 9003))
	}
	want := "paddock: port 3000 of the sandbox is at http://localhost:3000\n" +
		"paddock: port 3001 of the sandbox is at http://localhost:40001\n" + // taken
		"paddock: port 5432 of the sandbox is at http://localhost:40002\n" + // not in the place of a database
		"paddock: port 9003 of the sandbox is at http://localhost:40003\n" // nor of a debugger, which programs obey
	if said.String() != want {
		t.Errorf("%s\nwant\n%s", said, want)
	}
	for _, p := range w.at {
		if !p.site {
			t.Errorf("port %d is open to every site", p.port)
		}
	}
	// What is gone for a moment stays, and what is gone is given free. It comes back without a word.
	said.Reset()
	w.settle(ports())
	w.settle(ports())
	if len(w.at) != 4 {
		t.Errorf("%d ports", len(w.at))
	}
	w.settle(ports())
	if len(w.at) != 0 {
		t.Errorf("%d ports are left", len(w.at))
	}
	w.settle(ports(3000, 5432))
	if w.at[5432] == nil || w.at[5432].local != 40002 || said.Len() > 0 {
		t.Errorf("%v, %s", w.at[5432], said)
	}
}

func TestASandboxTakesFewPortsOfThisMachine(t *testing.T) {
	w, said := newWatch(t)
	for first := 2000; first < 3000; first += 100 {
		var list []int
		for port := range 100 {
			list = append(list, first+port)
		}
		for range watchGone {
			w.settle(ports(list...))
			if len(w.at) > watchMost {
				t.Fatalf("%d ports", len(w.at))
			}
		}
	}
	if lines := strings.Count(said.String(), "\n"); lines != watchTold+1 || !strings.Contains(said.String(), "--publish PORT") {
		t.Errorf("%d lines: %s", lines, said)
	}
}

func TestPublishedByThemselves(t *testing.T) {
	for _, c := range []struct {
		values []string
		usual  bool
		ports  int
		auto   bool
		fails  bool
	}{
		{nil, false, 0, false, false}, {nil, true, 0, true, false}, {[]string{"auto"}, false, 0, true, false}, {[]string{"none"}, true, 0, false, false},
		{[]string{"8080"}, true, 1, true, false}, {[]string{"8080", "none"}, true, 1, false, false}, {[]string{"none", "auto"}, true, 0, false, true},
	} {
		list, auto, err := splitPublish(c.values, c.usual)
		if c.fails != (err != nil) || !c.fails && (len(list) != c.ports || auto != c.auto) {
			t.Errorf("%v: %v, %v, %v", c.values, list, auto, err)
		}
	}
}

func TestOnlyLocalhostsOwnPagesComeIn(t *testing.T) {
	for text, want := range map[string]siteVerdict{
		"":                                  siteMore,
		"GET":                               siteMore,
		"GET / HTTP/1.1\r\nHost: localhost": siteMore,
		"GET / HTTP/1.1\r\nHost: localhost:3000\r\n\r\n":  sitePasses,
		"GET / HTTP/1.1\nhOST:127.0.0.1\n\n":              sitePasses,
		"GET / HTTP/1.1\r\nHost: [::1]:3000\r\n\r\n":      sitePasses,
		"GET / HTTP/1.1\r\nHost: app.localhost:1\r\n\r\n": sitePasses,
		"GET / HTTP/1.0\r\n\r\n":                          sitePasses,
		"patch / HTTP/1.1\r\nHost: evil.example\r\n\r\n":  siteRefused, strings.Repeat("A", 99) + " / HTTP/1.1\r\nHost: evil.example\r\n\r\n": siteRefused,
		"GET / HTTP/1.1\r\n\r\n":                                                                                                               siteRefused,
		"GET / HTTP/1.1\r\nHost: evil.example:3000\r\n\r\n":                                                                                    siteRefused,
		"GET / HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n":                                                                               siteRefused,
		"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n":                                                                      siteRefused,
		"GET / HTTP/1.1\r\nHost: localhost\r\n evil.example\r\n\r\n":                                                                           siteRefused,
		"GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n":                                                                            siteRefused,
		"CONNECT localhost:3000 HTTP/1.1\r\nHost: localhost\r\n\r\n":                                                                           siteRefused,
		"GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\n\r\n":                                                            siteRefused,
		"GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n\r\n":                                                                            siteRefused,
		"POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:3000\r\n\r\n":                                                          sitePasses,
		"GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image\r\n\r\n":          siteRefused,
		"GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n\r\n":        siteRefused,
		"GET /login HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n\r\n": sitePasses,
		"GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\n\r\n":            sitePasses,
		"\x16\x03\x01": sitePasses, "SET a b\r\n": sitePasses, "PRI * HTTP/2.0\r\n\r\n": sitePasses, "*1\r\n": sitePasses, " x": sitePasses,
	} {
		if got := judgeSite([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// A verdict on a part of a connection is that on the whole.
func FuzzJudgeSite(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: localhost:3000\r\n\r\nbody"), 20)
	f.Add([]byte("GET / HTTP/1.1\r\nHost: evil.example\r\nOrigin: null\r\n\r\n"), 3)
	f.Fuzz(func(t *testing.T, head []byte, cut int) {
		if cut < 0 || cut > len(head) {
			return
		}
		part, whole := judgeSite(head[:cut]), judgeSite(head)
		if part != siteMore && part != whole {
			t.Errorf("%q: %v, and of all %v", head[:cut], part, whole)
		}
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
		if err == nil && whole == sitePasses && r.ProtoMajor == 1 && r.Host != "" && !isLocalSite(r.Host) {
			t.Errorf("%q passes, for %q", head, r.Host)
		}
	})
}

func TestARequestForAnotherSiteReachesNothingInside(t *testing.T) {
	ours, theirs := net.Pipe()
	told := make(chan string, 1)
	go func() {
		_, err := io.WriteString(ours, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
		text, e := io.ReadAll(ours)
		if err = errors.Join(err, e); err != nil {
			text = []byte(err.Error())
		}
		told <- string(text)
	}()
	if conn, ok := ofSite(t.Context(), theirs); ok {
		t.Errorf("%v came in", conn)
	}
	if text := <-told; !strings.HasPrefix(text, "HTTP/1.1 403 ") {
		t.Errorf("%q", text)
	}
	ours, theirs = net.Pipe()
	go func() {
		_, _ = io.WriteString(ours, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\nmore") // the test sees what is missing
		ours.Close()
	}()
	conn, ok := ofSite(t.Context(), theirs)
	if !ok {
		t.Fatal("it did not come in")
	}
	if text, err := io.ReadAll(conn); err != nil || string(text) != "GET / HTTP/1.1\r\nHost: localhost\r\n\r\nmore" {
		t.Errorf("%q, %v", text, err)
	}
}
