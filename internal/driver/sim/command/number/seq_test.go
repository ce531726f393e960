package number

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/commandtest"
)

func in(stdin, line string, more ...string) commandtest.Case {
	return commandtest.Case{Args: append(strings.Fields(line), more...), Stdin: stdin, Stderr: true}
}

func TestSeq(t *testing.T) {
	var cases []commandtest.Case
	for _, c := range []string{
		"5", "0", "-3", "2 5", "5 2", "1 2 10", "10 -2 1", "-5 5", "-5 -1 -9", "0.5", "1.5", "0.1 0.1 1", "1 .1 2", "1 0.25 2.5", "-1.5 .5 1.5", "1e2", "1e2 1e1 2e2", "0x10", "0x1p3", "1.5e1 20", "1.50 2", "1 .5 3",
		"-w 8 11", "-w -2 10", "-w 1 .5 3", "-w 0.5 10", "-w 1 100", "-w 10 -1 -10", "-w 1e1", "-w .9 1.10", "-w 9 .5 10.50", "-w 1 3.000", "-s, 3", "-s", "-s , 3", "--separator=: 1 4", "-f %g 3", "-f %03g 3", "-f %.2f 1 3", "-f %e 2",
		"-f %5.1f| 2", "-f %-6.2e| 3", "-f a%%b%gc%% 2", "-f %d 3", "-f x 3", "-f %g%g 3", "-f % 3", "-f %5 2", "-f %G 1e10 1e10 3e10", "-f %a 1 3", "-f %A .1 .1 .3", "-f %.3a 3", "-f %Lg 3", "-f %+g -1 1", "-f %#.0f 2", "-f %'f 2", "-f %020.3f 3",
		"-f %.20g 0.1 0.1 0.3", "-w -f %g 3", "", "1 2 3 4", "a", "1 a", "1 0 3", "nan", "1 nan", "1 -1 3", "1 -inf 3", "-x 3", "-- -2 2", "--equal-width 8 10", "-0 2", "0 -0", "1 0.0 3", "+5", "3 +1 5", "1 1 1", "1.0 3", "1 3.0", "1. 3",
		"99999999999999999998 100000000000000000000", "123456789012345678901234567890 123456789012345678901234567893", "4611686018427387903 4611686018427387906", "9223372036854775806 9223372036854775809", "1 2.5", "0.8 0.1 0.9", "0 0.000001 0.000003",
		"1e-3 1e-3 5e-3", "100000", "-s x 1 0", "1.1 .3 2", "0.1 0.1 2.0", "1 0.1 1.9", "1 .0001 1.0003", "3 -.5 1", "--sep=, 3", "--format=%g 2", "-f %f 1 0.1 1.5", "-ws, 8 10", "-s,, -w 9 10", "-f%g 2", "-ws x 9 10", "1_0", "0b11", "0o7", "1e-99999 0", "0x", "1e", "' 3'",
	} {
		cases = append(cases, in("", "seq "+c))
	}
	cases = append(cases, in("", "seq", " 3"), in("", "seq", "3 "), in("", "seq", ""), in("", "seq -f", "", "3"), in("", "seq -f", "a %g b", "3"), in("", "seq -s", "", "3"), in("", "seq -f", "% g", "2"), in("", "seq -s", "\\n", "2"))
	commandtest.Compare(t, Commands(), cases)
}
