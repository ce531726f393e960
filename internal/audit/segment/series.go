package segment

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
)

// A Series is the result of verifying all segments of a directory as one log.
type Series struct {
	State chain.State `json:"state"`
	Why   string      `json:"why,omitempty"` // in words: what is wrong, or what an open record lacks
	Wrong string      `json:"wrong,omitempty"`

	// Begins names the segment before the first one, if it is not here, because it was moved or removed.
	Begins string `json:"begins,omitempty"`

	Segments []Verified `json:"segments"`
}

// A Verified is the result for one segment of a series.
type Verified struct {
	Name   string `json:"name"` // with "sent/" before it, where it was uploaded
	Before string `json:"before,omitempty"`
	Point  string `json:"point,omitempty"` // of the one before, which it vouches for
	chain.Report
}

// Verify reads all segments of a directory, and of its subdirectory "sent", as one log. Each must be unchanged and must
// follow the one before it, which must have the line that it names. A segment that is missing in between, replaced, out
// of order or cut short is wrong. Missing segments at the beginning are not wrong, because they may be stored
// elsewhere; Begins reports them. To notice missing segments at the end, set o.Seen to a line seen earlier, which
// Verify looks for in all of them.
func Verify(dir *os.Root, o chain.Options) (Series, error) { return verify(directory{dir}, o) }

// A place holds segments.
type place interface {
	// files gives their names in the order in which they were begun.
	files() ([]string, error)
	// open reads one, from its begin to where it ends now.
	open(name string) (io.ReadCloser, error)
}

// A directory is a place, with what is in "sent" below it.
type directory struct{ dir *os.Root }

func (d directory) files() ([]string, error) { return files(d.dir) }

func (d directory) open(name string) (io.ReadCloser, error) {
	f, size, err := open(d.dir, name)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, 0, size), f}, nil // what is added meanwhile is not waited for
}

// verify reads all segments of a place, one after another. What it holds at once does
// not grow with what is in them.
func verify(in place, o chain.Options) (Series, error) {
	s := Series{State: chain.Whole, Segments: []Verified{}}
	files, err := in.files()
	if err != nil {
		return s, err
	}
	if len(files) == 0 {
		return s, fmt.Errorf("there are no segments: %w", paddock.NotFound)
	}
	seen := o.Seen == nil
	for i, name := range files {
		v, found, err := read(in, name, o)
		if err != nil {
			return s, err
		}
		seen = seen || found
		s.Segments = append(s.Segments, v)
		if v.State == chain.Wrong {
			return s.wrong(name, fmt.Sprintf("line %d: %s", v.Line, v.Why)), nil
		}
		if i == 0 {
			if v.Before != "" {
				s.Begins = v.Before
				s.open(fmt.Sprintf("it begins behind %s, which is not here", v.Before))
			}
			continue
		}
		why, err := follows(in, v, &s.Segments[i-1], o)
		if err != nil {
			return s, err
		}
		if why != "" {
			return s.wrong(name, why), nil
		}
		if s.Segments[i-1].State == chain.Open && v.Point == "" {
			s.open(base(files[i-1]) + " has no closing head, and the next one does not say how far it went: its writer was killed, or its end was cut off")
		}
	}
	if last := s.Segments[len(files)-1]; last.State == chain.Open {
		s.open(base(last.Name) + ": " + last.Why)
	}
	if !seen {
		return s.wrong("", "the line that was seen is in none of them: its segment is missing or was replaced, or its end was cut off"), nil
	}
	return s, nil
}

func (s *Series) open(why string) {
	if s.State == chain.Whole {
		s.State, s.Why = chain.Open, why
	}
}

func (s Series) wrong(name, why string) Series {
	s.State, s.Wrong, s.Why = chain.Wrong, name, why
	return s
}

