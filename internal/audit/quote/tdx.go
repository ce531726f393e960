package quote

import (
	"bytes"
	"crypto/x509"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/google/go-tdx-guest/abi"
	"github.com/google/go-tdx-guest/proto/tdx"
	"github.com/google/go-tdx-guest/validate"
	"github.com/google/go-tdx-guest/verify"
)

// intel is the root certificate of Intel for SGX and TDX, as the library has it. The library complains if it has to use
// its own copy.
//
//go:embed intel.pem
var intel []byte

// tdxRoots are roots of Intel. Nil is intel.
type tdxRoots = *x509.CertPool

func (v Verifier) verifyTDX(e Evidence, data [Size]byte) (Facts, error) {
	parsed, err := abi.QuoteToProto(e.Report)
	if err != nil {
		return Facts{}, denied(err)
	}
	q, ok := parsed.(*tdx.QuoteV4)
	if !ok {
		return Facts{}, denied(errors.New("it is no quote of version 4"))
	}
	roots := v.tdx
	if roots == nil {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(intel) {
			return Facts{}, denied(errors.New("there is no root of Intel"))
		}
	}
	if err := verify.TdxQuote(q, &verify.Options{Now: v.now.time(), TrustedRoots: roots}); err != nil {
		return Facts{}, denied(err)
	}
	if err := quotedByIntel(q); err != nil {
		return Facts{}, denied(err)
	}
	body := q.GetTdQuoteBody()
	if err := binds(body.GetReportData(), data); err != nil {
		return Facts{}, err
	}
	if attributes := body.GetTdAttributes(); len(attributes) == 0 || attributes[0] != 0 {
		return Facts{}, debuggable() // each bit of this byte is a way to look into the machine
	}
	if err := validate.TdxQuote(q, &validate.Options{TdQuoteBodyOptions: validate.TdQuoteBodyOptions{ReportData: data[:]}}); err != nil {
		return Facts{}, denied(err)
	}
	f := Facts{Machine: "TDX", Measurement: hex.EncodeToString(body.GetMrTd())}
	for _, r := range body.GetRtmrs() {
		f.Registers = append(f.Registers, hex.EncodeToString(r))
	}
	return f, nil
}

// What Intel publishes as the identity of its enclave that signs quotes of TDX, and of its module for TDX. Without this,
// whoever has a genuine processor could sign quotes with an enclave of his own.
const (
	enclaveSigner  = "dc9e2a7c6f948f17474e34a7fc43ed030f7c1563f1babddf6340c82e0e54a8c5"
	enclaveProduct = 2
	enclaveMode    = 0x11 // initialised, with the key that certifies; every other attribute is clear, debugging too
	enclaveEither  = 0x04 // 64 bits or not
)

// quotedByIntel checks the identities of what signed a quote and of what made the report in it. The library compares
// them only with an answer of Intel's server.
func quotedByIntel(q *tdx.QuoteV4) error {
	enclave := q.GetSignedData().GetCertificationData().GetQeReportCertificationData().GetQeReport()
	if got := hex.EncodeToString(enclave.GetMrSigner()); got != enclaveSigner {
		return fmt.Errorf("the enclave that signed it is of %s, not of Intel", got)
	}
	if got := enclave.GetIsvProdId(); got != enclaveProduct {
		return fmt.Errorf("the enclave that signed it is Intel's product %d, not the one for quotes of TDX", got)
	}
	if a := enclave.GetAttributes(); len(a) < 8 || binary.LittleEndian.Uint64(a)&^enclaveEither != enclaveMode {
		return fmt.Errorf("the enclave that signed it has the attributes %x: it can be debugged, or is no signer of quotes", a)
	}
	body := q.GetTdQuoteBody()
	if !zero(body.GetMrSignerSeam()) || !zero(body.GetSeamAttributes()) {
		return errors.New("the module that made the report is not Intel's")
	}
	return nil
}

func zero(b []byte) bool { return len(b) > 0 && bytes.Count(b, []byte{0}) == len(b) }
