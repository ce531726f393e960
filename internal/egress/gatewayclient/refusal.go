package gatewayclient

import (
	"encoding/json"
	"slices"

	"github.com/paddock-sandbox/paddock"
)

// maxRefused bounds the kept refusals.
const maxRefused = 1000

// refusals are the newest refusals of a gateway.
type refusals struct {
	known map[refusalKey]*paddock.Refusal
	order []refusalKey // oldest first
}

// A refusalKey identifies equal refusals.
type refusalKey struct{ what, target, rule string }

func (r *refusals) add(n paddock.Refusal) {
	k := refusalKey{n.What, n.Target, n.Rule}
	if have := r.known[k]; have != nil {
		have.Count += n.Count
		have.Time = n.Time
		return
	}
	if len(r.order) >= maxRefused {
		delete(r.known, r.order[0])
		r.order = r.order[1:]
	}
	if r.known == nil {
		r.known = map[refusalKey]*paddock.Refusal{}
	}
	r.known[k] = &n
	r.order = append(r.order, k)
}

// listMax bounds a list in JSON, in bytes, so that it fits into a packet. A guest's text
// may grow sixfold in JSON.
const listMax = 96 << 10

// list returns the newest refusals in order of time.
func (r *refusals) list() []paddock.Refusal {
	all := make([]paddock.Refusal, 0, len(r.order))
	for _, k := range r.order {
		all = append(all, *r.known[k])
	}
	return FitRefusals(JoinRefusals(all), listMax)
}

// InsideMax is how many bytes of refusals in JSON the inside of a sandbox may add to a status. A
// command chooses how many refusals there are, and how long. A keeper's answer with so many
// fits into a packet.
const InsideMax = 144 << 10

// FitRefusals returns the end of a list, whose JSON has at most size bytes.
func FitRefusals(list []paddock.Refusal, size int) []paddock.Refusal {
	for i := len(list) - 1; i >= 0; i-- {
		data, err := json.Marshal(list[i])
		if size -= len(data) + 1; err != nil || size < 1 { // the comma, and the brackets
			return slices.Clone(list[i+1:]) // without the memory of the others
		}
	}
	return list
}

// JoinRefusals merges lists by time, and returns the newest refusals, newest last, as many as a status holds (1000).
func JoinRefusals(lists ...[]paddock.Refusal) []paddock.Refusal {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b paddock.Refusal) int { return a.Time.Compare(b.Time) })
	return all[max(0, len(all)-maxRefused):]
}
