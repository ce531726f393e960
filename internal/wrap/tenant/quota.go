package tenant

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// errQuota is a quota that a sandbox which ended may have used.
var errQuota = errors.New("over quota")

// most is more than any machine has, and little enough that a sum of such is a
// number.
const most = 1 << 50

// reserve is what a sandbox with these limits may use.
func reserve(l, defaults paddock.Limits) (store.Reserved, error) {
	for name, v := range map[string]float64{
		"memory": float64(l.Memory), "cpus": l.CPUs * 1000, "pids": float64(l.PIDs), "disk": float64(l.Disk), "files": float64(l.Files), "io": float64(l.IO), "lifetime": float64(l.Lifetime),
	} {
		if bounded := name != "files" && name != "io" && name != "lifetime"; math.IsNaN(v) || v < 0 || (bounded && v > most) {
			return store.Reserved{}, fmt.Errorf("limit of %s: it is negative, or more than any machine has: %w", name, paddock.Invalid)
		}
	}
	return counted(filled(l, defaults)), nil
}

// filled is a spec's limits with the driver's for what it leaves out.
func filled(l, defaults paddock.Limits) paddock.Limits {
	l.CPUs = cmp.Or(l.CPUs, defaults.CPUs)
	l.Memory = cmp.Or(l.Memory, defaults.Memory)
	l.PIDs = cmp.Or(l.PIDs, defaults.PIDs)
	l.Disk = cmp.Or(l.Disk, defaults.Disk)
	return l
}

// counted is limits as they are reserved: a part of a thousandth is one.
func counted(l paddock.Limits) store.Reserved {
	return store.Reserved{
		CPU:    int64(math.Ceil(min(max(l.CPUs, 0)*1000, most))),
		Memory: min(max(l.Memory, 0), most), PIDs: min(max(int64(l.PIDs), 0), most), Disk: min(max(l.Disk, 0), most),
	}
}

// room tells in words which quota has no room for one more sandbox, and takes
// what it may use up of the rate.
func (d *driver) room(have *store.Total, asked store.Reserved, now time.Time) error {
	q := have.Quota
	if over(q.Sandboxes, have.Sandboxes, 1) {
		return d.full("sandboxes", q.Sandboxes, have.Sandboxes, 1, number)
	}
	if err := d.fits(have, asked); err != nil {
		return err
	}
	return d.pace(have, now)
}

// fits is room for what sandboxes may use.
func (d *driver) fits(have *store.Total, asked store.Reserved) error {
	q := have.Quota
	for _, row := range []struct {
		what              string
		quota, has, asked int64
		words             func(int64) string
	}{
		{"processors", q.CPU, have.CPU, asked.CPU, thousandths},
		{"memory", q.Memory, have.Memory, asked.Memory, bytes},
		{"processes", q.PIDs, have.PIDs, asked.PIDs, number},
		{"disk", q.Disk, have.Disk, asked.Disk, bytes},
	} {
		if over(row.quota, row.has, row.asked) {
			return d.full(row.what, row.quota, row.has, row.asked, row.words)
		}
	}
	return nil
}

// over tells whether a quota has no room. What is reserved is never negative, and
// its sum never overflows.
func over(quota, has, asked int64) bool {
	return quota != store.Unbounded && asked > 0 && (quota < 0 || has > quota || asked > quota-has)
}

func (d *driver) full(what string, quota, has, asked int64, words func(int64) string) error {
	return fmt.Errorf("tenant %s: quota of %s is %s, used are %s, asked for is %s: %w: %w", d.tenant, what, words(max(quota, 0)), words(has), words(asked), errQuota, paddock.Exhausted)
}

// pace lets so many sandboxes be made in a minute, all at once or one by one:
// have.Rate is when all of them could be made again.
func (d *driver) pace(have *store.Total, now time.Time) error {
	rate := have.Quota.Rate
	switch {
	case rate == store.Unbounded:
		return nil
	case rate <= 0:
		return fmt.Errorf("tenant %s: quota of sandboxes made in a minute is 0, asked for is 1: %w", d.tenant, paddock.Exhausted)
	}
	each := max(time.Minute/time.Duration(min(rate, int64(time.Minute))), 1)
	free := have.Rate
	if free.Before(now) || free.After(now.Add(time.Minute)) { // the latter after a clock was set back
		free = now
	}
	next := free.Add(each)
	if wait := next.Sub(now) - time.Minute; wait > 0 {
		return fmt.Errorf("tenant %s: quota of sandboxes made in a minute is %d, and used up; the next one can be made in %s: %w", d.tenant, rate, wait.Round(time.Millisecond), paddock.Exhausted)
	}
	have.Rate = next
	return nil
}

// keep tells in words whether there is room for one more snapshot.
func (d *driver) keep(have *store.Total) error {
	if over(have.Quota.Snapshots, have.Snapshots, 1) {
		return d.full("snapshots", have.Quota.Snapshots, have.Snapshots, 1, number)
	}
	return nil
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func thousandths(n int64) string { return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) }

// bytes is a size in the largest unit that tells it whole.
func bytes(n int64) string {
	for _, u := range []struct {
		shift int
		name  string
	}{{40, "T"}, {30, "G"}, {20, "M"}, {10, "K"}} {
		if n != 0 && n%(1<<u.shift) == 0 {
			return strconv.FormatInt(n>>u.shift, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}
