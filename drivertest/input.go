package drivertest

import (
	"bytes"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func inputPromises() []group {
	return []group{{promises: []promise{
		{"input reaches the command, and closing it is the end of file", inputEnds},
		{"32 MB of input arrive whole, and come back", bigInput},
		{"a command without input reads the end of file at once", noInput},
		{"writing input that was not asked for is a conflict", inputRefused},
		{"writing to a command that has ended fails and does not hang", inputAfterEnd},
		{"a command that ends without reading ends a writer that waits", inputUnread},
	}}}
}

func inputEnds(t *testing.T, s *suite) {
	b := s.box(t)
	var out bytes.Buffer
	cmd := b.shell("cat; echo end")
	cmd.Input = true
	cmd.Output = paddock.Output{Stdout: &out}
	p := b.start(t, cmd)
	for _, text := range []string{"one\n", "two, without a newline"} {
		if n, err := io.WriteString(p.Input(), text); err != nil || n != len(text) {
			t.Fatalf("write: %d, %v", n, err)
		}
	}
	if err := p.Input().Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	exit := wait(t, p)
	if want := "one\ntwo, without a newlineend\n"; out.String() != want || exit.Code != 0 {
		t.Errorf("output %q, exit %+v", out.String(), exit)
	}
}

func bigInput(t *testing.T, s *suite) {
	const size = 32 << 20
	b := s.box(t)
	in, out := sha256.New(), sha256.New()
	cmd := b.shell("exec cat")
	cmd.Input = true
	cmd.Output = paddock.Output{Stdout: out}
	p := b.start(t, cmd)
	n, err := io.Copy(io.MultiWriter(p.Input(), in), io.LimitReader(noise(1), size))
	if err != nil || n != size {
		t.Fatalf("wrote %d: %v", n, err)
	}
	if err := p.Input().Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	if exit := wait(t, p); exit.Code != 0 {
		t.Errorf("exit %+v", exit)
	}
	if !bytes.Equal(in.Sum(nil), out.Sum(nil)) {
		t.Error("what came back is not what was written")
	}
}

func noInput(t *testing.T, s *suite) {
	r := s.box(t).sh(t, "cat; echo end")
	if r.out != "end\n" || r.exit.Code != 0 {
		t.Errorf("output %q, exit %+v", r.out, r.exit)
	}
}

func inputRefused(t *testing.T, s *suite) {
	b := s.box(t)
	p := b.start(t, b.shell("exec sleep 1000"))
	defer kill(t, p)
	_, err := p.Input().Write([]byte("x"))
	wantKind(t, "write", err, paddock.Conflict)
}

func inputAfterEnd(t *testing.T, s *suite) {
	b := s.box(t)
	cmd := b.shell("exit 0")
	cmd.Input = true
	p := b.start(t, cmd)
	wait(t, p)
	writeUntilError(t, p)
}

func inputUnread(t *testing.T, s *suite) {
	b := s.box(t)
	// The command ends when the file exists. By then the writer has filled every buffer in
	// between.
	cmd := b.shell("while ! [ -e go ]; do sleep 0.05; done")
	cmd.Input = true
	p := b.start(t, cmd)
	failed := make(chan error, 1)
	go func() {
		_, err := io.Copy(p.Input(), noise(2))
		failed <- err
	}()
	b.put(t, b.in("go"), nil, 0)
	wait(t, p)
	select {
	case err := <-failed:
		if err == nil {
			t.Error("writing to a command that is gone succeeded")
		}
	case <-bounded(t).Done():
		t.Fatal("the writer hangs")
	}
}

// writeUntilError fails if it can write more than any buffer may hold.
func writeUntilError(t testing.TB, p paddock.Process) {
	t.Helper()
	failed := make(chan error, 1)
	go func() {
		_, err := io.Copy(p.Input(), io.LimitReader(noise(3), 64<<20))
		failed <- err
	}()
	select {
	case err := <-failed:
		if err == nil {
			t.Error("64 MB were written to a command that had ended")
		}
	case <-bounded(t).Done():
		t.Fatal("the writer hangs")
	}
}

// noise returns endless bytes without repetition. The same seed gives the same bytes.
func noise(seed byte) io.Reader {
	return rand.NewChaCha8([32]byte{seed})
}
