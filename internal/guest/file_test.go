package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

func TestErrorsOfTheKernelHaveKindsAndWords(t *testing.T) {
	for errno, want := range map[syscall.Errno]paddock.Kind{
		syscall.ENOENT:       paddock.NotFound,
		syscall.EEXIST:       paddock.Exists,
		syscall.EACCES:       paddock.Denied,
		syscall.EPERM:        paddock.Denied,
		syscall.EROFS:        paddock.Denied,
		syscall.ENOSPC:       paddock.Exhausted,
		syscall.EDQUOT:       paddock.Exhausted,
		syscall.EMFILE:       paddock.Exhausted,
		syscall.EISDIR:       paddock.Invalid,
		syscall.ENOTDIR:      paddock.Invalid,
		syscall.ENAMETOOLONG: paddock.Invalid,
		syscall.ELOOP:        paddock.Invalid,
		syscall.EXDEV:        paddock.Invalid,
		syscall.ENOTEMPTY:    paddock.Conflict,
		syscall.ETXTBSY:      paddock.Conflict,
		syscall.EIO:          paddock.Internal,
	} {
		// As it comes from the kernel, from package os, and said twice.
		for _, err := range []error{errno, &os.PathError{Op: "x", Path: "y", Err: errno}, failed("first", "/g", errno)} {
			got := failed("open", "/f", err)
			if paddock.KindOf(got) != want || strings.Contains(got.Error(), "first") != errors.Is(err, want) {
				t.Errorf("%v: %v of kind %v, want %v", err, got, paddock.KindOf(got), want)
			}
		}
	}
	denied := failed("open", "/f", fmt.Errorf("by a rule: %w", paddock.Denied))
	if paddock.KindOf(denied) != paddock.Denied || !strings.Contains(denied.Error(), "by a rule") {
		t.Error(denied)
	}
	if failed("open", "/f", nil) != nil {
		t.Error("no error has become one")
	}
}

func TestTheKernelsLimitsOfWatchesAreNamed(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.ENOSPC: "fs.inotify.max_user_watches",
		syscall.EMFILE: "fs.inotify.max_user_instances",
	} {
		err := exhausted("/dir", os.NewSyscallError("inotify", errno))
		if paddock.KindOf(err) != paddock.Exhausted || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", errno, err)
		}
	}
}

func TestEventsThatDoNotFitAreToldAsLost(t *testing.T) {
	q := newEventQueue()
	const write = guestpb.FileOp_FILE_OP_WRITE
	for i := range maxQueue + 10 {
		q.put(write, fmt.Sprint("/", i))
		q.put(write, fmt.Sprint("/", i)) // a repetition
	}
	var got int
	for lost := false; !lost; {
		events, l, err := q.take(t.Context())
		if err != nil || len(events) > maxEvents {
			t.Fatalf("%d events, %v", len(events), err)
		}
		for _, e := range events {
			if string(e.Name) != fmt.Sprint("/", got) {
				t.Fatalf("event %d is of %s", got, e.Name)
			}
			got++
		}
		lost = l
	}
	if got != maxQueue {
		t.Errorf("%d events before the loss, want %d", got, maxQueue)
	}
	q.put(write, "/after")
	q.lose()
	if events, lost, err := q.take(t.Context()); len(events) != 1 || !lost || err != nil {
		t.Errorf("%v, %v, %v", events, lost, err)
	}
	for range 3 { // long names
		q.put(write, "/"+strings.Repeat("n", maxQueueBytes/2))
		q.put(write, "/")
	}
	q.end(paddock.Exhausted)
	var lost bool
	for {
		events, l, err := q.take(t.Context())
		lost = lost || l
		if err != nil {
			if err != paddock.Exhausted || len(events) != 0 {
				t.Errorf("%v after %v", err, events)
			}
			break
		}
	}
	if !lost {
		t.Error("the queue holds names without bound")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := newEventQueue().take(ctx); err != context.Canceled {
		t.Error(err)
	}
}
