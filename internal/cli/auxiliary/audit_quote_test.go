package auxiliary

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit/quote"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/cli/clitest"
	"github.com/paddock-sandbox/paddock/internal/cli/fake"
)

// fakeMachine gives quotes that are the bytes that they bind. Package quote tests those of real machines.
func fakeMachine() machine {
	return machine{
		take: func(data [quote.Size]byte) (quote.Evidence, error) {
			return quote.Evidence{Provider: quote.SEV, Report: bytes.Clone(data[:]), Certificate: []byte("AMD")}, nil
		},
		verify: func(e quote.Evidence, data [quote.Size]byte) (quote.Facts, error) {
			if e.Provider != quote.SEV || string(e.Certificate) != "AMD" || !bytes.Equal(e.Report, data[:]) {
				return quote.Facts{}, fmt.Errorf("the quote binds something else: %w", paddock.Denied)
			}
			return quote.Facts{Machine: "SEV-SNP", Measurement: "abcd"}, nil
		},
	}
}

// runOn runs a command on a machine.
func (b *attestedRun) runOn(m machine, args ...string) (code int, stdout, stderr string) {
	b.t.Helper()
	v := clitest.Invoke(b.dir, nil, []cli.Tier{clitest.Recording(&fake.Fake{})}, args...)
	v.App.Commands = func(a *cli.App) []*cobra.Command { return []*cobra.Command{auditCommand(a, m)} }
	code = v.Run(b.t.Context())
	return code, v.Stdout.String(), v.Stderr.String()
}

func TestAQuoteBindsTheRecordTheKeyAndTheNonce(t *testing.T) {
	b, m := newAttestedRun(t), fakeMachine()
	code, stdout, stderr := b.runOn(m, "audit", "attest", b.record, "--workspace", b.workspace, "--quote", "--nonce", "0A0b")
	if code != 0 || stderr != "" {
		t.Fatalf("exit status %d, %q", code, stderr)
	}
	clitest.Plant(t, b.sealed, stdout, 0o600)
	verify := func(m machine, more ...string) (int, string, string) {
		return b.runOn(m, append([]string{"audit", "verify", b.record, "--attestation", b.sealed}, more...)...)
	}
	if code, stdout, stderr := verify(m, "--nonce", "0a0B", "--measurement", "ABCD", "--quote"); code != 0 || stderr != "" || !strings.Contains(stdout, "\n  quote:     SEV-SNP, measurement abcd\n") {
		t.Errorf("exit status %d, %q, %q", code, stdout, stderr)
	}
	if code, stdout, stderr := verify(m, "--json"); code != 0 || stderr != "" || !strings.Contains(stdout, `"measurement": "abcd"`) {
		t.Errorf("exit status %d, %q, %q", code, stdout, stderr)
	}
	for want, args := range map[string][]string{
		"it may be an old one":                   {"--nonce", "0a0c"},
		"of a machine with the measurement abcd": {"--measurement", "abce"},
	} {
		if code, _, stderr := verify(m, args...); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit status %d, %q", args, code, stderr)
		}
	}
	// The real hardware did not sign this one, and a quote is verified although nobody asks for it.
	if code, _, stderr := verify(hardware()); code != 1 || !strings.Contains(stderr, `the quote of "sev_guest": `) {
		t.Errorf("exit status %d, %q", code, stderr)
	}
	// The quote of another record is bound to that one.
	other := newAttestedRun(t)
	moved := m
	moved.take = func([quote.Size]byte) (quote.Evidence, error) { return m.take([quote.Size]byte{}) }
	if code, stdout, stderr := other.runOn(moved, "audit", "attest", other.record, "--workspace", other.workspace, "--quote"); code != 125 || stdout != "" || !strings.Contains(stderr, "binds something else") {
		t.Errorf("exit status %d, %q, %q", code, stdout, stderr)
	}
}

func TestWhereThereIsNoQuoteIsTold(t *testing.T) {
	b := newAttestedRun(t)
	absent := machine{
		take: func([quote.Size]byte) (quote.Evidence, error) {
			return quote.Evidence{}, fmt.Errorf("this machine is no confidential guest: %w", paddock.Unsupported)
		},
		verify: quote.Verifier{}.Verify,
	}
	for _, row := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"attest", b.record, "--workspace", b.workspace, "--quote"}, 125, "hint: leave --quote out, or attest in a confidential guest"},
		{[]string{"attest", b.record, "--workspace", b.workspace, "--nonce", "00"}, 125, "hint: add --quote"},
		{[]string{"attest", b.record, "--workspace", b.workspace, "--quote", "--nonce", "xy"}, 125, "up to 64 bytes"},
		{[]string{"attest", b.record, "--workspace", b.workspace, "--quote", "--nonce", strings.Repeat("00", 65)}, 125, "up to 64 bytes"},
		{[]string{"verify", "--attestation", b.sealed, "--quote"}, 1, "it has no quote of a confidential machine"},
		{[]string{"verify", b.record, "--attestation", b.sealed, "--measurement", "00"}, 1, "it has no quote"},
		{[]string{"verify", b.record, "--quote"}, 125, "hint: add --attestation FILE"},
	} {
		if code, stdout, stderr := b.runOn(absent, append([]string{"audit"}, row.args...)...); code != row.code || stdout != "" || !strings.Contains(stderr, row.want) {
			t.Errorf("%q: exit status %d, %q, %q, want %q", row.args, code, stdout, stderr, row.want)
		}
	}
}
