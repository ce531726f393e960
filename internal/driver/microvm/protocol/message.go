package protocol

import (
	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/framing"
)

// Append implements framing.Message.
func (r *Request) Append(b []byte) []byte {
	b = framing.AppendBool(b, r.Begin != nil)
	if r.Begin != nil {
		b = r.Begin.Append(b)
	}
	b = framing.AppendBool(b, r.Hold)
	b = framing.AppendBool(b, r.Go)
	b = framing.AppendBool(b, r.Archive != nil)
	if a := r.Archive; a != nil {
		b = framing.AppendInt(b, a.All)
		b = framing.AppendInt(b, a.Content)
		b = framing.AppendInt(b, a.File)
	}
	b = framing.AppendInt(b, r.Memory)
	return framing.AppendBool(b, r.Inspect)
}

// Take implements framing.Message.
func (r *Request) Take(from *framing.Reader) {
	*r = Request{}
	if from.Bool() {
		r.Begin = &Begin{}
		r.Begin.Take(from)
	}
	r.Hold, r.Go = from.Bool(), from.Bool()
	if from.Bool() {
		r.Archive = &Archive{All: from.Int(), Content: from.Int(), File: from.Int()}
	}
	r.Memory, r.Inspect = from.Int(), from.Bool()
}

// Append implements framing.Message.
func (r *Begin) Append(b []byte) []byte {
	b = framing.AppendBool(b, r.Again)
	b = framing.AppendText(b, string(r.Entropy))
	b = framing.AppendInt(b, r.Time)
	b = framing.AppendText(b, r.Hostname)
	b = framing.AppendText(b, r.Machine)
	b = framing.AppendBool(b, r.Link)
	b = framing.AppendInt(b, int64(len(r.Binds)))
	for _, bind := range r.Binds {
		b = framing.AppendText(b, bind.Target)
		b = framing.AppendBool(b, bind.Write)
		b = framing.AppendBool(b, bind.IsFile)
	}
	b = framing.AppendInt(b, r.Disk)
	b = framing.AppendInt(b, r.Memory)
	b = framing.AppendInt(b, int64(r.UID))
	b = framing.AppendInt(b, int64(r.GID))
	b = framing.AppendBool(b, r.Sudo)
	return framing.AppendBool(b, r.Layer)
}

// bindLeast is the minimum encoded size of a bind.
const bindLeast = 4 + 1 + 1

// Take implements framing.Message.
func (r *Begin) Take(from *framing.Reader) {
	*r = Begin{
		Again: from.Bool(), Entropy: []byte(from.Text()), Time: from.Int(), Hostname: from.Text(), Machine: from.Text(),
		Link: from.Bool(),
	}
	for range from.Count(bindLeast) {
		r.Binds = append(r.Binds, boxinit.Bind{Target: from.Text(), Write: from.Bool(), IsFile: from.Bool()})
	}
	r.Disk, r.Memory, r.UID, r.GID = from.Int(), from.Int(), int(from.Int()), int(from.Int())
	r.Sudo, r.Layer = from.Bool(), from.Bool()
}

// Append implements framing.Message.
func (a *Answer) Append(b []byte) []byte {
	b = framing.AppendText(b, a.Error)
	b = framing.AppendInt(b, int64(a.Kind))
	b = framing.AppendInt(b, a.Kills)
	b = framing.AppendInt(b, a.Memory)
	return framing.AppendInt(b, a.Peak)
}

// Take implements framing.Message.
func (a *Answer) Take(from *framing.Reader) {
	*a = Answer{Error: from.Text()}
	kind := from.Int()
	if a.Kind = paddock.Kind(kind); int64(a.Kind) != kind {
		from.Refuse()
	}
	a.Kills, a.Memory, a.Peak = from.Int(), from.Int(), from.Int()
}
