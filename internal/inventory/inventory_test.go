package inventory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A member is a sandbox that has a name and nothing else.
type member struct {
	paddock.Sandbox
	r    *Set[*member]
	id   paddock.ID
	made time.Time
	fail error
}

func (m *member) ID() paddock.ID { return m.id }

func (m *member) Status(context.Context) (paddock.Status, error) {
	return paddock.Status{ID: m.id, Created: m.made}, m.fail
}

func (m *member) Remove(context.Context) error {
	m.r.Forget(m.id)
	return m.fail
}

func enter(t *testing.T, r *Set[*member], id paddock.ID) *member {
	t.Helper()
	if err := r.Reserve(id); err != nil {
		t.Fatal(err)
	}
	m := &member{r: r, id: id}
	if err := r.Add(m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTheListIsInTheOrderOfCreationAlsoWhereThatOfAdditionIsAnother(t *testing.T) {
	var r Set[*member]
	enter(t, &r, "later").made = time.Unix(2, 0)
	enter(t, &r, "earlier").made = time.Unix(1, 0)
	list, err := r.List(t.Context())
	if err != nil || len(list) != 2 || list[0].ID != "earlier" {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestANameIsTakenFromItsReservationOn(t *testing.T) {
	var r Set[*member]
	if err := r.Reserve("a"); err != nil {
		t.Fatal(err)
	}
	if err := r.Reserve("a"); !errors.Is(err, paddock.Exists) {
		t.Error(err)
	}
	if _, err := r.Open("a"); !errors.Is(err, paddock.NotFound) {
		t.Errorf("one that is being made was opened: %v", err)
	}
	if len(r.All()) != 0 {
		t.Error("one that is being made is listed")
	}
	r.Forget("a")
	m := enter(t, &r, "a")
	if got, err := r.Open("a"); err != nil || got != m {
		t.Errorf("%v, %v", got, err)
	}
	if err := r.Reserve("a"); !errors.Is(err, paddock.Exists) {
		t.Error(err)
	}
	for _, id := range []paddock.ID{"", "A", "../x"} {
		if err := r.Reserve(id); !errors.Is(err, paddock.Invalid) {
			t.Errorf("reserve %q: %v", id, err)
		}
		if _, err := r.Open(id); !errors.Is(err, paddock.Invalid) {
			t.Errorf("open %q: %v", id, err)
		}
	}
}

func TestTheyAreListedInTheOrderInWhichTheyCame(t *testing.T) {
	var r Set[*member]
	enter(t, &r, "c")
	gone := enter(t, &r, "a")
	enter(t, &r, "b")
	gone.fail = paddock.NotFound
	list, err := r.List(t.Context())
	if err != nil || len(list) != 2 || list[0].ID != "c" || list[1].ID != "b" {
		t.Errorf("%v, %v", list, err)
	}
}

func TestAClosedOneHasNone(t *testing.T) {
	var r Set[*member]
	enter(t, &r, "a").fail = paddock.Timeout
	enter(t, &r, "b")
	if err := r.Reserve("late"); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); !errors.Is(err, paddock.Timeout) {
		t.Error(err)
	}
	if len(r.All()) != 0 {
		t.Error("after a failure the others were left")
	}
	if err := r.Add(&member{r: &r, id: "late"}); !errors.Is(err, paddock.Unavailable) {
		t.Error(err)
	}
	_, open := r.Open("a")
	_, list := r.List(t.Context())
	for _, err := range []error{open, list, r.Reserve("x")} {
		if !errors.Is(err, paddock.Unavailable) {
			t.Error(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// A meeting is a sandbox whose status comes when all are asked for theirs.
type meeting struct {
	paddock.Sandbox
	id  paddock.ID
	all *sync.WaitGroup
}

func (m *meeting) ID() paddock.ID { return m.id }

func (m *meeting) Status(ctx context.Context) (paddock.Status, error) {
	if until, ok := ctx.Deadline(); !ok || time.Until(until) > listTime {
		return paddock.Status{}, paddock.Internal
	}
	m.all.Done()
	met := make(chan struct{})
	go func() {
		m.all.Wait()
		close(met)
	}()
	select {
	case <-met:
		return paddock.Status{ID: m.id}, nil
	case <-ctx.Done():
		return paddock.Status{}, paddock.Timeout
	}
}

func TestAListAsksManyAtOnceWithOneBoundForAll(t *testing.T) {
	var r Set[*meeting]
	var all sync.WaitGroup
	all.Add(listAtOnce)
	for i := range listAtOnce {
		m := &meeting{id: paddock.ID(fmt.Sprintf("m%d", i)), all: &all}
		if err := errors.Join(r.Reserve(m.id), r.Add(m)); err != nil {
			t.Fatal(err)
		}
	}
	list, err := r.List(t.Context())
	if err != nil || len(list) != listAtOnce {
		t.Fatalf("%d of %d are listed: %v", len(list), listAtOnce, err)
	}
	for i, st := range list {
		if st.ID != paddock.ID(fmt.Sprintf("m%d", i)) {
			t.Errorf("the %d. is %s", i, st.ID)
		}
	}
}
