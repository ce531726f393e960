package text

import (
	"fmt"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var trSpec = command.Spec{
	Name: "tr", Synopsis: "[OPTION]... STRING1 [STRING2]", Ordered: true,
	About: "Translate, squeeze, and/or delete characters from standard input, writing to standard output.",
	Options: []command.Option{
		{Short: 'c', Long: "complement", Help: "use the complement of STRING1"},
		{Short: 'C'},
		{Short: 'd', Long: "delete", Help: "delete characters in STRING1, do not translate"},
		{Short: 's', Long: "squeeze-repeats", Help: "replace each sequence of a repeated character that is listed in the last specified STRING, with a single occurrence of that character"},
		{Short: 't', Long: "truncate-set1", Help: "first truncate STRING1 to length of STRING2"},
	},
}

// A translation is what tr does to bytes.
type translation struct {
	to      [256]byte
	drop    [256]bool
	squeeze [256]bool
	maps    bool
	drops   bool
	squeezs bool
}

func runTr(t *kernel.Task) int {
	a, status, ok := trSpec.Parse(t)
	if !ok {
		return status
	}
	complement := a.Has("c") || a.Has("C")
	del, squeeze := a.Has("d"), a.Has("s")
	if status := trOperands(t, a.Operands, del, squeeze); status != 0 {
		return status
	}
	one, err := parseSet(t, a.Operands[0])
	var two *set
	if err == nil && len(a.Operands) > 1 {
		two, err = parseSet(t, a.Operands[1])
	}
	var x *translation
	if err == nil {
		translate := two != nil && !del
		x, err = plan(one, two, complement, del, squeeze, translate, a.Has("t"))
	}
	if err != nil {
		t.Errorf("%s", err)
		return 1
	}
	w := command.Stdout(t)
	if !(command.ReadErrors{Read: "read error"}).One(t, "-", func(_ string, r *command.Reader) {
		last := -1
		for b, ok := r.Piece(); ok; b, ok = r.Piece() {
			t.Step(len(b) >> 1)
			b, last = x.apply(b, last)
			w.Direct(b)
		}
	}) {
		return 1
	}
	return 0
}

func trOperands(t *kernel.Task, operands []string, del, squeeze bool) int {
	least, most := 2, 2
	switch {
	case del && !squeeze:
		least, most = 1, 1
	case squeeze && !del:
		least = 1
	}
	complaint := ""
	switch {
	case len(operands) == 0:
		complaint = "missing operand"
	case len(operands) < least:
		complaint = "missing operand after " + command.Quote(operands[len(operands)-1])
		if del {
			complaint += "\nTwo strings must be given when both deleting and squeezing repeats."
		} else {
			complaint += "\nTwo strings must be given when translating."
		}
	case len(operands) > most:
		complaint = "extra operand " + command.Quote(operands[most])
		if len(operands) == 2 {
			complaint += "\nOnly one string may be given when deleting without squeezing repeats."
		}
	}
	if complaint == "" {
		return 0
	}
	return trSpec.Usage(t, "%s", complaint)
}

func (x *translation) apply(b []byte, last int) ([]byte, int) {
	all := b
	switch {
	case x.drops && !x.squeezs:
		n := 0
		for _, c := range b {
			b[n] = c
			if !x.drop[c] {
				n++
			}
		}
		return b[:n], last
	case !x.squeezs:
		to := x.to // nothing that is written can change it
		for len(b) >= 8 {
			p := (*[8]byte)(b)
			p[0], p[1], p[2], p[3] = to[p[0]], to[p[1]], to[p[2]], to[p[3]]
			p[4], p[5], p[6], p[7] = to[p[4]], to[p[5]], to[p[6]], to[p[7]]
			b = b[8:]
		}
		for i, c := range b {
			b[i] = to[c]
		}
		return all, last
	}
	n := 0
	for _, c := range b {
		if x.drop[c] {
			continue
		}
		c = x.to[c]
		if int(c) == last && x.squeeze[c] {
			continue
		}
		last = int(c)
		b[n] = c
		n++
	}
	return b[:n], last
}

// plan makes the tables.
func plan(one, two *set, complement, del, squeeze, translate, truncate bool) (*translation, error) {
	x := &translation{drops: del, squeezs: squeeze, maps: translate}
	for i := range 256 {
		x.to[i] = byte(i)
	}
	for _, e := range one.list {
		if e.kind == repeat && e.count == 0 {
			return nil, fmt.Errorf("the [c*] repeat construct may not appear in string1")
		}
	}
	from := one.bytes()
	if complement {
		from = complementOf(from)
	}
	switch {
	case translate:
		if err := two.forTranslation(one, complement, truncate, len(from)); err != nil {
			return nil, err
		}
		to := two.bytes()
		if truncate {
			from = from[:min(len(from), len(to))]
		} else if len(to) < len(from) {
			if err := two.extensible(); err != nil {
				return nil, err
			}
		}
		if complement && one.classes() && len(from) > 0 {
			last := to[min(len(to), len(from))-1]
			for _, c := range to[:min(len(to), len(from))] {
				if c != last {
					return nil, fmt.Errorf("when translating with complemented character classes,\nstring2 must map all characters in the domain to one")
				}
			}
		}
		for i, c := range from {
			x.to[c] = to[min(i, len(to)-1)]
		}
		if squeeze {
			for _, c := range to {
				x.squeeze[c] = true
			}
		}
	case del:
		for _, c := range from {
			x.drop[c] = true
		}
		if squeeze {
			if err := two.fill(0); err != nil {
				return nil, err
			}
			for _, c := range two.bytes() {
				x.squeeze[c] = true
			}
		}
	default:
		for _, c := range from {
			x.squeeze[c] = true
		}
	}
	return x, nil
}

func complementOf(list []byte) []byte {
	var has [256]bool
	for _, c := range list {
		has[c] = true
	}
	var rest []byte
	for i := range 256 {
		if !has[i] {
			rest = append(rest, byte(i))
		}
	}
	return rest
}
