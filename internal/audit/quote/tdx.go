package quote

import (
	"crypto/x509"
	_ "embed"
	"encoding/hex"
	"errors"

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
	body := q.GetTdQuoteBody()
	if err := binds(body.GetReportData(), data); err != nil {
		return Facts{}, err
	}
	if attributes := body.GetTdAttributes(); len(attributes) == 0 || attributes[0]&1 != 0 {
		return Facts{}, debuggable()
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
