package client_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/step/steptest"
)

func TestTheMonitorOfAServersSandboxIsAnswered(t *testing.T) {
	var answers *steptest.Answers
	h := &host{driver: func(state string) (paddock.Driver, error) {
		d, err := simulated(state)
		if err != nil {
			return nil, err
		}
		d, answers = steptest.Asking(d)
		return d, nil
	}}
	t.Cleanup(func() { h.close(t) })
	d, err := h.open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	sb, err := d.Create(t.Context(), paddock.Spec{Monitor: &paddock.Monitor{}})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := paddock.MonitorQuestions(t.Context(), sb, false); err != nil || !reflect.DeepEqual(list, steptest.Asked()) {
		t.Errorf("it asks %+v, %v", list, err)
	}
	if err := paddock.AnswerMonitor(t.Context(), sb, "ONE", true); err != nil {
		t.Error(err)
	}
	if err := paddock.AnswerMonitor(t.Context(), sb, "ONE", true); !errors.Is(err, paddock.NotFound) {
		t.Errorf("a second answer: %v", err)
	}
	if err := paddock.AnswerMonitor(t.Context(), sb, "../processes", true); !errors.Is(err, paddock.NotFound) {
		t.Errorf("an answer to a path: %v", err)
	}
	if all, want := answers.All(), []string{string(sb.ID()) + " ONE true"}; !slices.Equal(all, want) {
		t.Errorf("the answers are %q, not %q", all, want)
	}
	plain, err := d.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := paddock.MonitorQuestions(t.Context(), plain, false); !errors.Is(err, paddock.Unsupported) {
		t.Errorf("questions of a sandbox without a monitor: %v", err)
	}
}
