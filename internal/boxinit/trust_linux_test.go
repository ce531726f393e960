package boxinit

import (
	"bytes"
	"crypto/sha1"
	"encoding/pem"
	"testing"
)

func TestAKeystoreHoldsEachCertificateAndNothingElse(t *testing.T) {
	var text []byte
	for _, der := range []string{"one", "two"} {
		text = append(text, "# a comment\n"...)
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(der)})...)
	}
	text = append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("never")})...)
	store := keystore(text)
	want := []byte("\xfe\xed\xfe\xed\x00\x00\x00\x02\x00\x00\x00\x02")
	for i, der := range []string{"one", "two"} {
		want = append(want, "\x00\x00\x00\x02\x00\x09paddock-"...)
		want = append(want, byte('0'+i))
		want = append(want, "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05X.509\x00\x00\x00\x03"...)
		want = append(want, der...)
	}
	if !bytes.HasPrefix(store, want) || len(store) != len(want)+sha1.Size {
		t.Errorf("%q", store)
	}
}
