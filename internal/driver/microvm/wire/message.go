package wire

import (
	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/container/inner"
	"github.com/paddock-sandbox/paddock/internal/record"
)

// Append implements record.Message.
func (r *Request) Append(b []byte) []byte {
	b = record.AppendBool(b, r.Begin != nil)
	if r.Begin != nil {
		b = r.Begin.Append(b)
	}
	b = record.AppendBool(b, r.Hold)
	b = record.AppendBool(b, r.Go)
	b = record.AppendBool(b, r.Archive != nil)
	if a := r.Archive; a != nil {
		b = record.AppendInt(b, a.All)
		b = record.AppendInt(b, a.Content)
		b = record.AppendInt(b, a.File)
	}
	b = record.AppendInt(b, r.Memory)
	return record.AppendBool(b, r.Inspect)
}

// Take implements record.Message.
func (r *Request) Take(from *record.Reader) {
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

// Append implements record.Message.
func (r *Begin) Append(b []byte) []byte {
	b = record.AppendBool(b, r.Again)
	b = record.AppendText(b, string(r.Entropy))
	b = record.AppendInt(b, r.Time)
	b = record.AppendText(b, r.Hostname)
	b = record.AppendText(b, r.Machine)
	b = record.AppendBool(b, r.Link)
	b = record.AppendInt(b, int64(len(r.Binds)))
	for _, bind := range r.Binds {
		b = record.AppendText(b, bind.Target)
		b = record.AppendBool(b, bind.Write)
		b = record.AppendBool(b, bind.IsFile)
	}
	b = record.AppendInt(b, r.Disk)
	b = record.AppendInt(b, r.Memory)
	b = record.AppendInt(b, int64(r.UID))
	b = record.AppendInt(b, int64(r.GID))
	b = record.AppendBool(b, r.Sudo)
	return record.AppendBool(b, r.Layer)
}

// bindLeast is how many bytes a bind takes at least.
const bindLeast = 4 + 1 + 1

// Take implements record.Message.
func (r *Begin) Take(from *record.Reader) {
	*r = Begin{
		Again: from.Bool(), Entropy: []byte(from.Text()), Time: from.Int(), Hostname: from.Text(), Machine: from.Text(),
		Link: from.Bool(),
	}
	for range from.Count(bindLeast) {
		r.Binds = append(r.Binds, inner.Bind{Target: from.Text(), Write: from.Bool(), IsFile: from.Bool()})
	}
	r.Disk, r.Memory, r.UID, r.GID = from.Int(), from.Int(), int(from.Int()), int(from.Int())
	r.Sudo, r.Layer = from.Bool(), from.Bool()
}

// Append implements record.Message.
func (a *Answer) Append(b []byte) []byte {
	b = record.AppendText(b, a.Error)
	b = record.AppendInt(b, int64(a.Kind))
	b = record.AppendInt(b, a.Kills)
	b = record.AppendInt(b, a.Memory)
	return record.AppendInt(b, a.Peak)
}

// Take implements record.Message.
func (a *Answer) Take(from *record.Reader) {
	*a = Answer{Error: from.Text()}
	kind := from.Int()
	if a.Kind = paddock.Kind(kind); int64(a.Kind) != kind {
		from.Refuse()
	}
	a.Kills, a.Memory, a.Peak = from.Int(), from.Int(), from.Int()
}
