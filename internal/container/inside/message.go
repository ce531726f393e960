package inside

import (
	"encoding/json"
	"io"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/record"
)

// A Form is how Settings and Answers are written. A box that was saved goes on with the
// agent that it had: behind a link that may be one of an earlier release, which speaks
// JSON. In a machine it is of this one, or the machine does not go on.
type Form bool

// Forms.
const (
	OfLink    Form = false // JSON
	OfMachine Form = true  // package record
)

// Write writes one.
func (f Form) Write(w io.Writer, m record.Message) error {
	if f == OfMachine {
		return record.Write(w, m)
	}
	data, err := json.Marshal(m)
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

// Read reads one.
func (f Form) Read(r io.Reader, m record.Message) error {
	if f == OfMachine {
		return record.Read(r, m, MaxSettings)
	}
	return json.NewDecoder(io.LimitReader(r, MaxSettings)).Decode(m)
}

// Append implements record.Message.
func (o *Order) Append(b []byte) []byte {
	b = record.AppendText(b, o.Tree)
	b = record.AppendInt(b, int64(o.UID))
	b = record.AppendInt(b, int64(o.GID))
	return record.AppendBool(b, o.Sudo)
}

// Take implements record.Message.
func (o *Order) Take(r *record.Reader) {
	*o = Order{Tree: r.Text(), UID: int(r.Int()), GID: int(r.Int()), Sudo: r.Bool()}
}

// Append implements record.Message.
func (s *Settings) Append(b []byte) []byte {
	b = record.AppendText(b, s.User.Name)
	b = record.AppendInt(b, int64(s.User.UID))
	b = record.AppendInt(b, int64(s.User.GID))
	b = record.AppendText(b, s.User.Home)
	b = record.AppendText(b, s.User.Shell)
	b = record.AppendInt(b, int64(len(s.Env)))
	for name, value := range s.Env {
		b = record.AppendText(record.AppendText(b, name), value)
	}
	b = record.AppendText(b, s.Dir)
	b = record.AppendInt(b, int64(s.Files))
	return record.AppendInt(b, int64(s.PIDs))
}

// variableLeast is how many bytes a variable takes at least.
const variableLeast = 4 + 4

// Take implements record.Message.
func (s *Settings) Take(r *record.Reader) {
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

// Append implements record.Message.
func (a *Answer) Append(b []byte) []byte {
	b = record.AppendInt(b, int64(a.PIDs))
	b = record.AppendText(b, a.Error)
	return record.AppendInt(b, int64(a.Kind))
}

// Take implements record.Message.
func (a *Answer) Take(r *record.Reader) {
	*a = Answer{PIDs: int(r.Int()), Error: r.Text()}
	kind := r.Int()
	if a.Kind = paddock.Kind(kind); int64(a.Kind) != kind {
		r.Refuse()
	}
}
