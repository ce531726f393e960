package attack

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// A Verdict is the outcome of a case.
type Verdict string

// Verdicts of a case.
const (
	Denied        Verdict = "denied"            // every technique was refused
	Contained     Verdict = "contained"         // successes stayed inside
	ByDesign      Verdict = "allowed by design" // a success that is permitted, with the reason
	NotApplicable Verdict = "not applicable"    // it could not be tried
	Escaped       Verdict = "ESCAPED"           // it succeeded
)

// A Cell is an entry of the matrix: the outcome of a case for one caller on one tier.
type Cell struct {
	Verdict Verdict
	Errnos  string // errors that the attacker saw, sorted
	Why     string // reason for "allowed by design" and "not applicable"
}

func (c Cell) String() string {
	s := string(c.Verdict)
	if c.Errnos != "" {
		s += " (" + c.Errnos + ")"
	}
	if c.Why != "" {
		s += ": " + c.Why
	}
	return s
}

// A Column has the outcome of all cases for one caller on one tier.
type Column map[string]Cell

// A Matrix has a column for each caller, "root" and "user".
type Matrix map[string]Column

// goldenName returns the file with the expected outcome of a tier.
func goldenName(dir string, tier paddock.Tier) string {
	return filepath.Join(dir, string(tier)+".golden")
}

// ReadMatrix reads a golden file. A missing file is an empty matrix.
func ReadMatrix(name string) (Matrix, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return Matrix{}, nil
	}
	if err != nil {
		return nil, err
	}
	m := Matrix{}
	sc := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; sc.Scan(); n++ {
		f := strings.Split(sc.Text(), "\t")
		if len(f) != 5 {
			return nil, fmt.Errorf("%s:%d: want five fields", name, n)
		}
		if m[f[1]] == nil {
			m[f[1]] = Column{}
		}
		m[f[1]][f[0]] = Cell{Verdict: Verdict(f[2]), Errnos: f[3], Why: f[4]}
	}
	return m, sc.Err()
}

// Write writes a golden file: case, caller, verdict, errnos and reason.
func (m Matrix) Write(name string) error {
	var lines []string
	for caller, column := range m {
		for id, c := range column {
			lines = append(lines, strings.Join([]string{id, caller, string(c.Verdict), c.Errnos, c.Why}, "\t")+"\n")
		}
	}
	slices.Sort(lines)
	return os.WriteFile(name, []byte(strings.Join(lines, "")), 0o644)
}

// A Difference is a cell that differs from the expectation.
type Difference struct {
	ID, Caller string
	Want, Got  Cell
	Known      bool // there is an expectation
	Fatal      bool // the claim is weaker than before
}

// weaker ranks a verdict by how much it leaves to the attacker.
func weaker(v Verdict) int {
	return slices.Index([]Verdict{NotApplicable, Denied, Contained, ByDesign, Escaped}, v)
}

// Compare returns the cells of got that differ from m. A weaker verdict than expected is
// fatal, and so is an escape, expected or not. Error numbers depend on the kernel and are
// not fatal.
func (m Matrix) Compare(caller string, got Column) []Difference {
	var out []Difference
	for id, g := range got {
		want, known := m[caller][id]
		d := Difference{ID: id, Caller: caller, Want: want, Got: g, Known: known}
		d.Fatal = g.Verdict == Escaped || !known || weaker(g.Verdict) > weaker(want.Verdict)
		if d.Fatal || want != g {
			out = append(out, d)
		}
	}
	for id, want := range m[caller] {
		if _, ok := got[id]; !ok {
			out = append(out, Difference{ID: id, Caller: caller, Want: want, Known: true, Fatal: true})
		}
	}
	slices.SortFunc(out, func(a, b Difference) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// Markers around the table in the document.
const (
	tableBegin = "<!-- attack matrix: begin (go test ./attack -update) -->"
	tableEnd   = "<!-- attack matrix: end -->"
)

// Table returns the matrices of all tiers as one Markdown table.
func Table(tiers map[paddock.Tier]Matrix) string {
	var b strings.Builder
	order := []paddock.Tier{paddock.Sim, paddock.Jail, paddock.GVisor, paddock.MicroVM}
	head, rule := "| case | attack |", "| --- | --- |"
	for _, t := range order {
		if tiers[t] == nil {
			continue
		}
		head += fmt.Sprintf(" %s, root caller | %s, user caller |", t, t)
		rule += " --- | --- |"
	}
	b.WriteString(head + "\n" + rule + "\n")
	why := map[string][]string{}
	var reasons []string
	for _, c := range Cases() {
		fmt.Fprintf(&b, "| %s | %s |", c.ID, c.Attack)
		for _, t := range order {
			if tiers[t] == nil {
				continue
			}
			for _, caller := range []string{"root", "user"} {
				cell, ok := tiers[t][caller][c.ID]
				if !ok {
					b.WriteString(" not tried |")
					continue
				}
				b.WriteString(" " + string(cell.Verdict))
				if cell.Errnos != "" {
					b.WriteString(" (" + cell.Errnos + ")")
				}
				if cell.Why != "" {
					if why[cell.Why] == nil {
						reasons = append(reasons, cell.Why)
					}
					why[cell.Why] = append(why[cell.Why], c.ID)
					fmt.Fprintf(&b, " [%d]", slices.Index(reasons, cell.Why)+1)
				}
				b.WriteString(" |")
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for i, r := range reasons {
		b.WriteString(wrapped(fmt.Sprintf("%d. ", i+1), r))
	}
	return b.String()
}

// wrapped returns an entry of a list in lines of at most 120 characters.
func wrapped(mark, text string) string {
	const most = 120
	var lines []string
	line := mark
	for word := range strings.FieldsSeq(text) {
		if len(line)+len(word) > most {
			lines = append(lines, strings.TrimRight(line, " "))
			line = strings.Repeat(" ", len(mark))
		}
		line += word + " "
	}
	return strings.Join(append(lines, strings.TrimRight(line, " ")), "\n") + "\n"
}

// Splice puts table between the markers of a document.
func Splice(document, table string) (string, error) {
	before, rest, ok := strings.Cut(document, tableBegin)
	if !ok {
		return "", errors.New("the document has no marker " + tableBegin)
	}
	_, after, ok := strings.Cut(rest, tableEnd)
	if !ok {
		return "", errors.New("the document has no marker " + tableEnd)
	}
	return before + tableBegin + "\n\n" + table + "\n" + tableEnd + after, nil
}
