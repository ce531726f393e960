package segment

import (
	"bytes"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/audit/chain"
)

func FuzzContinued(f *testing.F) {
	f.Add([]byte(`{"kind":"action","action":{"what":"record.continue","target":"a","reason":"1:00"}}` + "\n"))
	f.Add([]byte("{}\n\n[]\nnull\n"))
	f.Add(bytes.Repeat([]byte("x"), chain.MaxLine+2))
	f.Fuzz(func(t *testing.T, data []byte) {
		before, point, err := continued(bytes.NewReader(data))
		if (before != "" || point != "") && !bytes.Contains(data, []byte(continues)) && !bytes.Contains(data, []byte(`\`)) || err != nil && before+point != "" {
			t.Errorf("%q, %q, %v", before, point, err)
		}
	})
}
