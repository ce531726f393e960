package guestclient

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

func started(pid int32) *guestpb.ProcessEvent {
	return &guestpb.ProcessEvent{Event: &guestpb.ProcessEvent_Started{Started: &guestpb.Started{Pid: pid}}}
}

func startedAfter(killed int64) *guestpb.ProcessEvent {
	e := started(1)
	e.GetStarted().Killed = &killed
	return e
}

func output(offset int64, n int) *guestpb.ProcessEvent {
	return &guestpb.ProcessEvent{Event: &guestpb.ProcessEvent_Output{Output: &guestpb.Output{Offset: offset, Data: make([]byte, n)}}}
}

func exited(e *guestpb.Exited) *guestpb.ProcessEvent {
	return &guestpb.ProcessEvent{Event: &guestpb.ProcessEvent_Exited{Exited: e}}
}

var plain = &guestpb.Exited{Cause: guestpb.Cause_CAUSE_EXITED}

func TestEventsThatCannotBeAreRefused(t *testing.T) {
	type list []*guestpb.ProcessEvent
	for name, tt := range map[string]struct {
		from   events
		events list // the last one is wrong
	}{
		"nothing":                   {events{}, list{{}}},
		"no start":                  {events{}, list{output(0, 1)}},
		"an exit first":             {events{}, list{exited(plain)}},
		"process 0":                 {events{}, list{started(0)}},
		"process -1":                {events{}, list{started(-1)}},
		"a process beyond Linux":    {events{}, list{started(1<<22 + 1)}},
		"another process":           {events{pid: 5}, list{started(6)}},
		"-1 processes killed":       {events{}, list{startedAfter(-1)}},
		"too many killed":           {events{}, list{startedAfter(1<<30 + 1)}},
		"two starts":                {events{}, list{started(5), started(5)}},
		"empty output":              {events{}, list{started(5), output(0, 0)}},
		"too much output":           {events{}, list{started(5), output(0, 64<<10+1)}},
		"a negative offset":         {events{}, list{started(5), output(-1, 1)}},
		"an offset twice":           {events{}, list{started(5), output(0, 10), output(9, 1)}},
		"an offset before":          {events{next: 10}, list{started(5), output(9, 10)}},
		"an offset near the end":    {events{}, list{started(5), output(1<<63-1, 10)}},
		"output that nobody wanted": {events{silent: true}, list{started(5), output(0, 1)}},
		"output after the exit":     {events{}, list{started(5), exited(plain), output(0, 1)}},
		"two exits":                 {events{}, list{started(5), exited(plain), exited(plain)}},
		"no exit":                   {events{}, list{started(5), exited(nil)}},
		"no cause":                  {events{}, list{started(5), exited(&guestpb.Exited{})}},
		"an unknown cause":          {events{}, list{started(5), exited(&guestpb.Exited{Cause: 99})}},
		"code 256":                  {events{}, list{started(5), exited(&guestpb.Exited{Cause: 1, Code: 256})}},
		"code -1":                   {events{}, list{started(5), exited(&guestpb.Exited{Cause: 1, Code: -1})}},
		"an exit with a signal":     {events{}, list{started(5), exited(&guestpb.Exited{Cause: 1, Code: 137, Signal: 9})}},
		"a signal without number":   {events{}, list{started(5), exited(&guestpb.Exited{Cause: 2, Code: 128})}},
		"a signal with other code":  {events{}, list{started(5), exited(&guestpb.Exited{Cause: 2, Code: 1, Signal: 9})}},
		"signal 65":                 {events{}, list{started(5), exited(&guestpb.Exited{Cause: 2, Code: 193, Signal: 65})}},
		"negative dropped":          {events{}, list{started(5), exited(&guestpb.Exited{Cause: 1, Dropped: -1})}},
		"negative time":             {events{}, list{started(5), exited(&guestpb.Exited{Cause: 1, Wall: -1})}},
		"negative processor time":   {events{}, list{started(5), exited(&guestpb.Exited{Cause: 1, Cpu: -1})}},
		"negative memory":           {events{}, list{started(5), exited(&guestpb.Exited{Cause: 1, MemoryPeak: -1})}},
	} {
		for i, ev := range tt.events {
			err := tt.from.check(ev)
			if last := i == len(tt.events)-1; last != (err != nil) || (last && paddock.KindOf(err) != paddock.Internal) {
				t.Errorf("%s: event %d answers %v", name, i, err)
			}
		}
	}
}

