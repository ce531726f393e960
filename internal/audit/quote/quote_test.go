package quote

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-configfs-tsm/configfs/configfsi"
	"github.com/google/go-configfs-tsm/configfs/faketsm"
	sevabi "github.com/google/go-sev-guest/abi"
	"github.com/google/go-sev-guest/proto/sevsnp"
	sevtest "github.com/google/go-sev-guest/testing"
	sevdata "github.com/google/go-sev-guest/verify/testdata"
	"github.com/google/go-sev-guest/verify/trust"
	tdxabi "github.com/google/go-tdx-guest/abi"
	"github.com/google/go-tdx-guest/proto/tdx"
	tdxdata "github.com/google/go-tdx-guest/testing/testdata"

	"github.com/paddock-sandbox/paddock"
)

func at(year int) clock {
	return func() time.Time { return time.Date(year, 8, 1, 0, 0, 0, 0, time.UTC) }
}

// sampleTDX is a quote of a machine of Google, with the bytes that it binds.
func sampleTDX(t testing.TB) (Evidence, [Size]byte) {
	t.Helper()
	parsed, err := tdxabi.QuoteToProto(tdxdata.RawQuote)
	if err != nil {
		t.Fatal(err)
	}
	q, ok := parsed.(*tdx.QuoteV4)
	if !ok {
		t.Fatal("the sample is of another version")
	}
	return Evidence{Provider: TDX, Report: bytes.Clone(tdxdata.RawQuote)}, [Size]byte(q.GetTdQuoteBody().GetReportData())
}

