package awk_test

import (
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command/awk"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func FuzzProgram(f *testing.F) {
	for _, s := range []string{"{print $1}", "BEGIN{while(1)x=x \"ab\"}", "function f(x){return f(x+1)}BEGIN{f(1)}", "{gsub(/(a*)*b/,\"&\\\\&\")}1", "BEGIN{printf \"%*.*f|%c|%s\\n\",3,2,1,65}", "{a[$1,NR][1]=$2;delete a}", "BEGIN{RS=\"\";FS=\"[ab]+\"}{$(NF+2)=1}1", "switch(x){case /a/:break;default:next}", "/a/,/b/{getline y<\"a\";print >>\"b\"}", "@/x/ ~ $0 in a ? -x^2 : !y++", "BEGIN{\"a\"|getline;print|&\"b\";print 1>2}", "BEGIN{FPAT=\"a|b\";FIELDWIDTHS=\"1 *\"}$1=$1", "for(k in a)if(!(k in b));else do;while(0)", "#\n\\\n;;{\n}"} {
		f.Add(s, "a b\nb c\n\n")
	}
	f.Fuzz(func(t *testing.T, program, stdin string) {
		began := time.Now()
		c := commandtest.Case{Args: []string{"awk", "--", program, "-", "a"}, Stdin: stdin, Files: map[string]string{"a": stdin + "\nmore\n"}}
		commandtest.RunWithin(t, awk.Commands(), c, budget.Limits{Steps: 2_000_000, Output: 16 << 20, Heap: 64 << 20, Record: 1 << 20, Disk: 16 << 20, Wall: 20 * time.Second})
		if d := time.Since(began); d > 30*time.Second {
			t.Errorf("it took %v", d)
		}
	})
}

func TestEverythingIsBounded(t *testing.T) {
	limits := budget.Limits{Steps: 5_000_000, Heap: 64 << 20, Record: 8 << 20, String: 16 << 20, Output: 16 << 20, Disk: 16 << 20, Calls: 500}
	for _, program := range []string{
		"BEGIN{while(1);}", "BEGIN{for(;;)i++}", "BEGIN{do x++;while(1)}", "function f(){return f()}BEGIN{f()}", "function f(x){return 1+f(x+1)}BEGIN{f(1)}", "BEGIN{x=\"a\";while(1)x=x x}", "BEGIN{while(1)a[i++]=i}", "BEGIN{while(1)a[i++][1]=i}", "BEGIN{while(1)print 1}", "BEGIN{while(1)print 1>\"out\"}",
		"BEGIN{x=sprintf(\"%1000000000s\",1)}", "BEGIN{printf \"%.999999999d\",1}", "BEGIN{$100000000000=1}", "BEGIN{NF=1e12}", "BEGIN{x=\"a\";for(;;)gsub(/a/,\"aa\",x)}", "BEGIN{for(;;)split(\"a b c\",x)}", "BEGIN{x=sprintf(\"%99999s\",\"\");for(;;)gsub(/(.*)*x/,\"\",x)}", "BEGIN{while((getline l<\"/dev/zero\")>0)n++}", "BEGIN{for(;;)$0=\"a b c\"}", "BEGIN{for(;;)substr(\"abc\",1)}", "BEGIN{x=\"^\";for(i=0;i<100000;i++)x=\"(\" x \")\";print \"a\"~x}", "function f(n){@g(n)}BEGIN{g=\"f\";f(1)}", "BEGIN{for(;;){x[1]=1;delete x}}", "BEGIN{for(;;)\"a\"~(\"b\" i++)}", "BEGIN{for(;;)close(\"x\" i++)}",
	} {
		began := time.Now()
		r := commandtest.RunWithin(t, awk.Commands(), commandtest.Case{Args: []string{"awk", program}, Stdin: "a\n"}, limits)
		if r.Status == 0 {
			t.Errorf("%q ends by itself", program)
		}
		if r.Stderr == "" {
			t.Errorf("%q: nothing is said", program)
		}
		if d := time.Since(began); d > 30*time.Second {
			t.Errorf("%q takes %v", program, d)
		}
	}
}

func TestNestingIsBounded(t *testing.T) {
	for _, pair := range [][2]string{{"(", ")"}, {"{", "}"}, {"!", ""}, {"-", ""}, {"$", ""}, {"if(1)", ""}, {"while(0)", ""}, {"a[", "]"}, {"f(", ")"}, {"1?1:", ""}, {"x=", ""}, {"1^", ""}} {
		program := "BEGIN{"
		if pair[0] != "{" && pair[0] != "if(1)" && pair[0] != "while(0)" {
			program += "y="
		}
		b := []byte(program)
		for range 200_000 {
			b = append(b, pair[0]...)
		}
		b = append(b, '1')
		for range 200_000 {
			b = append(b, pair[1]...)
		}
		b = append(b, '}')
		r := commandtest.RunWithin(t, awk.Commands(), commandtest.Case{Args: []string{"awk", "-f", "p"}, Files: map[string]string{"p": string(b)}}, budget.Limits{Heap: 256 << 20})
		if r.Status == 0 || r.Stderr == "" {
			t.Errorf("nested %q: status %d, %q", pair[0], r.Status, r.Stderr)
		}
	}
}
