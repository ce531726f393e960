package netstack

import (
	"io"
	"net"
	"runtime"
	"testing"
)

// BenchmarkSplice copies bytes of a guest's connection to one of the host, with all three
// ends in this process.
func BenchmarkSplice(b *testing.B) {
	for name, up := range map[string]bool{"up": true, "down": false} {
		b.Run(name, func(b *testing.B) { splice(b, up) })
	}
}

func splice(b *testing.B, up bool) {
	const size = 256 << 20
	host, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer host.Close()
	done := make(chan struct{}, 1)
	go func() {
		for {
			c, err := host.Accept()
			if err != nil {
				return
			}
			move(c, c, up, size)
			c.Close()
			done <- struct{}{}
		}
	}()
	_, g := open(b, Options{Handler: accepted(b, func(c Conn) {
		out, err := net.Dial("tcp", host.Addr().String())
		if err != nil {
			b.Error(err)
			return
		}
		defer out.Close()
		buf := make([]byte, 256<<10)
		if up {
			_, _ = io.CopyBuffer(struct{ io.Writer }{out}, c, buf)
			return
		}
		_, _ = io.CopyBuffer(c, struct{ io.Reader }{out}, buf)
	})})
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		c := g.mustDial(b, web4)
		move(c, c, !up, size)
		c.Close()
		<-done
	}
}

// move reads or writes size bytes.
func move(w io.Writer, r io.Reader, read bool, size int) {
	buf := make([]byte, 256<<10)
	if read {
		_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r}, buf)
		return
	}
	for left := size; left > 0; left -= len(buf) {
		if _, err := w.Write(buf); err != nil {
			return
		}
	}
}

// BenchmarkLoopback is the same without a link.
func BenchmarkLoopback(b *testing.B) {
	const size = 256 << 20
	host, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer host.Close()
	b.SetBytes(size)
	for b.Loop() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			if c, err := host.Accept(); err == nil {
				move(c, c, true, size)
				c.Close()
			}
		}()
		c, err := net.Dial("tcp", host.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		move(c, c, false, size)
		c.Close()
		<-done
	}
}

// BenchmarkIdle measures the cost of an unused link.
func BenchmarkIdle(b *testing.B) {
	const many = 20
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		links := make([]*Link, many)
		for i := range links {
			ours, theirs := pair(b)
			defer theirs.Close()
			l, err := Open(ours, Options{Handler: handler{}})
			if err != nil {
				b.Fatal(err)
			}
			links[i] = l
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		for _, l := range links {
			l.Close()
		}
	}
	b.ReportMetric(float64(after.HeapAlloc+after.StackInuse-before.HeapAlloc-before.StackInuse)/many/1024, "kB/link")
}
