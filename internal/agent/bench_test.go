//go:build linux

package agent_test

import (
	"os/exec"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guest/guesttest"
)

// BenchmarkTrue compares a command through the guest with a bare one.
func BenchmarkTrue(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("guest", func(b *testing.B) {
		g := guesttest.New(b, guest.Options{})
		for b.Loop() {
			p, err := g.Start(b.Context(), paddock.Cmd{Args: []string{"/bin/true"}})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := p.Wait(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
