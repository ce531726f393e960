package qemu

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// talk is a connection to an engine that the test plays.
func talk(t *testing.T, engine func(in *bufio.Reader, out net.Conn)) (*qmp, func() []string) {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		engine(bufio.NewReader(theirs), theirs)
	}()
	var events []string
	p := newQMP(ours, func(data []byte, _ int) error {
		_, err := ours.Write(append(data, '\n'))
		return err
	}, func(m message) { events = append(events, m.Event) })
	t.Cleanup(p.close)
	return p, func() []string {
		<-p.done
		return events
	}
}

const greeting = `{"QMP": {"version": {}, "capabilities": ["oob"]}}` + "\r\n"

// answer reads a command and sends a formatted answer with its number.
func answer(in *bufio.Reader, out io.Writer, format string) command {
	var c command
	line, _ := in.ReadBytes('\n')
	_ = json.Unmarshal(line, &c)
	fmt.Fprintf(out, format+"\r\n", c.ID)
	return c
}

func TestAnswersAreTold(t *testing.T) {
	p, events := talk(t, func(in *bufio.Reader, out net.Conn) {
		fmt.Fprint(out, greeting)
		fmt.Fprint(out, `{"return": "an answer that nobody waits for", "id": 77}`+"\n")
		answer(in, out, `{"return": {}, "id": %d}`)
		fmt.Fprint(out, `{"event": "RESUME", "timestamp": {"seconds": 1}}`+"\n")
		answer(in, out, `{"return": "yes", "id": %d}`)
		answer(in, out, `{"error": {"class": "GenericError", "desc": "not\ntoday"}, "id": %d}`)
	})
	if err := p.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	var text string
	if err := p.ask(t.Context(), "question", nil, &text); err != nil || text != "yes" {
		t.Fatalf("%q, %v", text, err)
	}
	if err := p.run(t.Context(), "deed", nil); err == nil || !strings.Contains(err.Error(), `deed: QEMU: "not\ntoday"`) {
		t.Fatal(err)
	}
	if got := events(); len(got) != 1 || got[0] != "RESUME" {
		t.Fatal(got)
	}
	if err := p.run(t.Context(), "deed", nil); err == nil {
		t.Fatal("an answer of one that is gone")
	}
}

// Continuing works with every version of QEMU, even if it has already closed its file of
// devices.
func TestAFileThatQEMUHasClosedIsNotTakenBack(t *testing.T) {
	for sets, want := range map[string][]string{
		`[]`:                                    {"cont", "query-fdsets", "query-status", "query-status"},
		`[{"fdset-id": 1, "fds": []}]`:          {"cont", "query-fdsets", "query-status", "query-status"},
		`[{"fdset-id": 2, "fds": [{"fd": 9}]}]`: {"cont", "query-fdsets", "remove-fd", "query-status", "query-status"},
	} {
		asked := make(chan string, 16)
		p, _ := talk(t, func(in *bufio.Reader, out net.Conn) {
			fmt.Fprint(out, greeting)
			answer(in, out, `{"return": {}, "id": %d}`)
			for {
				line, err := in.ReadBytes('\n')
				var c command
				if err != nil || json.Unmarshal(line, &c) != nil {
					return
				}
				asked <- c.Execute
				if c.Execute == "query-fdsets" {
					fmt.Fprintf(out, `{"return": %s, "id": %d}`+"\n", sets, c.ID)
				} else {
					fmt.Fprintf(out, `{"return": {}, "id": %d}`+"\n", c.ID)
				}
			}
		})
		if err := p.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		v := &VM{protocol: p, lent: true, stops: true}
		if err := v.Cont(t.Context()); err != nil || v.Stands() || v.lent {
			t.Errorf("%s: %v, stands %v, lent %v", sets, err, v.Stands(), v.lent)
		}
		for _, name := range want {
			if got := <-asked; got != name {
				t.Errorf("%s: %s in place of %s", sets, got, name)
			}
		}
	}
}

