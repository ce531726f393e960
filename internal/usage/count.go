package usage

import (
	"encoding/json"
	"maps"
	"math"
	"math/bits"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// slack is the drift of the wall clock against the monotonic one above which it has jumped.
const slack = 2 * time.Second

// ahead is how far a sandbox's own time may be ahead of the wall clock, which may have been set back.
// A larger figure of a tier is ignored, because each hour of it would be a record.
const ahead = 24 * time.Hour

// processors is more than any machine has. A tier that tells of more processor time is ignored.
const processors = 1 << 12

// most is more memory than any machine has. A larger figure of a tier is ignored.
const most = 1 << 50

// A mark has the counters of a sandbox at the end of a record. It is stored with the
// record, so that the next server continues from there.
type mark struct {
	CPU     time.Duration `json:"cpu"`
	Wall    time.Duration `json:"wall"` // -1 if the tier does not report it
	Memory  int64         `json:"memory"`
	Stopped bool          `json:"stopped"` // it did not run: paused or dead
	NetIn   int64         `json:"net_in,omitempty"`
	NetOut  int64         `json:"net_out,omitempty"`
}

// A count measures one sandbox.
type count struct {
	b     store.Sandbox // at the last sample; its Memory is the memory limit, not what is reserved of the host
	rec   store.Record  // of the present hour
	mark  mark
	mono  time.Duration // time of the last sample
	dirty bool          // rec has unsaved changes
}

// resume starts to measure a sandbox: from its creation, or from the end of the last
// record.
func resume(at moment, b store.Sandbox, st paddock.Status, last store.Record, found bool) *count {
	c := &count{b: limited(b, st)}
	if !found {
		by := max(at.wall.Sub(b.Created), 0)
		age := min(st.Usage.Wall, by+ahead)
		if age < 0 {
			age = by
		}
		c.mark = mark{Wall: -1, Memory: -1}
		c.mono = at.mono - age
		c.rec = c.fresh(at.wall.Add(-age))
		return c
	}
	c.rec = last
	if last.Boxes > 0 { // a record of a day does not grow
		c.rec = c.fresh(last.End)
		c.rec.Mark = last.Mark
	}
	gap := max(at.wall.Sub(last.End), 0)
	if err := json.Unmarshal(last.Mark, &c.mark); err != nil { // written by another version of the program
		c.mark = mark{CPU: max(st.Usage.CPU, 0), Wall: -1, Memory: -1}
	}
	// The sandbox's own time is not affected by clock jumps.
	if ran := st.Usage.Wall - c.mark.Wall; c.mark.Wall >= 0 && ran >= 0 && !c.mark.Stopped {
		gap = min(ran, gap+ahead)
	}
	c.mono = at.mono - gap
	return c
}

// limited returns b with the memory limit in place of the memory of the host that is reserved for it, which
// can hold the files too: they count as the disk.
func limited(b store.Sandbox, st paddock.Status) store.Sandbox {
	if st.Limits.Memory > 0 {
		b.Memory = min(st.Limits.Memory, most)
	}
	return b
}

// fresh returns a new record.
func (c *count) fresh(begin time.Time) store.Record {
	return store.Record{
		Token: c.b.Token, Begin: begin.UTC(), End: begin.UTC(), Sandbox: c.b.ID, Tenant: c.b.Tenant, Tier: c.b.Tier, Labels: maps.Clone(c.b.Labels),
		CPU: -1, Memory: -1, NetIn: -1, NetOut: -1,
	}
}

// advance measures up to a moment. It returns the finished records.
func (c *count) advance(at moment, b store.Sandbox, st paddock.Status) []store.Record {
	took := at.mono - c.mono
	if took < 0 { // a concurrent sample was later
		return nil
	}
	var over []store.Record
	if begin := at.wall.Add(-took); begin.Sub(c.rec.End) > slack { // the clock jumped forward, or no server ran
		over = c.turn(over, begin)
	}
	// The status may be later than the moment, by the time that a sample may take.
	cpu := min(used(c.mark.CPU, st.Usage.CPU), time.Duration(scale(processors, took+patience, 1)))
	memory := middle(c.mark.Memory, st.Usage.Memory)
	in, out := crossed(c.mark, st.Traffic)
	for left := took; left > 0 || cpu > 0 || in > 0 || out > 0; {
		// A record ends at the end of its hour.
		room := c.rec.Begin.Truncate(time.Hour).Add(time.Hour).Sub(c.rec.End)
		if room <= 0 {
			over = c.turn(over, c.rec.End)
			continue
		}
		part := min(room, left)
		share := cpu
		if cpu > 0 && part < left {
			share = time.Duration(scale(int64(cpu), part, left))
		}
		c.add(part, share, memory)
		c.carry(part, left, &in, &out)
		left -= part
		if cpu > 0 {
			cpu -= share
		}
	}
	if st.Traffic != nil {
		c.rec.NetIn, c.rec.NetOut = max(c.rec.NetIn, 0), max(c.rec.NetOut, 0)
	}
	if st.Usage.CPU >= 0 {
		c.rec.CPU = max(c.rec.CPU, 0)
	}
	c.settle(at.mono, b, st)
	if !maps.Equal(c.rec.Labels, b.Labels) {
		over = c.turn(over, c.rec.End)
	}
	c.dirty = c.rec.End.After(c.rec.Begin)
	return over
}

// settle sets the mark to the present counters.
func (c *count) settle(mono time.Duration, b store.Sandbox, st paddock.Status) {
	c.b, c.mono = limited(b, st), mono
	if st.Usage.CPU >= 0 {
		c.mark.CPU = st.Usage.CPU
	}
	c.mark.Wall, c.mark.Stopped = max(st.Usage.Wall, -1), st.State != paddock.Ready
	if t := st.Traffic; t != nil {
		c.mark.NetIn, c.mark.NetOut = min(max(t.In, 0), most), min(max(t.Out, 0), most)
	}
	c.mark.Memory = -1
	if st.Usage.Memory >= 0 {
		c.mark.Memory = min(st.Usage.Memory, most)
	}
	data, err := json.Marshal(c.mark)
	if err != nil {
		panic(err) // numbers can always be encoded
	}
	c.rec.Mark = data
}

// turn ends the record and begins the next one. A record without any time continues.
func (c *count) turn(over []store.Record, begin time.Time) []store.Record {
	if !c.rec.End.After(c.rec.Begin) {
		c.rec.Begin, c.rec.End, c.rec.Labels = begin.UTC(), begin.UTC(), maps.Clone(c.b.Labels)
		return over
	}
	over = append(over, c.rec)
	mark := c.rec.Mark
	c.rec = c.fresh(begin)
	c.rec.Mark = mark
	return over
}

// add adds a period without changes.
func (c *count) add(part, cpu time.Duration, memory int64) {
	r := &c.rec
	r.End = r.End.Add(part)
	r.Wall += part
	r.DiskAsked += seconds(c.b.Disk, part)
	if c.mark.Stopped {
		r.Paused += part
	} else {
		r.CPUAsked += scale(c.b.CPU, part, time.Millisecond)
		r.MemoryAsked += seconds(c.b.Memory, part)
	}
	if cpu >= 0 {
		r.CPU = plus(r.CPU, cpu)
	}
	if memory >= 0 {
		r.Memory = plus(r.Memory, seconds(memory, part))
	}
}

// carry assigns a period's share of the remaining bytes.
func (c *count) carry(part, left time.Duration, in, out *int64) {
	for _, n := range []struct{ from, to *int64 }{{in, &c.rec.NetIn}, {out, &c.rec.NetOut}} {
		if *n.from < 0 {
			continue // not measured
		}
		share := *n.from
		if part < left {
			share = scale(share, part, left)
		}
		*n.to = plus(*n.to, share)
		*n.from -= share
	}
}

// crossed returns the network traffic since the mark, or -1 if it was not measured.
func crossed(m mark, t *paddock.Traffic) (in, out int64) {
	if t == nil {
		return -1, -1
	}
	return since(m.NetIn, t.In), since(m.NetOut, t.Out)
}

// since returns the increase of a counter. An impossible increase is ignored.
func since(before, now int64) int64 {
	now = min(max(now, 0), most)
	if now < before { // it restarted
		return now
	}
	return now - before
}

// used returns the increase of a counter. A lower value means that it restarted. A negative
// value was not measured.
func used(before, now time.Duration) time.Duration {
	if now >= before && now >= 0 {
		return now - before
	}
	return now
}

// middle returns the mean of two samples, or the only valid one, or -1.
func middle(before, now int64) int64 {
	now = min(now, most)
	switch {
	case now < 0:
		return before
	case before < 0:
		return now
	}
	return before + (now-before)/2
}

// plus returns the sum of two amounts, of which a negative one is none. A sum that overflows is the
// largest number.
func plus[N ~int64](a, b N) N {
	if sum := max(a, 0) + max(b, 0); sum >= 0 {
		return sum
	}
	return math.MaxInt64
}

// seconds returns an amount multiplied by a time.
func seconds(amount int64, d time.Duration) int64 { return scale(amount, d, time.Second) }

// scale returns amount*part/whole for non-negative numbers, without overflow.
func scale(amount int64, part, whole time.Duration) int64 {
	hi, lo := bits.Mul64(uint64(max(amount, 0)), uint64(max(part, 0)))
	if hi >= uint64(whole) {
		return 1<<63 - 1
	}
	n, _ := bits.Div64(hi, lo, uint64(whole))
	return int64(min(n, 1<<63-1))
}
