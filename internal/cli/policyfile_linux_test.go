package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// A command in a sandbox may put a FIFO where a policy file was, and nobody writes to it.
func TestADocumentThatIsAFIFOIsNotWaitedFor(t *testing.T) {
	name := filepath.Join(t.TempDir(), "policy.yaml")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadDocument("policy file", name); !errors.Is(err, paddock.Invalid) || !strings.Contains(err.Error(), name+": it is a FIFO") {
		t.Errorf("%v", err)
	}
	f := &runFlags{file: name}
	if _, err := f.scripted(func(flag string) bool { return flag == "file" }); !errors.Is(err, errFIFO) {
		t.Errorf("a script: %v", err)
	}
}

// As a shell has it for <(…).
func TestADocumentMayComeFromAPipeOfTheCallers(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		_, _ = w.WriteString("version: 1\n") // the test sees what is missing
		w.Close()
	}()
	if data, err := ReadDocument("policy file", "/dev/fd/"+strconv.Itoa(int(r.Fd()))); err != nil || string(data) != "version: 1\n" {
		t.Errorf("%q, %v", data, err)
	}
}
