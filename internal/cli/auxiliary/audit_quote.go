package auxiliary

import (
	"crypto"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit/attestation"
	"github.com/paddock-sandbox/paddock/internal/audit/quote"
	"github.com/paddock-sandbox/paddock/internal/cli"
)

// A machine gives quotes, and judges those of others.
type machine struct {
	take   func([quote.Size]byte) (quote.Evidence, error)
	verify func(quote.Evidence, [quote.Size]byte) (quote.Facts, error)
}

// hardware is this machine.
func hardware() machine { return machine{quote.Take, quote.Verifier{}.Verify} }

// quoteFlags ask for a quote.
type quoteFlags struct {
	machine machine
	quoted  bool
	nonce   string
}

func (f *quoteFlags) register(fs *pflag.FlagSet) {
	fs.BoolVar(&f.quoted, "quote", false, "add a quote of this machine, which must be a confidential guest (AMD SEV-SNP, Intel TDX) with configfs-tsm")
	fs.StringVar(&f.nonce, "nonce", "", "what a verifier chose so that the quote is new, in `hex` digits (up to 64 bytes)")
}

// take returns a quote that binds a record and a key, or nil if none is asked for.
func (f *quoteFlags) take(r attestation.Record, signer attestation.Signer) (*attestation.Quote, error) {
	if !f.quoted {
		if f.nonce != "" {
			return nil, cli.WithHint(fmt.Errorf("--nonce is of a quote: %w", paddock.Invalid), "add --quote, or leave it out")
		}
		return nil, nil
	}
	nonce, err := readNonce(f.nonce)
	if err != nil {
		return nil, err
	}
	id, err := attestation.KeyID(signer.Public())
	if err != nil {
		return nil, err
	}
	data := attestation.QuoteData(nonce, r, id)
	e, err := f.machine.take(data)
	if err == nil {
		_, err = f.machine.verify(e, data) // else nobody could use it
	}
	if err != nil {
		return nil, cli.WithHint(fmt.Errorf("--quote: %w", err), "%s", hintForQuote(err))
	}
	return &attestation.Quote{Provider: e.Provider, Nonce: hex.EncodeToString(nonce), Report: e.Report, Certificate: e.Certificate}, nil
}

func hintForQuote(err error) string {
	switch {
	case errors.Is(err, paddock.Unsupported):
		return "leave --quote out, or attest in a confidential guest of SEV-SNP or TDX with Linux 6.7 or later, in which configfs is mounted"
	case errors.Is(err, paddock.Denied):
		return "quotes are for root; a machine that its host can debug proves nothing"
	}
	return "the kernel's log (dmesg) may tell more"
}

func readNonce(text string) ([]byte, error) {
	nonce, err := hex.DecodeString(text)
	if err != nil || len(nonce) > attestation.MaxNonce {
		return nil, cli.WithHint(fmt.Errorf("--nonce %.40q: %w", text, paddock.Invalid), "it is up to %d bytes in hexadecimal digits", attestation.MaxNonce)
	}
	return nonce, nil
}

// wantsQuote reports whether the caller asks something of a quote.
func (f *attestedFlags) wantsQuote() bool { return f.quoted || f.nonce != "" || f.measurement != "" }

// verifyQuote verifies the quote of a statement, and compares it with what is asked for. Without a quote it returns nil.
func (f *attestedFlags) verifyQuote(p attestation.Predicate, key crypto.PublicKey) (*quote.Facts, error) {
	q := p.Quote
	switch {
	case q == nil && f.wantsQuote():
		return nil, fmt.Errorf("it has no quote of a confidential machine: %w", paddock.Conflict)
	case q == nil:
		return nil, nil
	}
	nonce, err := hex.DecodeString(q.Nonce)
	if err != nil || len(nonce) > attestation.MaxNonce {
		return nil, fmt.Errorf("the nonce of its quote is none: %w", paddock.Invalid)
	}
	if f.nonce != "" && !strings.EqualFold(f.nonce, q.Nonce) {
		return nil, fmt.Errorf("its quote has the nonce %q, and not %q: it may be an old one: %w", q.Nonce, f.nonce, paddock.Conflict)
	}
	id, err := attestation.KeyID(key)
	if err != nil {
		return nil, err
	}
	facts, err := f.machine.verify(quote.Evidence{Provider: q.Provider, Report: q.Report, Certificate: q.Certificate}, attestation.QuoteData(nonce, p.Record, id))
	if err != nil {
		return nil, err
	}
	if f.measurement != "" && !strings.EqualFold(f.measurement, facts.Measurement) {
		return nil, fmt.Errorf("its quote is of a machine with the measurement %s: %w", facts.Measurement, paddock.Conflict)
	}
	return &facts, nil
}