func TestMissingOutputIsCounted(t *testing.T) {
	s := events{next: 100}
	for _, ev := range []*guestpb.ProcessEvent{started(5), output(150, 10), output(160, 10), output(200, 1), exited(plain)} {
		if err := s.check(ev); err != nil {
			t.Fatal(err)
		}
	}
	if s.dropped != 50+30 || s.next != 201 {
		t.Errorf("%+v", s)
	}
}

// FuzzEvents feeds a stream of messages, each with its length in two bytes.
func FuzzEvents(f *testing.F) {
	var seed []byte
	for _, ev := range []*guestpb.ProcessEvent{started(5), output(7, 3), output(20, 1), exited(&guestpb.Exited{Cause: 2, Code: 137, Signal: 9})} {
		b, err := proto.Marshal(ev)
		if err != nil {
			f.Fatal(err)
		}
		seed = append(append(seed, byte(len(b)>>8), byte(len(b))), b...)
	}
	f.Add(seed)
	f.Add(bytes.Repeat([]byte{0, 0}, 4))
	f.Add([]byte{0, 2, 0x0a, 0x00})
	f.Fuzz(func(t *testing.T, b []byte) {
		var s events
		for total := int64(0); len(b) >= 2; {
			n := min(int(b[0])<<8|int(b[1]), len(b)-2)
			var ev guestpb.ProcessEvent
			err := proto.Unmarshal(b[2:2+n], &ev)
			b = b[2+n:]
			if err != nil {
				continue
			}
			before := s
			if err := s.check(&ev); err != nil {
				return
			}
			total += int64(len(ev.GetOutput().GetData()))
			if s.next < before.next || s.next < 0 || s.dropped < before.dropped || s.next != total+s.dropped {
				t.Fatalf("%+v after %+v, %d bytes", s, before, total)
			}
			if !s.started || s.pid < 1 || (before.exited && s.exited) {
				t.Fatalf("%+v after %+v", s, before)
			}
			if e := ev.GetExited(); e != nil {
				x := exitOf(e, 0)
				if x.Cause == "" || x.Code < 0 || x.Code > 255 || x.Usage.Wall < 0 || (x.Cause != paddock.Exited && x.Reason == "") {
					t.Fatalf("%+v", x)
				}
			}
		}
	})
}

// FuzzGuardedStream checks that no message is longer than allowed, whatever
// the pieces in which it arrives.
func FuzzGuardedStream(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 1, 'x', 2, 0, 0, 0, 2, '{', '}'}, uint8(3))
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 1}, uint8(1))
	f.Add([]byte{1, 0, 0, 0, 0}, uint8(5))
	f.Fuzz(func(t *testing.T, b []byte, piece uint8) {
		whole, parts := &guardedStream{}, &guardedStream{}
		want := whole.check(b)
		var got error
		for rest := b; len(rest) > 0 && got == nil; {
			n := min(int(piece)+1, len(rest))
			got = parts.check(rest[:n])
			rest = rest[n:]
		}
		if (want == nil) != (got == nil) {
			t.Fatalf("at once %v, in pieces %v", want, got)
		}
		if want == nil && (whole.left > maxMessage || *whole.state() != *parts.state()) {
			t.Fatalf("%+v, in pieces %+v", whole, parts)
		}
	})
}

// state is what decides about the next byte.
func (b *guardedStream) state() *guardedStream {
	s := guardedStream{have: b.have, left: b.left, last: b.last}
	copy(s.prefix[:b.have], b.prefix[:b.have])
	return &s
}

func TestWordsOfTheGuestCannotCommandATerminal(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "\x1b[2Jx": "?[2Jx", "a\nb\r": "a?b?", "\xff": "?", "\u202eabc": "?abc", "über": "über",
	} {
		if got := text(in); got != want {
			t.Errorf("%q became %q", in, got)
		}
	}
	if n := len(text(string(make([]byte, 1<<20)))); n > maxText {
		t.Errorf("%d bytes were kept", n)
	}
}
