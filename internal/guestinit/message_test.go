package guestinit

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/framing"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guest/nameserver"
)

func TestMessagesAreReadAsTheyWereWritten(t *testing.T) {
	settings := &Settings{User: guest.User{Name: "user", UID: 1, GID: 2, Home: "/home", Shell: "/bin/sh"}, Env: map[string]string{"A": "1", "B": ""}, Dir: "/tmp", Files: 3, PIDs: 4}
	answer := &Answer{PIDs: 5, Error: "no", Kind: paddock.Denied, Asked: []nameserver.Asked{{Name: "a.example", Count: 6, Time: time.Unix(7, 8).UTC()}}, Crowded: true, Full: true}
	for _, form := range []Form{OfLink, OfMachine} {
		for _, m := range []struct{ want, got framing.Message }{
			{settings, &Settings{}}, {&Settings{PIDs: 1}, &Settings{}}, {answer, &Answer{}}, {&Answer{}, &Answer{}},
		} {
			var b bytes.Buffer
			if err := errors.Join(form.Write(&b, m.want), form.Read(&b, m.got)); err != nil || !reflect.DeepEqual(m.got, m.want) {
				t.Errorf("in a machine %t: %+v, %v, and not %+v", form, m.got, err, m.want)
			}
		}
	}
	var b bytes.Buffer
	want, got := Order{Tree: "/tree", UID: 1, GID: 2, Sudo: true}, Order{}
	if err := errors.Join(framing.Write(&b, &want), framing.Read(&b, &got, MaxSettings)); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
}

// An agent of an earlier release in a restored box uses this form.
func TestBehindALinkMessagesAreJSON(t *testing.T) {
	var b bytes.Buffer
	if err := OfLink.Write(&b, &Settings{PIDs: 7}); err != nil || !bytes.HasPrefix(b.Bytes(), []byte(`{"user":{`)) || !bytes.HasSuffix(b.Bytes(), []byte(`"pids":7}`)) {
		t.Errorf("%s, %v", &b, err)
	}
	var a Answer
	if err := OfLink.Read(bytes.NewReader([]byte(`{"pids":2,"error":"no","kind":3}`)), &a); err != nil || !reflect.DeepEqual(a, Answer{PIDs: 2, Error: "no", Kind: 3}) {
		t.Errorf("%+v, %v", a, err)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, a := range []Answer{{}, {PIDs: 1, Error: "no", Kind: paddock.Denied}} {
		var b bytes.Buffer
		if err := OfMachine.Write(&b, &a); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var a Answer
		if OfMachine.Read(bytes.NewReader(data), &a) != nil {
			return
		}
		var b bytes.Buffer
		if err := OfMachine.Write(&b, &a); err != nil || !bytes.HasPrefix(data, b.Bytes()) {
			t.Errorf("%+v, %v: % x and not % x", a, err, b.Bytes(), data)
		}
	})
}
