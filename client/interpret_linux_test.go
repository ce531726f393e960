package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
	"github.com/paddock-sandbox/paddock/drivertest"
)

func TestCodeRunsOverTheNetwork(t *testing.T) {
	h := &host{driver: jailed}
	harness := h.harness(t)
	opened, err := harness.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d, ok := opened.(*client.Driver)
	if !ok {
		t.Fatalf("it is a %T", opened)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	sb, err := d.Create(ctx, paddock.Spec{AllowMissing: drivertest.Weak(t, jailed)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(sb.Remove(context.Background()), d.Close()); err != nil {
			t.Error(err)
		}
	}()
	made, err := d.CreateContext(ctx, sb.ID(), client.NewContext{Dir: "/tmp"})
	if err != nil || made.Language != "python" || made.Dir != "/tmp" {
		t.Fatalf("%+v, %v", made, err)
	}
	run := func(c client.Cell) (out, value, failure string) {
		t.Helper()
		ended := false
		err := d.Interpret(ctx, sb.ID(), c, func(e client.CellEvent) error {
			switch e.Type {
			case "stdout":
				out += e.Text
			case "result":
				value = string(e.Result.Data["text/plain"])
			case "error":
				failure = e.Error.Name
			case "end":
				ended = true
			}
			return nil
		})
		if err != nil || !ended {
			t.Fatalf("%q: %v", c.Code, err)
		}
		return out, value, failure
	}
	if out, value, failure := run(client.Cell{Context: made.ID, Code: "import os; print(os.getcwd()); x = 6; x * 7"}); out != "/tmp\n" || value != `"42"` || failure != "" {
		t.Errorf("%q, %q, %q", out, value, failure)
	}
	if _, value, _ := run(client.Cell{Context: made.ID, Code: "x"}); value != `"6"` {
		t.Errorf("%q", value)
	}
	if _, _, failure := run(client.Cell{Context: made.ID, Code: "while True: pass", Timeout: time.Millisecond}); failure != "ExecutionTimeout" {
		t.Errorf("%q", failure)
	}
	enough := errors.New("enough")
	if err := d.Interpret(ctx, sb.ID(), client.Cell{Context: made.ID, Code: "while True: print('x')"}, func(e client.CellEvent) error {
		if e.Type == "stdout" {
			return enough
		}
		return nil
	}); !errors.Is(err, enough) {
		t.Errorf("a caller that has enough: %v", err)
	}
	if err := d.RestartContext(ctx, sb.ID(), made.ID); err != nil {
		t.Error(err)
	}
	if _, _, failure := run(client.Cell{Context: made.ID, Code: "x"}); failure != "NameError" {
		t.Errorf("after a restart: %q", failure)
	}
	if list, err := d.Contexts(ctx, sb.ID()); err != nil || len(list) != 1 || list[0].ID != made.ID {
		t.Errorf("%+v, %v", list, err)
	}
	if err := d.InterruptContext(ctx, sb.ID(), made.ID); err != nil {
		t.Error(err)
	}
	if err := d.RemoveContext(ctx, sb.ID(), made.ID); err != nil {
		t.Error(err)
	}
	err = d.Interpret(ctx, sb.ID(), client.Cell{Context: made.ID}, func(client.CellEvent) error { return nil })
	if !errors.Is(err, paddock.NotFound) {
		t.Errorf("a context that is gone: %v", err)
	}
}
