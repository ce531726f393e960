package gatewayclient

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock"
)

func plain(t *testing.T, s string, limit int) {
	t.Helper()
	if len(s) > limit || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Fatalf("%q is not safe to show", s)
	}
}

// FuzzMessage reads and cleans messages of a gateway.
func FuzzMessage(f *testing.F) {
	for _, s := range []string{
		`{"op":"ready","ready":{"findings":[{"control":"landlock","strength":"full"}]}}`,
		`{"op":"events","events":[{"kind":"tcp","host":"a\u001b[2J.test","port":443,"rule":-7,"verdict":"deny","sent":-1,"count":-3,"path":"/\u202e"}]}`,
		`{"op":"ask","id":3,"question":{"host":"a.test","port":443}}`, `{"op":"reply","id":1,"error":"no: denied","kind":4,"names":["a"],"more":true}`,
		`{"op":"x"} {}`, `{"op":"x","what":1}`, `[]`, `{"op":"reply","kind":300}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeMessage(data)
		if err != nil {
			if !errors.Is(err, paddock.Invalid) {
				t.Fatalf("%q: %v", data, err)
			}
			return
		}
		if err := m.err(); err != nil {
			plain(t, err.Error(), textMax)
		}
		for _, e := range m.Events {
			e = CleanEvent(e, "box")
			for _, s := range []string{e.Kind, e.Host, e.Address, e.Method, e.Verdict} {
				plain(t, s, nameMax)
			}
			for _, s := range []string{e.Path, e.Reason, e.Hint} {
				plain(t, s, textMax)
			}
			if e.Sandbox != "box" || e.Rule < -1 || e.Sent < 0 || e.Received < 0 || e.Count < 0 || len(e.Secrets) > findingMax {
				t.Fatalf("%q gives %+v", data, e)
			}
			if _, err := json.Marshal(e); err != nil {
				t.Fatalf("%q gives %+v, which cannot be kept: %v", data, e, err)
			}
		}
	})
}

// FuzzAttempt reads messages of a process that may dial.
func FuzzAttempt(f *testing.F) {
	for _, s := range []string{`{"id":1,"host":"a.test","port":443}`, `{"id":1,"cancel":true}`, `{"id":1}`, `{"id":-1}`, `{"id":1,"host":"a","port":1}{}`, `{"id":1,"host":"a","port":70000}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := readDialRequest(data)
		if err != nil {
			if !errors.Is(err, paddock.Invalid) {
				t.Fatalf("%q: %v", data, err)
			}
			return
		}
		if a.Cancel == (a.Host != "" && a.Port != 0) || len(a.Host) > nameMax || len(data) > dialRequestMax {
			t.Fatalf("%q gives %+v", data, a)
		}
	})
}

func TestMoreEventsThanAreBelievedAreCounted(t *testing.T) {
	m := meter{sandbox: "box"}
	now := time.Unix(1000, 0)
	told := 0
	for range eventRate + 500 {
		told += len(m.take(Event{Host: "a.test"}, now))
	}
	if told != eventRate {
		t.Fatalf("%d events were told in a second", told)
	}
	later := m.take(Event{Host: "b.test"}, now.Add(2*time.Second))
	if len(later) != 2 || later[0].Count != 500 || later[1].Host != "b.test" {
		t.Fatalf("afterwards: %+v", later)
	}
	if _, ok := m.rest(now); ok {
		t.Fatal("what was missed is told twice")
	}
}

func TestAnErrorKeepsItsKindAndItsWords(t *testing.T) {
	err := ErrorReply(3, refusedError{}).err()
	if !errors.Is(err, paddock.Denied) || err.Error() != "no rule allows it: denied" {
		t.Fatalf("%v", err)
	}
}

type refusedError struct{}

func (refusedError) Error() string { return "no rule allows it: denied" }
func (refusedError) Unwrap() error { return paddock.Denied }