// files gives the segments of a directory and of "sent", in the order of their
// names, which is that in which they were begun.
func files(dir *os.Root) ([]string, error) {
	all, err := list(dir, ".")
	if err != nil {
		return nil, err
	}
	sent, err := list(dir, sentDir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, name := range sent {
		all = append(all, sentDir+"/"+name)
	}
	slices.SortFunc(all, func(a, b string) int { return strings.Compare(base(a), base(b)) })
	return all, nil
}

// base is what a segment is called by the next one.
func base(name string) string {
	return strings.TrimSuffix(strings.TrimPrefix(name, sentDir+"/"), part)
}

// read verifies one segment, and tells whether it has the line that was seen.
func read(in place, name string, o chain.Options) (v Verified, seen bool, err error) {
	v.Name = name
	var head []byte
	if v.Report, head, err = pass(in, name, o); err != nil {
		return v, false, err
	}
	seen = o.Seen != nil && v.State != chain.Wrong
	if v.Problem == chain.BadHead || v.Problem == chain.CutOff { // it may be in another
		if v.Report, head, err = pass(in, name, chain.Options{Fingerprint: o.Fingerprint}); err != nil {
			return v, false, err
		}
	}
	if v.State == chain.Wrong {
		return v, false, nil
	}
	v.Before, v.Point, err = continued(bytes.NewReader(head))
	return v, seen, err
}

// pass reads a segment once, and gives what was found, and its first lines of the
// same reading: who serves them could serve others the next time.
func pass(in place, name string, o chain.Options) (chain.Report, []byte, error) {
	f, err := in.open(name)
	if err != nil {
		return chain.Report{}, nil, err
	}
	var head firstLines
	rep, err := chain.Verify(io.TeeReader(f, &head), o)
	if err != nil {
		return rep, nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	return rep, head.data, f.Close()
}

// firstLines keeps as many lines as [continued] looks at.
type firstLines struct {
	data  []byte
	lines int
}

func (l *firstLines) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0 && l.lines < headLines && len(l.data) < headLines*(chain.MaxLine+1); {
		n := len(rest)
		if end := bytes.IndexByte(rest, '\n'); end >= 0 {
			n = end + 1
			l.lines++
		}
		l.data = append(l.data, rest[:n]...)
		rest = rest[n:]
	}
	return len(p), nil
}

func open(dir *os.Root, name string) (*os.File, int64, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, 0, fmt.Errorf("open a segment: %w: %w", err, paddock.Denied)
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, 0, errors.Join(fmt.Errorf("%s is no plain file: %w", name, paddock.Invalid), err, f.Close())
	}
	return f, info.Size(), nil
}

// headLines is how many lines of a segment may stand before what it continues: its
// begin, and a head.
const headLines = 4

// continued gives what a segment says that it follows.
func continued(r io.Reader) (before, point string, err error) {
	in := bufio.NewReaderSize(r, chain.MaxLine+1)
	for range headLines {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", "", fmt.Errorf("read: %w: %w", err, paddock.Unavailable)
		}
		var e audit.Event
		if json.Unmarshal(line, &e) == nil && e.Kind == audit.Did && e.Action != nil && e.Action.What == continues {
			return e.Action.Target, e.Action.Reason, nil
		}
	}
	return "", "", nil // it ended before it could say so
}

// follows says why a segment is not the one that follows another; empty is that it
// is.
func follows(in place, v Verified, before *Verified, o chain.Options) (why string, err error) {
	have := base(before.Name)
	switch {
	case v.Before == "" && v.State == chain.Open && v.Events == 0:
		return "", nil // its writer was killed before it could say so
	case v.Before != have:
		return fmt.Sprintf("it follows %q, and %s stands before it: segments are missing, were replaced or put in another order", v.Before, have), nil
	case v.Point == "":
		return "", nil
	}
	point, ok := lineOf(v.Point)
	if !ok {
		return fmt.Sprintf("it names %q as a line of the segment before, which is none", v.Point), nil
	}
	if before.State == chain.Whole {
		if before.Head == nil || before.Head.Point != point {
			return fmt.Sprintf("%s does not end as it did when this one was begun: it was replaced, or its end cut off", have), nil
		}
		return "", nil
	}
	rep, _, err := pass(in, before.Name, chain.Options{Fingerprint: o.Fingerprint, Seen: &point})
	if err == nil && rep.State == chain.Wrong {
		why = fmt.Sprintf("%s has not the line %d that it had when this one was begun: it was replaced, or its end cut off", have, point.Seq)
	}
	return why, err
}

// lineOf reads what a segment names as a line of the one before.
func lineOf(text string) (chain.Point, bool) {
	p, err := chain.ParsePoint(text)
	return p, err == nil
}

// reached gives the last signed line of a segment; empty is that it has none.
func reached(dir *os.Root, name string, key *chain.Key) string {
	f, size, err := open(dir, name)
	if err != nil {
		return ""
	}
	defer f.Close()
	rep, err := chain.Verify(io.NewSectionReader(f, 0, size), chain.Options{Fingerprint: key.Fingerprint()})
	if err != nil || rep.Head == nil {
		return ""
	}
	return rep.Head.String()
}
