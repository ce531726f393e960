package number

import (
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func TestExpr(t *testing.T) {
	var cases []commandtest.Case
	for _, c := range []string{
		"1 + 2", "2 * 3 + 4", "2 + 3 * 4", "( 2 + 3 ) * 4", "7 / 2", "-7 / 2", "-7 % 2", "7 % -2", "1 - 5", "5 / 0", "5 % 0", "a + 1", "1 +", "+ 1", "+ +", "", "1 2", "( 1", "( 1 2", ")", "1 )", "abc : a", "abc : abc", "abc : b", "abc : .*", "abc : \\(.\\)", "abc : .\\(b\\)", "abc : x\\(b\\)", "abc : \\(x\\)*", "héllo : h.", "length héllo", "length abc", "length", "substr hello 2 3", "substr hello 0 3", "substr hello 2 99", "substr hello x 1", "substr héllo 2 2", "substr hello -1 3", "substr abc 2",
		"index hello l", "index hello xyz", "index héllo l", "match abc a.", "match abc \\(.\\)", "1 < 2", "2 < 10", "a < b", "10 < 9", "10 < a", "1 = 1", "1 == 1", "01 = 1", "a = a", "1 != 2", "2 >= 2", "2 <= 1", "3 > 2", "0 | 5", "3 | 5", "a | b", "0 & 5", "3 & 5", "3 & 0", "0 | 0", "00 | 7", "-0 | 7", "0", "00", "-0", "5", "abc", "-- 1 + 1", "-- --", "--", "9999999999999999999 + 1", "99999999999999999999 * 99999999999999999999", "-99999999999999999999 / 7",
		"1 + 2 - 3 + 4", "2 * 3 % 4", "1 = 2 = 0", "1 | 1 / 0", "0 & 1 / 0", "1 & 1 / 0", "( ( ( 1 ) ) )", "+ length", "+ ( = +", "length + length", "length length", "abc : a\\{1", "abc : [", "abc : \\(", "a : ^a", "a : *", "aaa : a\\+", "aaa : a\\|b", "ab : \\(a\\)\\(b\\)", "x : x$", "1 : 1 + 1", "--help x", "12x + 1", "1 - -1", "+5 + 1", "5 + +5", "a:b : .*:\\(.*\\)", "/usr/bin/x : .*/\\(.*\\)", "quote", "= = =", "1 > a", "- 1", "1 * ( 2 + 3", "0 : 0", "abc : \\(b\\)*", "1 = 1 & 2 = 2", "match", "index a", "substr",
	} {
		cases = append(cases, in("", "expr "+c))
	}
	cases = append(cases, in("", "expr", ""), in("", "expr", "", "|", ""), in("", "expr", "", "=", ""), in("", "expr", "", ":", ".*"), in("", "expr", " 1", "+", "1"), in("", "expr", "length", ""), in("", "expr", "a\nb", ":", ".*"), in("", "expr", "a b", ":", "a b"), in("", "expr", "index", "", "a"), in("", "expr", "substr", "\xff\xfeab", "2", "2"), in("", "expr", "", "&", "1"))
	commandtest.Compare(t, Commands(), cases)
}

func TestFactor(t *testing.T) {
	commandtest.Compare(t, Commands(), []commandtest.Case{
		in("", "factor 0 1 2 3 4 12 97 1001 65536 999999999989 1000000007"), in("", "factor 18446744073709551615 18446744073709551557 4611686014132420609 9223372036854775807"), in("", "factor 18446744073709551616"), in("", "factor 340282366920938463463374607431768211456 100000000000000000000000000000000"), in("", "factor x 12"), in("", "factor -5"), in("", "factor -- -5"), in("", "factor 1.5"), in("", "factor +7"), in("", "factor 007"), in("", "factor", ""), in("", "factor", " 6"),
		in("12 35\n 77\n\nx 9\n", "factor"), in("", "factor"), in("", "factor -x"), in("", "factor 1000000016000000063 10000000000000000000000000000057"), in("", "factor 1237940039285380274899124223"), in("99999999999999999999 12", "factor"),
	})
}

func TestNumfmt(t *testing.T) {
	var cases []commandtest.Case
	for _, c := range []string{
		"1", "1000", "--to=si 1000", "--to=si 1500", "--to=iec 1024", "--to=iec 1500", "--to=iec-i 1048576", "--to=si 999", "--to=si 999999", "--to=si 9999", "--to=si 99999", "--to=iec 1023", "--to=iec 1047552", "--from=si 1K", "--from=iec 1K", "--from=iec-i 1Ki", "--from=auto 1K 1Ki 2M 2Mi", "--from=iec 1.5K", "--from=si 1.5M", "1K", "--from=si 1Ki", "--from=iec-i 1K", "--from=si 1x", "abc", "1.5", "-5", "--to=si -- -1500", "--from=si --to=iec 1M",
		"--round=up --to=si 1234", "--round=down --to=si 1999", "--round=nearest --to=si 1250", "--round=nearest --to=si 1249", "--round=towards-zero --to=si -- -1999", "--round=from-zero --to=si -- -1001", "--suffix=B --to=si 1500", "--suffix=B 5B", "--suffix=B --from=si 5KB", "--padding=10 5", "--padding=-10 5", "--padding=0 5", "--padding=x 5", "--padding=3 12345", "--format=%f 5", "--format=%.2f 5.678", "--format=%10f 5", "--format=%-10f 5", "--format=%010f 5", "--format=%'f 50000", "--format=a%fb 5", "--format=%%%f%% 5", "--format=%d 5", "--format=% 5", "--format=x 5", "--format=%f%f 5",
		"--format=%.f 5.5", "--format=%.3f --to=si 1234567", "--format=%.1f --to=iec 1048576", "--format=%06.1f 2.25", "--format=%5.2f| 3", "--from-unit=512 4", "--to-unit=1024 4096", "--from-unit=1K 4", "--from-unit=1Ki 4", "--to-unit=x 4", "--to-unit=0 4", "--to-unit=3 10", "--invalid=fail x 5", "--invalid=warn x 5", "--invalid=ignore x 5", "--invalid=abort x 5", "--invalid=y 5", "--grouping 12345", "--grouping --to=si 1", "--grouping --format=%f 1", "--to=none 5", "--to=auto 5", "--from=foo 5", "--round=x 5",
		"99999999999999999999", "999999999999999999", "1000000000000000000", "--to=si 99999999999999999999", "--to=si 999999999999999999999999999", "--to=si 9999999999999999999999999999", "1.", ".5", "1.5.5", "1e5", "+5", "--to=si 0", "--to=si 0.5", "--to=iec 0.04", "1.000", "--from=auto 1.5Gi", "--to=si 1000000000000000000000000", "--debug 5", "--debug --to=si 5", "-x", "--to=iec 1234567890", "--to=si --format=%8.1f 1234", "--to=iec --padding=8 1024 2048000", "--field=x 5", "--field=0 5", "--header=0 5", "--from=iec --to=si 1K 2K", "--to=si --suffix=foo 70000", "--from=none 1K", "--to=iec --round=nearest 1126", "--to=iec --round=nearest 1127",
	} {
		cases = append(cases, in("", "numfmt "+c))
	}
	table := "name 1000 2000000\n  x   5000   70\n y\t12345678\t9\n\nlast 1 2"
	for _, o := range []string{"--field=2 --to=si", "--field=2,3 --to=iec", "--field=2- --to=si", "--field=- --invalid=ignore --to=si", "--field=-2 --invalid=warn --to=si", "--field=3 --invalid=fail --to=si", "--field=2 --header --to=si", "--header=2 --field=2 --to=si", "--field=2 --padding=8 --to=si", "-d, --to=si", "--field=2 --invalid=fail --format=%.1f --to=si", "--field=2 --invalid=fail --to=si -d \\t"} {
		cases = append(cases, in(table, "numfmt "+o))
	}
	cases = append(cases, in("1000,2000,x\n3000,,\n", "numfmt -d, --field=1,2 --to=si --invalid=warn"), in("1000\n2000", "numfmt --to=si"), in("   1500\n 20\n", "numfmt --to=si"), in("1000\x002000\x00", "numfmt -z --to=si"), in("", "numfmt"), in("1 K\n", "numfmt -d, --from=si"), in("5\t6\n", "numfmt --field=2 --to=si -d", "\t"), in("1\n", "numfmt -d ab"), in("", "numfmt --to=si", " 1500"), in("", "numfmt", ""), in("", "numfmt --format", "% f", "5"), in("", "numfmt --format", "%- 5f", "5"))
	commandtest.Compare(t, Commands(), cases)
}