// sampleSEV is a quote of a real processor of AMD, with the bytes that it binds. Its machine can be debugged.
func sampleSEV(t testing.TB) (Evidence, [Size]byte) {
	t.Helper()
	report, err := sevabi.ReportToProto(sevdata.AttestationBytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := trust.AMDRootCertsProduct("Milan")
	if err := roots.FromKDSCertBytes(trust.AskArkMilanVcekBytes); err != nil {
		t.Fatal(err)
	}
	table := sevabi.CertsFromProto(&sevsnp.CertificateChain{VcekCert: sevdata.VcekBytes, AskCert: roots.ProductCerts.Ask.Raw, ArkCert: roots.ProductCerts.Ark.Raw})
	return Evidence{SEV, bytes.Clone(sevdata.AttestationBytes), table.Marshal()}, [Size]byte(report.GetReportData())
}

// A fakeAMD signs reports with keys of a test.
type fakeAMD struct {
	signer *sevtest.AmdSigner
	table  []byte
}

func newFakeAMD(t testing.TB) (fakeAMD, Verifier) {
	t.Helper()
	signer, err := sevtest.DefaultTestOnlyCertChain("Milan-B0", at(2025)())
	if err != nil {
		t.Fatal(err)
	}
	table, err := signer.CertTableBytes()
	if err != nil {
		t.Fatal(err)
	}
	roots := trust.AMDRootCertsProduct("Milan")
	roots.ProductCerts = &trust.ProductCerts{Ark: signer.Ark, Ask: signer.Ask, Asvk: signer.Asvk}
	return fakeAMD{signer, table}, Verifier{sev: sevRoots{"Milan": {roots}}, now: at(2026)}
}

// sign gives a quote of a machine with a policy.
func (a fakeAMD) sign(t testing.TB, data []byte, policy sevabi.SnpPolicy) Evidence {
	t.Helper()
	report := sevtest.CreateRawReport(&sevtest.TestReportOptions{ReportData: data})
	raw := report[:sevabi.ReportSize]
	binary.LittleEndian.PutUint64(raw[8:], sevabi.SnpPolicyToBytes(policy))
	r, s, err := a.signer.Sign(sevabi.SignedComponent(raw))
	if err == nil {
		err = sevabi.SetSignature(r, s, raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return Evidence{SEV, raw, a.table}
}

func TestAQuoteOfEachKindIsVerified(t *testing.T) {
	amd, verifier := newFakeAMD(t)
	data := [Size]byte{1, 2, 3}
	f, err := verifier.Verify(amd.sign(t, data[:], sevabi.SnpPolicy{SMT: true}), data)
	if err != nil || f.Machine != "SEV-SNP" || f.Measurement != strings.Repeat("0", 96) {
		t.Errorf("%+v, %v", f, err)
	}
	e, bound := sampleTDX(t)
	f, err = Verifier{now: at(2023)}.Verify(e, bound)
	if err != nil || f.Machine != "TDX" || len(f.Measurement) != 96 || len(f.Registers) != 4 {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestAQuoteThatProvesNothingIsRefusedWithTheReason(t *testing.T) {
	amd, verifier := newFakeAMD(t)
	data := [Size]byte{1, 2, 3}
	good := amd.sign(t, data[:], sevabi.SnpPolicy{SMT: true})
	tdxQuote, tdxBound := sampleTDX(t)
	sevQuote, sevBound := sampleSEV(t)
	changed := func(e Evidence, at int) Evidence {
		e.Report = bytes.Clone(e.Report)
		e.Report[at] ^= 1
		return e
	}
	intel := Verifier{now: at(2023)}
	for _, row := range []struct {
		name string
		v    Verifier
		e    Evidence
		data [Size]byte
		want string
	}{
		{"other bytes", verifier, good, [Size]byte{1, 2, 4}, "it binds 010203"},
		{"other bytes of TDX", intel, tdxQuote, [Size]byte{}, "it binds "},
		{"another root", Verifier{now: at(2026)}, good, data, "denied"},
		{"a machine that can be debugged", verifier, amd.sign(t, data[:], sevabi.SnpPolicy{SMT: true, Debug: true}), data, "can be debugged"},
		{"a real one that can be debugged", Verifier{now: at(2023)}, sevQuote, sevBound, "can be debugged"},
		{"a machine that can move", verifier, amd.sign(t, data[:], sevabi.SnpPolicy{SMT: true, MigrateMA: true}), data, "migration"},
		{"a changed measurement", verifier, changed(good, 0x90), data, "signature"},
		{"a changed measurement of a real one", Verifier{now: at(2023)}, changed(sevQuote, 0x90), sevBound, "signature"},
		{"a changed measurement of TDX", intel, changed(tdxQuote, 48+136), tdxBound, "denied"},
		{"a time before its certificates", Verifier{now: at(2001)}, tdxQuote, tdxBound, "denied"},
		{"a time behind its certificates", Verifier{now: at(2060)}, sevQuote, sevBound, "denied"},
		{"no certificate", verifier, Evidence{SEV, good.Report, nil}, data, "no certificate of the processor"},
		{"no report", verifier, Evidence{Provider: SEV}, data, "has not the size"},
		{"no quote", intel, Evidence{Provider: TDX}, data, "denied"},
		{"another provider", intel, Evidence{Provider: "arm_cca_guest"}, data, `of "arm_cca_guest": this version knows`},
		{"a huge one", intel, Evidence{Provider: TDX, Report: make([]byte, maxEvidence+1)}, data, "larger than any"},
	} {
		if f, err := row.v.Verify(row.e, row.data); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %+v, %v, want %q", row.name, f, err, row.want)
		}
	}
}

// Every byte that the hardware signs counts.
func TestNoSignedByteOfAQuoteCanBeAnother(t *testing.T) {
	amd, verifier := newFakeAMD(t)
	data := [Size]byte{1, 2, 3}
	good := amd.sign(t, data[:], sevabi.SnpPolicy{SMT: true})
	for i := range sevabi.SignedComponent(good.Report) {
		e := good
		e.Report = bytes.Clone(good.Report)
		e.Report[i] ^= 1
		if f, err := verifier.Verify(e, data); err == nil {
			t.Fatalf("byte %#x of the report can be another: %+v", i, f)
		}
	}
}

// machine is the interface of a confidential machine.
func machine(provider string, amd fakeAMD, t *testing.T) configfsi.Client {
	entry := faketsm.Report611(0)
	read := entry.ReadAttr
	entry.ReadAttr = func(e *faketsm.ReportEntry, attr string) ([]byte, error) {
		switch attr {
		case "provider":
			return []byte(provider + "\n"), nil
		case "outblob":
			return amd.sign(t, e.InAttrs["inblob"].Value, sevabi.SnpPolicy{SMT: true}).Report, nil
		case "auxblob":
			return amd.table, nil
		}
		return read(e, attr)
	}
	return &faketsm.Client{Subsystems: map[string]configfsi.Client{"report": entry}}
}

func TestAQuoteIsTakenFromTheMachine(t *testing.T) {
	amd, verifier := newFakeAMD(t)
	data := [Size]byte{9, 8, 7}
	e, err := TakeFrom(machine(SEV, amd, t), data)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := verifier.Verify(e, data); err != nil || f.Machine != "SEV-SNP" {
		t.Errorf("%+v, %v", f, err)
	}
	if e, err := TakeFrom(machine("other", amd, t), data); err != nil || e.Provider != "other" || e.Certificate != nil {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestAMachineWithoutTheInterfaceIsToldSo(t *testing.T) {
	if _, err := os.Stat(configfsi.TsmPrefix); runtime.GOOS == "linux" && err == nil {
		t.Skip("this machine is a confidential guest")
	}
	if _, err := Take([Size]byte{}); !errors.Is(err, paddock.Unsupported) || !strings.Contains(err.Error(), "no confidential guest") {
		t.Error(err)
	}
}

func FuzzAQuote(f *testing.F) {
	tdxQuote, tdxBound := sampleTDX(f)
	sevQuote, _ := sampleSEV(f)
	f.Add(true, tdxQuote.Report, []byte(nil))
	f.Add(false, sevQuote.Report, sevQuote.Certificate)
	f.Fuzz(func(t *testing.T, intel bool, report, certificate []byte) {
		e := Evidence{SEV, report, certificate}
		if intel {
			e.Provider = TDX
		}
		v := Verifier{now: at(2023)}
		if got, err := v.Verify(e, tdxBound); err == nil && hex.EncodeToString(tdxQuote.Report[48+136:48+136+48]) != got.Measurement {
			t.Errorf("%+v", got)
		}
	})
}
