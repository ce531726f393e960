package steptest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Asking returns a driver whose sandboxes have a monitor that asks two questions each, for tests of what stands around
// drivers. The second result tells what was answered.
func Asking(d paddock.Driver) (paddock.Driver, *Answers) {
	a := &Answers{}
	return &asking{d, a, map[paddock.ID]*[]paddock.MonitorQuestion{}, &sync.Mutex{}}, a
}

// Answers are those that reached the monitors of a driver.
type Answers struct {
	mu   sync.Mutex
	list []string // guarded by mu
}

// All returns them: "sandbox question allow".
func (a *Answers) All() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.list)
}

// Asked returns the questions that each sandbox asks at first.
func Asked() []paddock.MonitorQuestion {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	return []paddock.MonitorQuestion{
		{ID: "ONE", Asked: at, Until: at.Add(time.Minute), Moment: "effect", Rule: "write-ci", Reason: "it edited a file", About: "edited .github/workflows/ci.yml"},
		{ID: "TWO", Asked: at, Until: at.Add(time.Minute), Moment: "effect", Rule: "delete-many", Reason: "many", About: "removed a", Pauses: true, Done: true},
	}
}

type asking struct {
	paddock.Driver
	a    *Answers
	open map[paddock.ID]*[]paddock.MonitorQuestion // guarded by mu
	mu   *sync.Mutex
}

func (d *asking) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	m := spec.Monitor
	spec.Monitor = nil
	sb, err := d.Driver.Create(ctx, spec)
	if err != nil || m == nil {
		return sb, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	list := Asked()
	d.open[sb.ID()] = &list
	return &askingSandbox{sb, d, &list}, nil
}

func (d *asking) Open(ctx context.Context, id paddock.ID) (paddock.Sandbox, error) {
	sb, err := d.Driver.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if list := d.open[id]; list != nil {
		return &askingSandbox{sb, d, list}, nil
	}
	return sb, nil
}

type askingSandbox struct {
	paddock.Sandbox
	d    *asking
	list *[]paddock.MonitorQuestion // guarded by d.mu
}

// Status implements paddock.Sandbox.
func (s *askingSandbox) Status(ctx context.Context) (paddock.Status, error) {
	st, err := s.Sandbox.Status(ctx)
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	st.Monitor = &paddock.Monitoring{Settings: paddock.Monitor{Task: "a task", Wait: time.Minute}, Open: len(*s.list), Verdicts: map[string]int{"ask": 2}, Without: []string{"host-drop"}, Paused: "why"}
	return st, err
}

// Born implements paddock.Sandbox.
func (*askingSandbox) Born() (paddock.Status, bool) { return paddock.Status{}, false }

// MonitorQuestions implements paddock.Monitored.
func (s *askingSandbox) MonitorQuestions(context.Context, bool) ([]paddock.MonitorQuestion, error) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return slices.Clone(*s.list), nil
}

// AnswerMonitor implements paddock.Monitored.
func (s *askingSandbox) AnswerMonitor(_ context.Context, question string, allow bool) error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	i := slices.IndexFunc(*s.list, func(q paddock.MonitorQuestion) bool { return q.ID == question })
	if i < 0 {
		return fmt.Errorf("question %q: %w", question, paddock.NotFound)
	}
	*s.list = slices.Delete(*s.list, i, i+1)
	s.d.a.mu.Lock()
	defer s.d.a.mu.Unlock()
	s.d.a.list = append(s.d.a.list, fmt.Sprint(s.ID(), " ", question, " ", allow))
	return nil
}
