package box

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// maxNamed bounds the paths that one call names.
const maxNamed = 1000

// named checks the paths of a call, before anything is read.
func named(names []string) error {
	if len(names) > maxNamed {
		return fmt.Errorf("%d paths; at most %d can be named, or name a directory that they are in: %w", len(names), maxNamed, paddock.Invalid)
	}
	for _, name := range names {
		if !path.IsAbs(name) || path.Clean(name) != name {
			return fmt.Errorf("the path %.200q is not absolute and clean: %w", name, paddock.Invalid)
		}
	}
	return nil
}

// A rootMap translates between the paths of the host and of the sandbox, by the roots of records.
type rootMap struct {
	all []step.Root // each once: the records of a sandbox have the same
	at  map[step.Text]step.Text
}

func rootsOf(records []step.Record) *rootMap {
	m := &rootMap{at: map[step.Text]step.Text{}}
	known := map[step.Root]bool{}
	for i := range records {
		for _, r := range records[i].Roots {
			r = step.Root{Path: r.Path, Target: r.Target}
			if known[r] {
				continue
			}
			known[r] = true
			m.all = append(m.all, r)
			if _, ok := m.at[r.Path]; !ok {
				m.at[r.Path] = r.Target
			}
		}
	}
	return m
}

// outside returns the paths of the host for paths of the sandbox that were checked.
func (m *rootMap) outside(ctx context.Context, names []string) ([]string, error) {
	var list []string
	known := map[string]bool{}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("%w: %w", err, EndKind(err))
		}
		found := false
		for _, r := range m.all {
			target, full := path.Clean("/"+string(r.Target)), ""
			switch {
			case hostroot.Within(name, target):
				full = path.Join(string(r.Path), name[len(target):])
			case hostroot.Within(target, name):
				full = string(r.Path)
			default:
				continue
			}
			found = true
			if !known[full] {
				known[full] = true
				list = append(list, full)
			}
		}
		if !found {
			return nil, fmt.Errorf("the path %.200q is in no directory whose changes are recorded: %w", name, paddock.NotFound)
		}
	}
	return list, nil
}

// target returns the path in the sandbox of a path below a directory of the host.
func (m *rootMap) target(root, name step.Text) string {
	// A directory of no record is not reached, and stays untold.
	return path.Join("/", string(m.at[root]), string(name))
}

// words returns a text of the journal with the directories as the sandbox sees them. Where they are on the host stays untold.
func (m *rootMap) words(text string) string {
	for _, r := range m.all {
		text = strings.ReplaceAll(text, strconv.Quote(string(r.Path)), strconv.Quote(m.target(r.Path, "")))
	}
	return text
}

// told is words of an error.
func (m *rootMap) told(err error) error {
	if err == nil {
		return nil
	}
	if text := err.Error(); m.words(text) != text {
		return &ToldError{m.words(text), paddock.KindOf(err)}
	}
	return err
}

// readers bounds how many calls read the journal at the same time: one of a sandbox, and some of all.
type readers struct {
	all chan struct{}

	mu  sync.Mutex
	one map[string]*reader // guarded by mu: by the sandbox's name in the journal
}

// A reader is the place of one sandbox.
type reader struct {
	turn  chan struct{}
	users int
}

func newReaders(most int) *readers {
	return &readers{all: make(chan struct{}, most), one: map[string]*reader{}}
}

// enter waits for a place. A call that waits for another one of its sandbox takes none of those of all.
func (r *readers) enter(ctx context.Context, life string) (leave func(), err error) {
	r.mu.Lock()
	own := r.one[life]
	if own == nil {
		own = &reader{turn: make(chan struct{}, 1)}
		r.one[life] = own
	}
	own.users++
	r.mu.Unlock()
	out := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(r.one, life)
		}
	}
	taken := 0
	leave = func() {
		if taken > 1 {
			<-r.all
		}
		if taken > 0 {
			<-own.turn
		}
		out()
	}
	for _, c := range []chan struct{}{own.turn, r.all} {
		select {
		case c <- struct{}{}:
			taken++
		case <-ctx.Done():
			leave()
			return nil, fmt.Errorf("wait for the journal: %w: %w", ctx.Err(), EndKind(ctx.Err()))
		}
	}
	return leave, nil
}
