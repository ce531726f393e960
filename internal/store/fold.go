package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// foldBatch is the number of sandboxes whose records of a day are merged in one
// transaction, so that other writers are not blocked for long.
const foldBatch = 200

// FoldRecords merges records of hours into records of days, in UTC. One call handles some records of the oldest day
// that has any and ended before a time, in one transaction. It returns their number; zero means that nothing is left to
// do.
//
// A sandbox that existed on that day alone, with unchanged labels, is added to a record for its tenant, tier and
// labels, which counts sandboxes and does not name them. Any other sandbox keeps a record for each day, or for each
// part of a day with other labels. Nothing is rounded, and sums over full days stay the same.
func (s *Store) FoldRecords(ctx context.Context, before time.Time) (int, error) {
	var n int
	err := s.write(ctx, func(q query) error {
		n = 0
		if q.engine.alone != "" { // of two servers, one waits
			if _, err := q.exec(q.engine.alone); err != nil {
				return err
			}
		}
		day, tokens, err := q.unfolded(before)
		if err != nil || len(tokens) == 0 {
			return err
		}
		stay, err := q.known(day, tokens)
		if err != nil {
			return err
		}
		hours, err := q.takeHours(day, tokens)
		if err != nil {
			return err
		}
		crowds := make(map[string]Record)
		for _, token := range slices.Sorted(maps.Keys(hours)) {
			n += len(hours[token])
			runs := fold(hours[token])
			if len(runs) > 1 || stay[token] {
				for _, r := range runs { // each begins where a deleted hour began
					if err := q.putRecord(r); err != nil {
						return err
					}
				}
				continue
			}
			if err := q.join(crowds, day, runs[0]); err != nil {
				return err
			}
		}
		for _, key := range slices.Sorted(maps.Keys(crowds)) {
			if err := q.crowd(crowds[key]); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

// dayOf returns the beginning of the day of a time.
func dayOf(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// unfolded returns the oldest day to merge, and some of its sandboxes.
func (q query) unfolded(before time.Time) (day time.Time, tokens []string, _ error) {
	until := dayOf(before)
	seen := make(map[string]bool)
	err := q.each(func(r row) error {
		var token string
		var begins int64
		if err := r.Scan(&token, &begins); err != nil {
			return err
		}
		if len(seen) == 0 {
			day = dayOf(moment(begins))
		}
		if dayOf(moment(begins)).Equal(day) {
			seen[token] = true
		}
		return nil
	}, "SELECT token, begins FROM usages WHERE boxes = 0 AND begins < ? ORDER BY begins LIMIT ?", stamp(until), foldBatch)
	return day, slices.Sorted(maps.Keys(seen)), err
}

// among returns the placeholders of a list of values for a statement.
func among(first []any, tokens []string) (places string, values []any) {
	values = first
	for _, token := range tokens {
		values = append(values, token)
	}
	return "(" + strings.TrimSuffix(strings.Repeat("?, ", len(tokens)), ", ") + ")", values
}

// known reports which sandboxes still exist, or have records of another day.
func (q query) known(day time.Time, tokens []string) (map[string]bool, error) {
	found := make(map[string]bool)
	note := func(r row) error {
		var token string
		if err := r.Scan(&token); err != nil {
			return err
		}
		found[token] = true
		return nil
	}
	places, values := among(nil, tokens)
	if err := q.each(note, "SELECT token FROM sandboxes WHERE token IN "+places, values...); err != nil {
		return nil, err
	}
	places, values = among([]any{stamp(day), stamp(day.Add(24 * time.Hour))}, tokens)
	err := q.each(note, "SELECT DISTINCT token FROM usages WHERE (begins < ? OR begins >= ?) AND token IN "+places, values...)
	return found, err
}

// takeHours deletes and returns the records of a day, in order for each sandbox.
func (q query) takeHours(day time.Time, tokens []string) (map[string][]Record, error) {
	places, values := among([]any{stamp(day), stamp(day.Add(24 * time.Hour))}, tokens)
	taken := make(map[string][]Record)
	err := q.each(func(r row) error {
		u, err := scanRecord(r)
		if err != nil {
			return err
		}
		taken[u.Token] = append(taken[u.Token], u)
		return nil
	}, "DELETE FROM usages WHERE boxes = 0 AND begins >= ? AND begins < ? AND token IN "+places+" RETURNING "+recordColumns, values...)
	for _, list := range taken {
		slices.SortFunc(list, func(a, b Record) int { return a.Begin.Compare(b.Begin) })
	}
	return taken, err
}

// fold merges adjacent records that may be merged.
func fold(hours []Record) []Record {
	var runs []Record
	for _, r := range hours {
		r.Boxes = 1
		if n := len(runs); n > 0 && maps.Equal(runs[n-1].Labels, r.Labels) && runs[n-1].Tier == r.Tier && runs[n-1].measured() == r.measured() {
			if sum, ok := runs[n-1].plus(r); ok {
				sum.Boxes = 1
				runs[n-1] = sum
				continue
			}
		}
		runs = append(runs, r)
	}
	return runs
}

// amounts returns the numbers of a record.
func (u *Record) amounts() []*int64 {
	return []*int64{
		(*int64)(&u.Wall), (*int64)(&u.Paused), (*int64)(&u.CPU), &u.Memory,
		&u.CPUAsked, &u.MemoryAsked, &u.DiskAsked, &u.NetIn, &u.NetOut, &u.Boxes,
	}
}

// measured identifies which of the numbers were measured.
func (u Record) measured() string {
	var b strings.Builder
	for _, n := range u.amounts() {
		b.WriteString(strconv.FormatBool(*n >= 0)[:1])
	}
	return b.String()
}

// plus adds a later record with the same measured numbers. ok is false if a sum would
// overflow.
func (u Record) plus(r Record) (_ Record, ok bool) {
	to, from := u.amounts(), r.amounts()
	for i := range to {
		switch {
		case *to[i] < 0:
		case *from[i] > math.MaxInt64-*to[i]:
			return u, false
		default:
			*to[i] += *from[i]
		}
	}
	if r.End.After(u.End) {
		u.End = r.End
	}
	u.Mark = r.Mark
	return u, true
}

// join adds the record of a sandbox to the record of its group.
func (q query) join(crowds map[string]Record, day time.Time, r Record) error {
	labels, err := text(r.Labels) // names are sorted
	if err != nil {
		return err
	}
	alike, err := text([]string{r.Tenant, string(r.Tier), labels, r.measured()})
	if err != nil {
		return err
	}
	r.Begin, r.End, r.Sandbox, r.Mark = day, day.Add(24*time.Hour), "", json.RawMessage("{}")
	sum := sha256.Sum256([]byte(alike))
	for n := 0; ; n++ {
		r.Token = fmt.Sprintf("+%s.%d", hex.EncodeToString(sum[:16]), n) // a sandbox's token never has a plus
		have, there := crowds[r.Token]
		if !there {
			crowds[r.Token] = r
			return nil
		}
		if sum, ok := have.plus(r); ok {
			crowds[r.Token] = sum
			return nil
		}
	}
}

// crowd adds a record of many sandboxes to the stored one.
func (q query) crowd(r Record) error {
	name, _, _ := strings.Cut(r.Token, ".")
	for n := 0; ; n++ {
		r.Token = fmt.Sprintf("%s.%d", name, n)
		have, err := scanRecord(q.row("SELECT "+recordColumns+" FROM usages WHERE token = ? AND begins = ?"+q.engine.lock, r.Token, stamp(r.Begin)))
		switch err = absent(err, "use of", r.Token); {
		case errors.Is(err, paddock.NotFound):
			return q.putRecord(r)
		case err != nil:
			return err
		}
		if sum, ok := have.plus(r); ok {
			if _, err := q.exec("DELETE FROM usages WHERE token = ? AND begins = ?", r.Token, stamp(r.Begin)); err != nil {
				return err
			}
			return q.putRecord(sum)
		}
	}
}

// Folded reports whether a time lies within a day's record, of one tenant or, if tenant is empty, of any. Usage before
// and after that time is not distinguished there.
func (s *Store) Folded(ctx context.Context, tenant string, at time.Time) (bool, error) {
	day := dayOf(at)
	var n int64
	err := s.read(ctx, func(q query) error {
		return q.row("SELECT COUNT(*) FROM (SELECT 1 FROM usages WHERE boxes > 0 AND begins >= ? AND begins < ? AND ends > ? AND (tenant = ? OR ? = '') LIMIT 1) AS one",
			stamp(day), stamp(at), stamp(at), clean(tenant), clean(tenant)).Scan(&n)
	})
	return n > 0, err
}
