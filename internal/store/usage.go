package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A Record is the usage of one sandbox within one hour, or a day's record made by [Store.FoldRecords].
type Record struct {
	Token   string // of the sandbox
	Begin   time.Time
	End     time.Time
	Sandbox paddock.ID
	Tenant  string
	Tier    paddock.Tier
	Labels  map[string]string

	Wall   time.Duration // time that it existed
	Paused time.Duration // part of Wall in which it was paused
	CPU    time.Duration // processor time; -1 if not measured
	Memory int64         // memory in use, in byte-seconds; -1 if not measured

	// CPUAsked is the reserved processor time in milliseconds times thousandths of a processor, and MemoryAsked and
	// DiskAsked are reserved byte-seconds. Processors and memory count while the sandbox is not paused, disk also while
	// it is.
	CPUAsked    int64
	MemoryAsked int64
	DiskAsked   int64

	NetIn  int64 // bytes; -1 if not measured
	NetOut int64

	// Mark is the state of the sandbox's meter at the end of the record. The store does not read it.
	Mark json.RawMessage

	// Boxes is 0 for a record of an hour. For a record of a day it is the number of sandboxes: one, which it names, or
	// several, which it does not.
	Boxes int64
}

const recordColumns = "token, begins, ends, sandbox, tenant, tier, labels, wall, paused, cpu, memory, cpu_asked, memory_asked, disk_asked, net_in, net_out, mark, boxes"

func scanRecord(r row) (Record, error) {
	var u Record
	var begins, ends int64
	var labels, mark string
	err := r.Scan(&u.Token, &begins, &ends, &u.Sandbox, &u.Tenant, &u.Tier, &labels, &u.Wall, &u.Paused, &u.CPU, &u.Memory, &u.CPUAsked, &u.MemoryAsked, &u.DiskAsked, &u.NetIn, &u.NetOut, &mark, &u.Boxes)
	if err != nil {
		return u, err
	}
	u.Begin, u.End, u.Mark = moment(begins), moment(ends), json.RawMessage(mark)
	return u, value(labels, &u.Labels)
}

// PutRecords stores records of hours in one transaction. Each replaces the stored record of the same sandbox and start,
// unless that one reaches farther or is of a day.
func (s *Store) PutRecords(ctx context.Context, records []Record) error {
	if len(records) == 0 {
		return nil
	}
	return s.write(ctx, func(q query) error {
		for _, u := range records {
			u.Boxes = 0
			if err := q.putRecord(u); err != nil {
				return err
			}
		}
		return nil
	})
}

func (q query) putRecord(u Record) error {
	labels, err := text(u.Labels)
	if err != nil {
		return err
	}
	_, err = q.exec("INSERT INTO usages ("+recordColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"+
		" ON CONFLICT (token, begins) DO UPDATE SET ends = excluded.ends, labels = excluded.labels, wall = excluded.wall, paused = excluded.paused, cpu = excluded.cpu, memory = excluded.memory,"+
		" cpu_asked = excluded.cpu_asked, memory_asked = excluded.memory_asked, disk_asked = excluded.disk_asked, net_in = excluded.net_in, net_out = excluded.net_out, mark = excluded.mark"+
		" WHERE usages.ends <= excluded.ends AND usages.boxes = 0",
		u.Token, stamp(u.Begin), stamp(u.End), u.Sandbox, u.Tenant, u.Tier, labels, int64(u.Wall), int64(u.Paused), int64(u.CPU), u.Memory, u.CPUAsked, u.MemoryAsked, u.DiskAsked, u.NetIn, u.NetOut, clean(string(u.Mark)), u.Boxes)
	return err
}

// LastRecord returns the newest record of a sandbox, or [paddock.NotFound].
func (s *Store) LastRecord(ctx context.Context, token string) (Record, error) {
	var u Record
	err := s.read(ctx, func(q query) (err error) {
		u, err = scanRecord(q.row("SELECT "+recordColumns+" FROM usages WHERE token = ? ORDER BY begins DESC LIMIT 1", token))
		return absent(err, "usage of sandbox", token)
	})
	return u, err
}

// Records calls f with the records that began within a time, oldest first: those of one tenant or, if tenant is empty,
// of all.
func (s *Store) Records(ctx context.Context, tenant string, from, to time.Time, f func(Record) error) error {
	where, values := " WHERE begins >= ? AND begins < ?", []any{stamp(from), stamp(to)}
	if tenant != "" {
		where, values = where+" AND tenant = ?", append(values, clean(tenant))
	}
	return s.read(ctx, func(q query) error {
		return q.each(func(r row) error {
			u, err := scanRecord(r)
			if err != nil {
				return err
			}
			return f(u)
		}, "SELECT "+recordColumns+" FROM usages"+where+" ORDER BY begins, token", values...)
	})
}

// dropBatch is how many records are deleted at once, so that other writers are not blocked
// for long.
const dropBatch = 5000

// DropRecords deletes some of the records that ended before a time, and returns their number. Zero means that nothing
// is left to do.
func (s *Store) DropRecords(ctx context.Context, before time.Time) (int, error) {
	var n int64
	err := s.write(ctx, func(q query) (err error) {
		n, err = q.exec("DELETE FROM usages WHERE (token, begins) IN (SELECT token, begins FROM usages WHERE begins < ? AND ends < ? ORDER BY begins LIMIT ?)",
			stamp(before), stamp(before), dropBatch) // the first condition uses an index
		return err
	})
	return int(n), err
}
