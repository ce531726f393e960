package guestinit

import (
	"encoding/json"
	"io"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/framing"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guest/nameserver"
)

// A Form is the encoding of Settings and Answers. A restored box keeps its agent, which
// behind a link may be that of an earlier release and uses JSON. In a virtual machine the
// agent is always of this release, because otherwise the machine is not restored.
type Form bool

// Forms.
const (
	OfLink    Form = false // JSON
	OfMachine Form = true  // package framing
)

// Write writes one message.
func (f Form) Write(w io.Writer, m framing.Message) error {
	if f == OfMachine {
		return framing.Write(w, m)
	}
	data, err := json.Marshal(m)
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

// Read reads one message.
func (f Form) Read(r io.Reader, m framing.Message) error {
	if f == OfMachine {
		return framing.Read(r, m, MaxSettings)
	}
	return json.NewDecoder(io.LimitReader(r, MaxSettings)).Decode(m)
}

// Append implements framing.Message.
func (o *Order) Append(b []byte) []byte {
	b = framing.AppendText(b, o.Tree)
	b = framing.AppendInt(b, int64(o.UID))
	b = framing.AppendInt(b, int64(o.GID))
	return framing.AppendBool(b, o.Sudo)
}

// Take implements framing.Message.
func (o *Order) Take(r *framing.Reader) {
	*o = Order{Tree: r.Text(), UID: int(r.Int()), GID: int(r.Int()), Sudo: r.Bool()}
}

// Append implements framing.Message.
func (s *Settings) Append(b []byte) []byte {
	b = framing.AppendText(b, s.User.Name)
	b = framing.AppendInt(b, int64(s.User.UID))
	b = framing.AppendInt(b, int64(s.User.GID))
	b = framing.AppendText(b, s.User.Home)
	b = framing.AppendText(b, s.User.Shell)
	b = framing.AppendInt(b, int64(len(s.Env)))
	for name, value := range s.Env {
		b = framing.AppendText(framing.AppendText(b, name), value)
	}
	b = framing.AppendText(b, s.Dir)
	b = framing.AppendInt(b, int64(s.Files))
	return framing.AppendInt(b, int64(s.PIDs))
}

// variableLeast is the minimum encoded size of a variable, in bytes.
const variableLeast = 4 + 4

// Take implements framing.Message.
func (s *Settings) Take(r *framing.Reader) {
	*s = Settings{User: guest.User{Name: r.Text(), UID: int(r.Int()), GID: int(r.Int()), Home: r.Text(), Shell: r.Text()}}
	n := r.Count(variableLeast)
	if n > 0 {
		s.Env = make(map[string]string, n)
	}
	for range n {
		name := r.Text()
		s.Env[name] = r.Text()
	}
	s.Dir, s.Files, s.PIDs = r.Text(), int(r.Int()), int(r.Int())
}

// Append implements framing.Message.
func (a *Answer) Append(b []byte) []byte {
	b = framing.AppendInt(b, int64(a.PIDs))
	b = framing.AppendText(b, a.Error)
	b = framing.AppendInt(b, int64(a.Kind))
	b = framing.AppendInt(b, int64(len(a.Asked)))
	for _, it := range a.Asked {
		b = framing.AppendText(b, it.Name)
		b = framing.AppendInt(b, int64(it.Count))
		b = framing.AppendInt(b, it.Time.UnixNano())
	}
	return framing.AppendBool(framing.AppendBool(b, a.Crowded), a.Full)
}

// askedLeast is the minimum encoded size of a name, in bytes.
const askedLeast = 4 + 8 + 8

// Take implements framing.Message.
func (a *Answer) Take(r *framing.Reader) {
	*a = Answer{PIDs: int(r.Int()), Error: r.Text()}
	kind := r.Int()
	if a.Kind = paddock.Kind(kind); int64(a.Kind) != kind {
		r.Refuse()
	}
	for range r.Count(askedLeast) {
		a.Asked = append(a.Asked, nameserver.Asked{Name: r.Text(), Count: int(r.Int()), Time: time.Unix(0, r.Int()).UTC()})
	}
	a.Crowded, a.Full = r.Bool(), r.Bool()
}
