package quote

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	tdxabi "github.com/google/go-tdx-guest/abi"
	"github.com/google/go-tdx-guest/proto/tdx"
	tdxdata "github.com/google/go-tdx-guest/testing/testdata"

	"github.com/paddock-sandbox/paddock"
)

// Whoever has a genuine processor has its certificate for an enclave of his own, and with it a key that signs any report.
func TestAQuoteThatAnotherEnclaveSignedIsRefused(t *testing.T) {
	for name, change := range map[string]func(q *tdx.QuoteV4, enclave *tdx.EnclaveReport){
		"":                 func(*tdx.QuoteV4, *tdx.EnclaveReport) {},
		"not of Intel":     func(_ *tdx.QuoteV4, e *tdx.EnclaveReport) { e.MrSigner = bytes.Repeat([]byte{0x66}, 32) },
		"product 4242":     func(_ *tdx.QuoteV4, e *tdx.EnclaveReport) { e.IsvProdId = 4242 },
		"can be debugged":  func(_ *tdx.QuoteV4, e *tdx.EnclaveReport) { e.Attributes[0] |= 2 },
		"no signer":        func(_ *tdx.QuoteV4, e *tdx.EnclaveReport) { e.Attributes[0] &^= 0x10 },
		"not Intel's":      func(q *tdx.QuoteV4, _ *tdx.EnclaveReport) { q.TdQuoteBody.MrSignerSeam[3] = 7 },
		"module":           func(q *tdx.QuoteV4, _ *tdx.EnclaveReport) { q.TdQuoteBody.SeamAttributes[1] = 1 },
		"can be looked at": func(q *tdx.QuoteV4, _ *tdx.EnclaveReport) { q.TdQuoteBody.TdAttributes[0] = 4 },
	} {
		f := newForger(t)
		change(f.quote, f.enclave)
		var data [Size]byte
		copy(data[:], "of a record")
		f.quote.TdQuoteBody.ReportData = data[:]
		roots, report := f.sign(t)
		_, err := Verifier{tdx: roots, now: at(2026)}.Verify(Evidence{Provider: TDX, Report: report}, data)
		switch {
		case name == "" && err != nil:
			t.Errorf("a quote of Intel's enclave, which the others change: %v", err)
		case name != "" && (paddock.KindOf(err) != paddock.Denied || name != "can be looked at" && !strings.Contains(err.Error(), name)):
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A forger has the keys of a whole chain of certificates, which stands for Intel's with the key of one processor.
type forger struct {
	quote   *tdx.QuoteV4
	enclave *tdx.EnclaveReport
}

func newForger(t *testing.T) *forger {
	t.Helper()
	parsed, err := tdxabi.QuoteToProto(bytes.Clone(tdxdata.RawQuote))
	q, ok := parsed.(*tdx.QuoteV4)
	if err != nil || !ok {
		t.Fatal(err)
	}
	return &forger{quote: q, enclave: q.SignedData.CertificationData.QeReportCertificationData.QeReport}
}

// sign returns the root that vouches for the quote, and the quote.
func (f *forger) sign(t *testing.T) (*x509.CertPool, []byte) {
	t.Helper()
	certification := f.quote.SignedData.CertificationData
	data := certification.QeReportCertificationData
	root, chain, processor := forgedChain(t, data.PckCertificateChainData.PckCertChain)

	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := own.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	public := point[1:]
	head, err := tdxabi.HeaderToAbiBytes(f.quote.Header)
	if err != nil {
		t.Fatal(err)
	}
	body, err := tdxabi.TdQuoteBodyToAbiBytes(f.quote.TdQuoteBody)
	if err != nil {
		t.Fatal(err)
	}
	f.quote.SignedData.EcdsaAttestationKey = public
	f.quote.SignedData.Signature = signature(t, own, append(head, body...))
	sum := sha256.Sum256(append(bytes.Clone(public), data.QeAuthData.Data...))
	f.enclave.ReportData = append(sum[:], make([]byte, 32)...)
	report, err := tdxabi.EnclaveReportToAbiBytes(f.enclave)
	if err != nil {
		t.Fatal(err)
	}
	data.QeReportSignature = signature(t, processor, report)
	longer := len(chain) - len(data.PckCertificateChainData.PckCertChain)
	data.PckCertificateChainData.PckCertChain, data.PckCertificateChainData.Size = chain, uint32(len(chain))
	certification.Size = uint32(int(certification.Size) + longer)
	f.quote.SignedDataSize = uint32(int(f.quote.SignedDataSize) + longer)
	out, err := tdxabi.QuoteToAbiBytes(f.quote)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(root)
	return roots, out
}

func signature(t *testing.T, k *ecdsa.PrivateKey, b []byte) []byte {
	t.Helper()
	sum := sha256.Sum256(b)
	r, s, err := ecdsa.Sign(rand.Reader, k, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, 64)
	r.FillBytes(out[:32])
	s.FillBytes(out[32:])
	return out
}

// forgedChain returns certificates that say what those of a processor say, with keys of the test: the root, all as PEM,
// and the key of the processor.
func forgedChain(t *testing.T, like []byte) (*x509.Certificate, []byte, *ecdsa.PrivateKey) {
	t.Helper()
	sgx := "1.2.840.113741.1.13.1" // Intel's extension about a processor
	var old []*x509.Certificate
	for b, rest := pem.Decode(like); b != nil && len(old) < 3; b, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		old = append(old, c)
	}
	keys, certs, chain := make([]*ecdsa.PrivateKey, len(old)), make([]*x509.Certificate, len(old)), []byte(nil)
	for i := len(old) - 1; i >= 0; i-- {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		c := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 1)), SubjectKeyId: []byte{byte(i + 1)}, Subject: old[i].Subject, CRLDistributionPoints: old[i].CRLDistributionPoints,
			NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC),
			BasicConstraintsValid: true, IsCA: i > 0, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, SignatureAlgorithm: x509.ECDSAWithSHA256,
		}
		for _, e := range old[i].Extensions {
			if e.Id.String() == sgx {
				c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{Id: e.Id, Value: e.Value})
			}
		}
		parent, by := c, key
		if i+1 < len(old) {
			parent, by = certs[i+1], keys[i+1]
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
		if err != nil {
			t.Fatal(err)
		}
		if certs[i], err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
		keys[i] = key
	}
	for _, c := range certs {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return certs[len(certs)-1], chain, keys[0]
}
