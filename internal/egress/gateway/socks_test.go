package gateway

import (
	"bytes"
	"io"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

func FuzzSOCKS(f *testing.F) {
	for _, s := range []string{
		"\x05\x01\x00\x05\x01\x00\x03\x06a.test\x01\xbb", "\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50",
		"\x05\x02\x00\x02\x05\x02\x00\x03\x00\x00\x00", "\x04\x01\x00\x50\x7f\x00\x00\x01\x00", "\x05\x01\x02", "\x05\xff",
		"\x05\x01\x00\x05\x01\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x7f\x00\x00\x01\x00\x50after",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := bytes.NewReader(data)
		var out bytes.Buffer
		flow, err := readSOCKS(struct {
			io.Reader
			io.Writer
		}{in, &out})
		if err != nil {
			return
		}
		again, e := decide.ParseHost(flow.Host.String())
		if e != nil || again != flow.Host || flow.Port == 0 || flow.UDP {
			t.Fatalf("%q is %+v, %v", data, flow, e)
		}
		if out.Len() != 2 {
			t.Fatalf("%q was answered by %q", data, out.Bytes())
		}
		// No more bytes than the request were read.
		size := 2 + int(data[1])
		switch data[size+3] {
		case 1:
			size += 4 + 4 + 2
		case 3:
			size += 5 + int(data[size+4]) + 2
		case 4:
			size += 4 + 16 + 2
		}
		if in.Len() != len(data)-size {
			t.Fatalf("%q: %d bytes are left, want %d", data, in.Len(), len(data)-size)
		}
	})
}
