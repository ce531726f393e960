package quote

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"

	"github.com/google/go-configfs-tsm/configfs/configfsi"
	"github.com/google/go-configfs-tsm/configfs/linuxtsm"
	"github.com/google/go-configfs-tsm/report"

	"github.com/paddock-sandbox/paddock"
)

// Size is the number of bytes that a quote binds.
const Size = 64

// maxEvidence bounds a quote and its certificates, in bytes each.
const maxEvidence = 256 << 10

// Providers of quotes, as Linux names them.
const (
	SEV = "sev_guest"
	TDX = "tdx_guest"
)

// Evidence is a quote as the hardware gives it.
type Evidence struct {
	Provider    string // SEV or TDX
	Report      []byte
	Certificate []byte // table of certificates; a quote of TDX has its own
}

// Facts are what a verified quote says.
type Facts struct {
	Machine     string   `json:"machine"`             // "SEV-SNP" or "TDX"
	Measurement string   `json:"measurement"`         // of what the machine was started with, in hexadecimal
	Registers   []string `json:"registers,omitempty"` // of TDX, which are extended at run time, in hexadecimal
}

// Take gets a quote that binds data from this machine, by the interface configfs-tsm of Linux 6.7 and later.
func Take(data [Size]byte) (Evidence, error) {
	client, err := linuxtsm.MakeClient()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Evidence{}, fmt.Errorf("this machine is no confidential guest: there is no %s/report: %w", configfsi.TsmPrefix, paddock.Unsupported)
	case err != nil:
		return Evidence{}, fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	return TakeFrom(client, data)
}

// TakeFrom is Take with a client of the interface.
func TakeFrom(client configfsi.Client, data [Size]byte) (Evidence, error) {
	r, err := report.Create(client, &report.Request{InBlob: data[:]})
	if err != nil {
		return Evidence{}, taking(err)
	}
	e, err := get(r)
	if err = errors.Join(err, r.Destroy()); err != nil {
		return Evidence{}, taking(err)
	}
	return e, nil
}

func taking(err error) error {
	kind := paddock.Unavailable
	if errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error(), fs.ErrPermission.Error()) { // the library does not wrap all
		kind = paddock.Denied
	}
	return fmt.Errorf("get a quote of this machine: %w: %w", err, kind)
}

// get reads a report. Its certificates are optional, because not every provider has them.
func get(r *report.OpenReport) (Evidence, error) {
	got, err := r.Get()
	if err != nil {
		return Evidence{}, err
	}
	e := Evidence{Provider: strings.TrimSpace(got.Provider), Report: got.OutBlob}
	if e.Provider == SEV {
		if e.Certificate, err = r.ReadOption("auxblob"); err != nil {
			return Evidence{}, fmt.Errorf("the host of the machine gives no certificate of the processor: %w", err)
		}
	}
	return e, nil
}

// A Verifier verifies quotes. The zero Verifier trusts the roots of the vendors, and the clock.
type Verifier struct {
	sev sevRoots
	tdx tdxRoots
	now clock
}

// Verify returns what a quote says, if its hardware signed it, it binds data, and its machine is not one that its host
// can debug. The quote is not trusted.
func (v Verifier) Verify(e Evidence, data [Size]byte) (Facts, error) {
	if len(e.Report) > maxEvidence || len(e.Certificate) > maxEvidence {
		return Facts{}, fmt.Errorf("the quote is larger than any: %w", paddock.Invalid)
	}
	f, err := v.dispatch(e, data)
	if err != nil {
		return Facts{}, fmt.Errorf("the quote of %.40q: %w", e.Provider, err)
	}
	return f, nil
}

// dispatch verifies a quote by its provider. The libraries of the vendors trust lengths in a quote, and panic where they
// lead beyond its end.
func (v Verifier) dispatch(e Evidence, data [Size]byte) (f Facts, err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		beyond, ok := p.(runtime.Error)
		if !ok {
			panic(p)
		}
		f, err = Facts{}, denied(fmt.Errorf("it is malformed: %w", beyond))
	}()
	switch e.Provider {
	case SEV:
		return v.verifySEV(e, data)
	case TDX:
		return v.verifyTDX(e, data)
	}
	return Facts{}, fmt.Errorf("this version knows %s and %s: %w", SEV, TDX, paddock.Unsupported)
}

// binds returns an error unless the bytes of a quote are data.
func binds(got []byte, data [Size]byte) error {
	if !bytes.Equal(got, data[:]) {
		return fmt.Errorf("it binds %s, and not this record's head, key and nonce, %x: %w", hex.EncodeToString(got), data, paddock.Denied)
	}
	return nil
}

// denied is the error of a quote that a library refuses.
func denied(err error) error {
	return fmt.Errorf("%w: %w", err, paddock.Denied)
}

// debuggable is the error of a machine into which its host can look.
func debuggable() error {
	return fmt.Errorf("its machine can be debugged by its host, which so sees and changes everything in it: %w", paddock.Denied)
}
