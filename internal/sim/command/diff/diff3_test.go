package diff

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func TestThreeFilesAreComparedAsByGNUs(t *testing.T) {
	base := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
	files := map[string]string{
		"o": base, "mine": strings.Replace(base, "3\n", "three\n", 1), "yours": strings.Replace(base, "8\n", "eight\nand\n", 1), "both": strings.Replace(base, "3\n", "drei\n", 1),
		"same": strings.Replace(base, "3\n", "three\n", 1), "less": strings.Replace(base, "5\n6\n", "", 1), "dot": strings.Replace(base, "3\n", ".\n", 1), "end": base + "11\n", "empty": "", "nonl": "1\n2",
	}
	var list []commandtest.Case
	for _, names := range []string{"mine o yours", "mine o both", "same o mine", "o mine o", "less o mine", "mine o less", "mine o dot", "dot o both", "end o mine", "empty o mine", "o o o", "empty empty end", "less o both", "end o end", "nope o mine"} {
		for _, how := range []string{"", "-m", "-e", "-A", "-E", "-3", "-x", "-X", "-mE", "-m3", "-me", "-ei", "-T", "-m -L a -L b -L c"} {
			args := append(append([]string{"diff3"}, strings.Fields(how)...), strings.Fields(names)...)
			list = append(list, commandtest.Case{Args: args, Files: files})
		}
	}
	for line := range strings.SplitSeq(`diff3
diff3 o
diff3 o o o o
diff3 -e -m -x o o o
sdiff o mine
sdiff -s o yours
sdiff -l o mine
sdiff -w 40 o less
sdiff -i o o
sdiff o
sdiff o o o
sdiff -Bb o mine
sdiff o nope`, "\n") {
		list = append(list, commandtest.Case{Args: strings.Fields(line), Files: files})
	}
	commandtest.Compare(t, Commands(), list)
}
