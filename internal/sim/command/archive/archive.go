// Package archive has the tools that pack and compress files. Members never
// leave the directory that they are unpacked in, whatever an archive says, and
// unpacked bytes count against a limit.
package archive

import "github.com/paddock-sandbox/paddock/internal/sim/command"

// Commands lists the tools of this package.
func Commands() []command.Command {
	return []command.Command{
		{Name: "bzip2", Aliases: []string{"bunzip2", "bzcat"}, Run: runPress},
		{Name: "cpio", Run: runCPIO},
		{Name: "gzip", Aliases: []string{"gunzip", "zcat"}, Run: runPress},
		{Name: "tar", Run: runTar},
		{Name: "unzip", Run: runUnzip},
		{Name: "xz", Aliases: []string{"unxz", "xzcat", "lzma", "unlzma", "lzcat"}, Run: runPress},
		{Name: "zgrep", Aliases: []string{"zegrep", "zfgrep", "zcmp", "zdiff", "zless", "zmore", "bzgrep", "bzdiff", "bzcmp", "bzless", "xzgrep", "xzdiff", "xzcmp", "xzless", "zstdgrep"}, Run: scripted},
		{Name: "zip", Run: runZip},
		{Name: "zstd", Aliases: []string{"unzstd", "zstdcat", "zstdmt"}, Run: runPress},
	}
}
