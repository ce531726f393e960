package quote

import (
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-sev-guest/abi"
	"github.com/google/go-sev-guest/proto/sevsnp"
	"github.com/google/go-sev-guest/validate"
	"github.com/google/go-sev-guest/verify"
	"github.com/google/go-sev-guest/verify/trust"
)

// sevRoots are roots of AMD by product. Nil is those of the library.
type sevRoots map[string][]*trust.AMDRootCerts

// A clock tells the time. Nil is the system's.
type clock func() time.Time

func (c clock) time() time.Time {
	if c == nil {
		return time.Now()
	}
	return c()
}

// readable returns what is wrong with a table about which the library would complain on standard output.
func readable(table *abi.CertTable) error {
	_, noChip := table.GetByGUIDString(abi.VcekGUID)
	_, noCloud := table.GetByGUIDString(abi.VlekGUID)
	if noChip != nil && noCloud != nil {
		return errors.New("its host gives no certificate of the processor, neither VCEK nor VLEK")
	}
	if root, err := table.GetByGUIDString(abi.ArkGUID); err == nil && len(root) > 0 {
		if _, err := trust.ParseCert(root); err != nil {
			return fmt.Errorf("the root in its table of certificates: %w", err)
		}
	}
	return nil
}

func (v Verifier) verifySEV(e Evidence, data [Size]byte) (Facts, error) {
	if len(e.Report) != abi.ReportSize {
		return Facts{}, denied(errors.New("it has not the size of a report"))
	}
	report, err := abi.ReportToProto(e.Report)
	if err != nil {
		return Facts{}, denied(err)
	}
	var table abi.CertTable
	if err := table.Unmarshal(e.Certificate); err != nil {
		return Facts{}, denied(err)
	}
	if err := readable(&table); err != nil {
		return Facts{}, denied(err)
	}
	a := &sevsnp.Attestation{Report: report, CertificateChain: table.Proto()}
	if err := verify.SnpAttestation(a, &verify.Options{DisableCertFetching: true, Now: v.now.time(), TrustedRoots: v.sev}); err != nil {
		return Facts{}, denied(err)
	}
	if err := binds(report.GetReportData(), data); err != nil {
		return Facts{}, err
	}
	policy, err := abi.ParseSnpPolicy(report.GetPolicy())
	if err != nil {
		return Facts{}, denied(err)
	}
	if policy.Debug {
		return Facts{}, debuggable()
	}
	// The certificate is that of this processor, at this level of its firmware.
	if err := validate.SnpAttestation(a, &validate.Options{ReportData: data[:], GuestPolicy: abi.SnpPolicy{SMT: true}}); err != nil {
		return Facts{}, denied(err)
	}
	return Facts{Machine: "SEV-SNP", Measurement: hex.EncodeToString(report.GetMeasurement())}, nil
}
