package archive

import (
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/command/diff"
	"github.com/paddock-sandbox/paddock/internal/sim/command/grep"
	"github.com/paddock-sandbox/paddock/internal/sim/shell"
)

func TestCompressedFilesAreSearchedAsByGzips(t *testing.T) {
	files := map[string]string{
		"a": "hello\nworld\n", "a.gz": outcome(t, "printf 'hello\nworld\n' | gzip -n > x", "x"), "b.gz": outcome(t, "printf 'hello\nworld\nmore\n' | gzip -n > x", "x"), "c.bz2": outcome(t, "printf 'hello\n' | bzip2 > x", "x"), "d.xz": outcome(t, "printf 'hello\n' | xz > x", "x"),
	}
	var list []commandtest.Case
	for line := range strings.SplitSeq(`zgrep hello a.gz
zgrep -n o a.gz b.gz
zgrep -c nothere a.gz
zgrep -l more a.gz b.gz
zgrep -h o a.gz b.gz
zgrep -i HELLO a
zgrep -e hello -e more b.gz
zgrep x nofile
zgrep
zegrep h|w a.gz
zfgrep o a.gz
bzgrep hello c.bz2
xzgrep hello d.xz
zdiff a.gz b.gz
zcmp a.gz a
zcmp a.gz b.gz`, "\n") {
		list = append(list, commandtest.Case{Args: strings.Fields(line), Files: files})
	}
	programs := slices.Concat([]command.Command{{Name: "bash", Aliases: []string{"sh"}, Run: shell.Program}}, Commands(), grep.Commands(), diff.Commands())
	commandtest.Compare(t, programs, list)
}
