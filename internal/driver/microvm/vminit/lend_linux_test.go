package vminit

import (
	"encoding/binary"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func askOpen(unique, node uint64, flags uint32) []byte {
	m := append(ask(opOpen, unique), make([]byte, 8)...)
	binary.NativeEndian.PutUint32(m, uint32(len(m)))
	binary.NativeEndian.PutUint64(m[16:], node)
	binary.NativeEndian.PutUint32(m[inHeader:], flags)
	return m
}

func askRelease(unique, node, handle uint64) []byte {
	m := append(ask(opRelease, unique), make([]byte, 24)...)
	binary.NativeEndian.PutUint32(m, uint32(len(m)))
	binary.NativeEndian.PutUint64(m[16:], node)
	binary.NativeEndian.PutUint64(m[inHeader:], handle)
	return m
}

func opened(unique, handle uint64, how uint32) []byte {
	m := reply(unique, openedLength)
	binary.NativeEndian.PutUint64(m[outHeader:], handle)
	binary.NativeEndian.PutUint32(m[outHeader+8:], how)
	return m
}

func failed(unique uint64) []byte {
	m := reply(unique, outHeader)
	binary.NativeEndian.PutUint32(m[4:], ^uint32(syscall.ENOENT)+1)
	return m
}

// lends sends a request of the kernel and returns its answer, which does not come from the
// host.
func lends(t *testing.T, d *device, l *line, request []byte) []byte {
	t.Helper()
	d.asks <- request
	synctest.Wait()
	if len(l.sent) > 0 || len(d.answers) == 0 {
		t.Fatalf("the host was asked %d times, and the kernel answered %d times", len(l.sent), len(d.answers))
	}
	return <-d.answers
}

// passes sends a request of the kernel to the host, which answers it unless answer is nil.
func passes(t *testing.T, d *device, l *line, request, answer []byte) {
	t.Helper()
	d.asks <- request
	synctest.Wait()
	if len(l.sent) != 1 || len(d.answers) != 0 {
		t.Fatalf("the host was asked %d times, and the kernel answered %d times", len(l.sent), len(d.answers))
	}
	if got := <-l.sent; !slices.Equal(got, request) {
		t.Fatalf("the host was asked %v", got)
	}
	if answer == nil {
		return
	}
	l.comes <- answer
	if got := <-d.answers; !slices.Equal(got, answer) {
		t.Fatalf("the kernel was answered %v", got)
	}
}

func TestWhatIsOpenIsLentUntilItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, d, l := newBench(t)
		passes(t, d, l, askOpen(2, 7, syscall.O_RDONLY), opened(2, 70, keepCache))
		// While it is open, and after the last close.
		for range 2 {
			if got := lends(t, d, l, askOpen(4, 7, syscall.O_CLOEXEC)); !slices.Equal(got, opened(4, 70, keepCache)) {
				t.Errorf("%v", got)
			}
			for _, unique := range []uint64{6, 8} {
				if got := lends(t, d, l, askRelease(unique, 7, 70)); !slices.Equal(got, reply(unique, outHeader)) {
					t.Errorf("%v", got)
				}
			}
			if got := lends(t, d, l, askOpen(10, 7, syscall.O_RDONLY)); !slices.Equal(got, opened(10, 70, keepCache)) {
				t.Errorf("%v", got)
			}
		}
		if got := lends(t, d, l, askRelease(12, 7, 70)); !slices.Equal(got, reply(12, outHeader)) {
			t.Errorf("%v", got)
		}
		passes(t, d, l, askOpen(14, 8, syscall.O_RDONLY), opened(14, 80, keepCache)) // another file

		// Another open, and its time is over.
		lends(t, d, l, askOpen(16, 7, syscall.O_RDONLY))
		time.Sleep(lendTime)
		passes(t, d, l, askRelease(18, 7, 70), reply(18, outHeader))
		passes(t, d, l, askOpen(20, 7, syscall.O_RDONLY), opened(20, 71, keepCache))
	})
}

func TestWhatIsIdleIsClosedAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, d, l := newBench(t)
		passes(t, d, l, askOpen(2, 7, syscall.O_RDONLY), opened(2, 70, keepCache))
		lends(t, d, l, askRelease(4, 7, 70))
		time.Sleep(time.Second)
		passes(t, d, l, askOpen(6, 8, syscall.O_RDONLY), opened(6, 80, keepCache))
		lends(t, d, l, askRelease(8, 8, 80))
		for i, want := range []struct {
			after        time.Duration
			node, handle uint64
		}{{lendTime - time.Second, 7, 70}, {time.Second, 8, 80}} {
			time.Sleep(want.after - time.Nanosecond)
			synctest.Wait()
			if len(l.sent) > 0 {
				t.Fatal("it was closed before its time")
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if len(l.sent) != 1 {
				t.Fatalf("%d requests at its time", len(l.sent))
			}
			number := ours | uint64(i+1)
			if got := <-l.sent; !slices.Equal(got, askRelease(number, want.node, want.handle)) {
				t.Errorf("%v", got)
			}
			l.comes <- reply(number, outHeader)
			synctest.Wait()
			if len(d.answers) > 0 {
				t.Error("the kernel was answered what it has not asked")
			}
		}
		passes(t, d, l, askOpen(10, 7, syscall.O_RDONLY), opened(10, 71, keepCache))
	})
}

