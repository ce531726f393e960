package boxinit

import (
	"crypto/sha1" //nolint:gosec // required by the format; nothing relies on it
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf16"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// trustMax bounds a file of certificates, in bytes. A system's file has a quarter of a
// megabyte.
const trustMax = 8 << 20

// extend mounts a file over an existing one. It is made from a file of the box: the
// existing file with additions, or a keystore of the certificates in another file.
func extend(root *os.File, m Mount) error {
	from := m.Target
	if m.Kind == MountKeys {
		from = m.Source
	}
	content, err := readFile(root, from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if m.Kind == MountKeys {
		return replace(root, m, keystore(content))
	}
	if len(content) > 0 && content[len(content)-1] != '\n' {
		content = append(content, '\n')
	}
	return replace(root, m, append(content, m.Source...))
}

// readFile reads a file of the tree that is being built, and follows no link.
func readFile(root *os.File, name string) ([]byte, error) {
	at, err := sys.OpenPath(root, strings.Trim(name, "/"), true)
	if err != nil {
		return nil, refusedLink(name, err)
	}
	defer at.Close()
	f, err := sys.Reopen(at)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, trustMax+1))
	if err == nil && len(data) > trustMax {
		err = fmt.Errorf("%s is larger than %d MiB: %w", name, trustMax>>20, paddock.Unsupported)
	}
	return data, err
}

// keystore returns the certificates of a PEM file as a Java keystore (JKS, which every
// release reads), with the usual password of such files.
func keystore(text []byte) []byte {
	var entries []byte
	count := uint32(0)
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		entries = binary.BigEndian.AppendUint32(entries, 2) // a trusted certificate
		entries = appendText(entries, fmt.Sprintf("paddock-%d", count))
		entries = binary.BigEndian.AppendUint64(entries, 0) // creation time unknown
		entries = appendText(entries, "X.509")
		entries = binary.BigEndian.AppendUint32(entries, uint32(len(block.Bytes)))
		entries = append(entries, block.Bytes...)
		count++
	}
	store := binary.BigEndian.AppendUint32(nil, 0xfeedfeed)
	store = binary.BigEndian.AppendUint32(store, 2) // version
	store = binary.BigEndian.AppendUint32(store, count)
	store = append(store, entries...)
	sum := sha1.New() //nolint:gosec // see above
	for _, c := range utf16.Encode([]rune("changeit")) {
		sum.Write([]byte{byte(c >> 8), byte(c)})
	}
	sum.Write([]byte("Mighty Aphrodite"))
	sum.Write(store)
	return sum.Sum(store)
}

func appendText(data []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(data, uint16(len(s))), s...)
}
