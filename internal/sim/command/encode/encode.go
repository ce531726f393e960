// Package encode has the tools that convert bytes: base64 and similar
// encodings, checksums, dumps and character sets.
package encode

import (
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// Commands lists the tools of this package.
func Commands() []command.Command {
	return []command.Command{
		{Name: "base32", Aliases: []string{"base64", "basenc"}, Run: runBase},
		{Name: "cksum", Aliases: []string{"sum", "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum"}, Run: runSum},
		{Name: "crc32", Run: runCRC32},
		{Name: "od", Run: runOd},
		{Name: "xxd", Run: runXxd},
		{Name: "hexdump", Aliases: []string{"hd"}, Run: runHexdump},
		{Name: "strings", Run: runStrings},
		{Name: "iconv", Run: runIconv},
		{Name: "uuencode", Run: runUuencode},
		{Name: "uudecode", Run: runUudecode},
		{Name: "dos2unix", Aliases: []string{"unix2dos", "mac2unix", "unix2mac"}, Run: runDos},
		{Name: "html-to-markdown", Run: runMarkdown},
	}
}

// reason gives the words for an error.
func reason(err error) string { return vfs.Message(err) }
