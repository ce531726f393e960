package tenant

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// errQuota reports an exceeded quota to which an ended sandbox may still count. The request
// alone does not exceed it.
var errQuota = errors.New("over quota")

// most is more than any machine has, and so small that sums do not overflow.
const most = 1 << 50

// reserve returns the reservation for a sandbox of a tier with these limits. Zero ones are those of otherwise.
func (ts *Set) reserve(tier paddock.Tier, l, otherwise paddock.Limits) (store.Reserved, error) {
	for name, v := range map[string]float64{
		"memory": float64(l.Memory), "cpus": l.CPUs * 1000, "pids": float64(l.PIDs), "disk": float64(l.Disk), "files": float64(l.Files), "io": float64(l.IO), "lifetime": float64(l.Lifetime),
	} {
		if bounded := name != "files" && name != "io" && name != "lifetime"; math.IsNaN(v) || v < 0 || (bounded && v > most) {
			return store.Reserved{}, fmt.Errorf("limit of %s: it is negative or too large: %w", name, paddock.Invalid)
		}
	}
	return ts.counted(tier, filled(l, otherwise)), nil
}

// filled returns limits with others for zero fields.
func filled(l, otherwise paddock.Limits) paddock.Limits {
	l.CPUs = cmp.Or(l.CPUs, otherwise.CPUs)
	l.Memory = cmp.Or(l.Memory, otherwise.Memory)
	l.PIDs = cmp.Or(l.PIDs, otherwise.PIDs)
	l.Disk = cmp.Or(l.Disk, otherwise.Disk)
	return l
}

// counted converts limits to a reservation. It rounds thousandths of a processor up. The memory is what the
// sandbox can take of the host, which is more than the limit where files are memory beside it.
func (ts *Set) counted(tier paddock.Tier, l paddock.Limits) store.Reserved {
	if bytes, known := paddock.HostMemory(ts.d, tier, l); known {
		l.Memory = max(bytes, l.Memory)
	}
	return store.Reserved{
		CPU:    int64(math.Ceil(min(max(l.CPUs, 0)*1000, most))),
		Memory: min(max(l.Memory, 0), most), PIDs: min(max(int64(l.PIDs), 0), most), Disk: min(max(l.Disk, 0), most),
	}
}

// room returns an error that names the quota without room for one more sandbox. It also
// uses up the rate.
func (d *driver) room(have *store.Total, asked store.Reserved, now time.Time) error {
	all := append([]claim{{"sandboxes", have.Quota.Sandboxes, have.Sandboxes, 1, number}}, claims(have, asked)...)
	if err := d.check(all); err != nil {
		return err
	}
	return d.pace(have, now)
}

// fits is room without the rate and the number.
func (d *driver) fits(have *store.Total, asked store.Reserved) error {
	return d.check(claims(have, asked))
}

// A claim is what is asked for of one quota.
type claim struct {
	what              string
	quota, has, asked int64
	words             func(int64) string
}

func claims(have *store.Total, asked store.Reserved) []claim {
	q := have.Quota
	return []claim{
		{"processors", q.CPU, have.CPU, asked.CPU, thousandths},
		{"memory", q.Memory, have.Memory, asked.Memory, bytes},
		{"processes", q.PIDs, have.PIDs, asked.PIDs, number},
		{"disk", q.Disk, have.Disk, asked.Disk, bytes},
	}
}

// check returns an error that names the first quota without room. It is errQuota if none of
// the claims alone exceeds its quota.
func (d *driver) check(all []claim) error {
	i := slices.IndexFunc(all, func(c claim) bool { return over(c.quota, c.has, c.asked) })
	if i < 0 {
		return nil
	}
	c := all[i]
	err := fmt.Errorf("tenant %s: quota of %s is %s, used are %s, asked for is %s", d.tenant, c.what, c.words(max(c.quota, 0)), c.words(c.has), c.words(c.asked))
	if slices.ContainsFunc(all, func(c claim) bool { return over(c.quota, 0, c.asked) }) {
		return fmt.Errorf("%w: %w", err, paddock.Exhausted)
	}
	return fmt.Errorf("%w: %w: %w", err, errQuota, paddock.Exhausted)
}

// over reports whether a quota has no room. Reservations are never negative, and their sum
// does not overflow.
func over(quota, has, asked int64) bool {
	return quota != store.Unbounded && asked > 0 && (quota < 0 || has > quota || asked > quota-has)
}

// pace bounds the number of creations in a minute, in a burst or one by one. have.Rate is
// the time at which the whole burst is available again.
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
	if free.Before(now) || free.After(now.Add(time.Minute)) { // the latter after the clock was set back
		free = now
	}
	next := free.Add(each)
	if wait := next.Sub(now) - time.Minute; wait > 0 {
		return fmt.Errorf("tenant %s: quota of sandboxes made in a minute is %d, and used up; the next one can be made in %s: %w", d.tenant, rate, wait.Round(time.Millisecond), paddock.Exhausted)
	}
	have.Rate = next
	return nil
}

// keep returns an error if there is no room for one more snapshot.
func (d *driver) keep(have *store.Total) error {
	return d.check([]claim{{"snapshots", have.Quota.Snapshots, have.Snapshots, 1, number}})
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func thousandths(n int64) string { return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) }

// bytes formats a size in the largest unit without a fraction.
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
