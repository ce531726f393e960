package envd

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// A lossy watcher tells a loss with each event, as a hostile guest may.
type lossy struct{ left int }

func (l *lossy) Next(context.Context) (paddock.Event, error) {
	if l.left--; l.left < 0 {
		return paddock.Event{}, paddock.Unavailable
	}
	return paddock.Event{Op: paddock.EventWrite, Name: "/a/b", Lost: true}, nil
}

func (*lossy) Close() error { return nil }

func TestAGuestCannotFillTheLogByEventsThatWereLost(t *testing.T) {
	var log bytes.Buffer
	w := &watch{b: &Box{o: Options{Log: slog.New(slog.NewTextHandler(&log, nil))}}, root: "/a", w: &lossy{left: 1000}}
	n := 0
	for {
		if _, err := w.next(t.Context()); err != nil {
			break
		}
		n++
	}
	if lines := strings.Count(log.String(), "\n"); n != 1000 || lines != 1 {
		t.Errorf("%d events, and %d lines in the log", n, lines)
	}
}