func TestOnlyWhatMayBeKeptIsLent(t *testing.T) {
	for name, c := range map[string]struct {
		flags  uint32
		answer []byte
	}{
		"it changes while it is served": {syscall.O_RDONLY, opened(2, 70, 0)},
		"it is to be asked for":         {syscall.O_RDONLY, opened(2, 70, keepCache|1<<5)},
		"it is to be written":           {syscall.O_RDWR, opened(2, 70, keepCache)},
		"it is to be emptied":           {syscall.O_TRUNC, opened(2, 70, keepCache)},
		"it is not there":               {syscall.O_RDONLY, failed(2)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, d, l := newBench(t)
				passes(t, d, l, askOpen(2, 7, c.flags), c.answer)
				passes(t, d, l, askOpen(4, 7, c.flags), opened(4, 71, keepCache))
				passes(t, d, l, askRelease(6, 7, 70), reply(6, outHeader))
			})
		})
	}
}

func TestWhatIsLentIsOnlyRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, d, l := newBench(t)
		passes(t, d, l, askOpen(2, 7, syscall.O_RDONLY), opened(2, 70, keepCache))
		for i, flags := range []uint32{syscall.O_RDWR, syscall.O_WRONLY, syscall.O_TRUNC, syscall.O_SYNC} {
			unique := uint64(10 + 2*i)
			passes(t, d, l, askOpen(unique, 7, flags), opened(unique, 100+unique, keepCache))
		}
	})
}

func TestWhatIsLentIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, d, l := newBench(t)
		for n := uint64(1); n <= lendMost+1; n++ {
			passes(t, d, l, askOpen(2, n, syscall.O_RDONLY), opened(2, 1000+n, keepCache))
		}
		for n := uint64(1); n <= lendMost; n++ {
			lends(t, d, l, askRelease(2, n, 1000+n))
		}
		passes(t, d, l, askRelease(2, lendMost+1, 1000+lendMost+1), reply(2, outHeader))
	})
}

// Another server has other open files and is asked again, because the file at a name may
// have changed.
func TestNothingIsLentFromOneSessionToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, d, l := newBench(t)
		passes(t, d, l, askOpen(2, 7, syscall.O_RDONLY), opened(2, 70, keepCache))
		passes(t, d, l, askOpen(4, 8, syscall.O_RDONLY), opened(4, 80, keepCache))
		lends(t, d, l, askRelease(6, 7, 70))
		l.comes <- nil
		l.opened <- struct{}{}
		synctest.Wait()
		if len(l.sent) != 1 {
			t.Fatalf("%d requests to close what is idle", len(l.sent))
		}
		if got := <-l.sent; !slices.Equal(got, askRelease(ours|1, 7, 70)) {
			t.Errorf("%v", got)
		}
		l.comes <- reply(ours|1, outHeader)
		passes(t, d, l, askOpen(8, 8, syscall.O_RDONLY), opened(8, 81, keepCache))
		passes(t, d, l, askRelease(10, 8, 80), reply(10, outHeader))
	})
}

// A file that is not open may be replaced on the host while a machine is saved. After the
// restore, the replacement is the file of that name.
func TestNothingIdleIsOpenWhileNothingGoesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d, l := newBench(t)
		passes(t, d, l, askOpen(2, 7, syscall.O_RDONLY), opened(2, 70, keepCache))
		passes(t, d, l, askOpen(4, 8, syscall.O_RDONLY), opened(4, 80, keepCache))
		lends(t, d, l, askRelease(6, 7, 70))
		held := make(chan error, 1)
		go func() { held <- p.hold(t.Context()) }()
		if got := <-l.sent; !slices.Equal(got, askRelease(ours|1, 7, 70)) {
			t.Errorf("%v", got)
		}
		synctest.Wait()
		if len(held) > 0 {
			t.Error("it holds before the host has closed it")
		}
		l.comes <- reply(ours|1, outHeader)
		if err := <-held; err != nil {
			t.Error(err)
		}
		time.Sleep(2 * lendTime)
		synctest.Wait()
		if len(l.sent) > 0 {
			t.Error("a request went to the host")
		}
		p.release()
		passes(t, d, l, askOpen(8, 8, syscall.O_RDONLY), opened(8, 81, keepCache)) // it may be another file
	})
}