func TestAMachineRunsThoughItsFileIsNotTakenBack(t *testing.T) {
	p, _ := talk(t, func(in *bufio.Reader, out net.Conn) {
		fmt.Fprint(out, greeting)
		answer(in, out, `{"return": {}, "id": %d}`)
		answer(in, out, `{"return": {}, "id": %d}`) // cont
		answer(in, out, `{"return": [{"fdset-id": 2}], "id": %d}`)
		answer(in, out, `{"error": {"class": "GenericError", "desc": "not now"}, "id": %d}`)
		answer(in, out, `{"return": {}, "id": %d}`)
		answer(in, out, `{"return": {}, "id": %d}`)
	})
	if err := p.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := &VM{protocol: p, lent: true, stops: true}
	if err := v.Cont(t.Context()); err != nil || v.Stands() || !v.lent {
		t.Errorf("%v, stands %v, to be taken back %v", err, v.Stands(), v.lent)
	}
}

func TestALateAnswerIsNotAnothersAnswer(t *testing.T) {
	asked, ended := make(chan struct{}), make(chan struct{})
	p, _ := talk(t, func(in *bufio.Reader, out net.Conn) {
		_, _ = in.ReadBytes('\n')
		close(asked)
		<-ended
		fmt.Fprint(out, `{"return": "late", "id": 1}`+"\n")
		answer(in, out, `{"return": "in time", "id": %d}`)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if err := p.run(ctx, "first", nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(ended)
	var text string
	if err := p.ask(t.Context(), "second", nil, &text); err != nil || text != "in time" {
		t.Fatalf("%q, %v", text, err)
	}
}

func TestWhatIsNoConversationEndsIt(t *testing.T) {
	for _, c := range []struct{ name, says string }{
		{"nothing", ""},
		{"no JSON", "hello\n"},
		{"no kind", "{}\n"},
		{"another type", `{"return": {}, "id": "one"}` + "\n"},
		{"two greetings", greeting + greeting},
		{"a line without end", strings.Repeat("x", 2*maxLine)},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, _ := talk(t, func(in *bufio.Reader, out net.Conn) {
				go func() { _, _ = io.Copy(io.Discard, in) }()
				fmt.Fprint(out, c.says)
			})
			if err := p.begin(t.Context()); err == nil {
				t.Fatal("it began")
			}
		})
	}
}

func TestALongErrorIsTold(t *testing.T) {
	p, _ := talk(t, func(in *bufio.Reader, out net.Conn) {
		answer(in, out, `{"error": {"desc": "`+strings.Repeat("long ", 1000)+`"}, "id": %d}`)
	})
	if err := p.run(t.Context(), "deed", nil); err == nil || len(err.Error()) > 400 {
		t.Fatal(err)
	}
}

func FuzzProtocol(f *testing.F) {
	f.Add([]byte(greeting + `{"return": {}, "id": 1}` + "\n" + `{"event": "STOP", "data": {}}` + "\n"))
	f.Add([]byte(`{"error": {"desc": "no"}, "id": 1}` + "\n"))
	f.Add([]byte(`{"QMP": null, "return": null, "id": -1}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReaderSize(bytes.NewReader(data), maxLine)
		for {
			m, err := readMessage(r)
			if err != nil {
				break
			}
			(&VM{stops: true, loaded: make(chan string, 1)}).see(m)
		}
		p, _ := talk(t, func(in *bufio.Reader, out net.Conn) {
			go func() { _, _ = io.Copy(io.Discard, in) }()
			_, _ = out.Write(data)
		})
		_ = p.begin(t.Context())
		_ = p.run(t.Context(), "deed", nil)
	})
}

func FuzzAddressOf(f *testing.F) {
	f.Add("Host virtual address for 0x0 (ram) is 0x7f0011200000\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		addr, err := addressOf(text)
		if err == nil && (addr == 0 || addr%pageSize != 0 || addr > 1<<62) {
			t.Fatalf("%q: %x", text, addr)
		}
	})
}

func TestAddressOfMemory(t *testing.T) {
	for _, c := range []struct {
		text string
		addr uint64
	}{
		{"Host virtual address for 0x0 (ram) is 0x7f0011200000\r\n", 0x7f0011200000},
		{"Host virtual address for 0x0 (ram) is 0x7f0011200001", 0},
		{"Host virtual address for 0x0 (ram) is (nil)", 0},
		{"Host virtual address for 0x0 (pc.bios) is 0x7f0011200000", 0},
		{"No memory is mapped at address 0x0", 0},
		{"", 0},
	} {
		addr, err := addressOf(c.text)
		if addr != c.addr || (err == nil) != (c.addr != 0) || err != nil && !errors.Is(err, paddock.Internal) {
			t.Errorf("%q: %x, %v", c.text, addr, err)
		}
	}
}
