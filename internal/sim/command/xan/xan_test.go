package xan_test

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/command/xan"
)

// TestXan's expectations are by hand; those of the real xan are in
// differential_test.go.
func TestXan(t *testing.T) {
	files := map[string]string{
		"p.csv":    people,
		"c.csv":    "city,country\nParis,FR\nRome,IT\nBern,CH\n",
		"q.csv":    "a,\"b b\",c\n\"x,y\",\"q\"\"r\",\"l1\nl2\"\n,,\n",
		"t.tsv":    "a\tb\n1\t2\n",
		"tags.csv": "id,tags\n1,a|b\n2,c\n3,\n",
		"dup.csv":  "k,v\na,1\nb,2\na,1\na,3\n",
		"bad.csv":  "a,b\n1,2,3\n",
		"o.json":   "[{\"a\":1,\"b\":\"x, y\"},{\"b\":null,\"c\":[1,2]}]\n",
		"l.jsonl":  "{\"a\":true}\n{\"a\":\"z\"}\n",
		"num.csv":  "n\n10\n9\nx\n2.5\n",
		"gap.csv":  "a,b\n1,\n,2\n3,\n",
		"empty":    "",
		"head.csv": "a,b\n",
	}
	var cases []commandtest.Case
	for _, c := range []struct {
		args   []string
		stdout string
	}{
		{[]string{"headers", "p.csv"}, "0   name\n1   age\n2   city\n"},
		{[]string{"h", "-j", "q.csv"}, "a\nb b\nc\n"},
		{[]string{"count", "p.csv"}, "4\n"}, {[]string{"count", "empty"}, "0\n"}, {[]string{"count", "q.csv"}, "2\n"}, {[]string{"count", "-n", "head.csv"}, "1\n"},
		{[]string{"select", "city,name", "p.csv"}, "city,name\nParis,ann\nRome,bob\nParis,cid\nOslo,dan\n"},
		{[]string{"select", "0:1", "p.csv"}, "name,age\nann,30\nbob,25\ncid,35\ndan,\n"},
		{[]string{"select", "!age", "p.csv"}, "name,city\nann,Paris\nbob,Rome\ncid,Paris\ndan,Oslo\n"},
		{[]string{"select", "--", "-1", "p.csv"}, "city\nParis\nRome\nParis\nOslo\n"},
		{[]string{"select", "\"b b\"", "q.csv"}, "b b\n\"q\"\"r\"\n\"\"\n"},
		{[]string{"select", "c*", "p.csv"}, "city\nParis\nRome\nParis\nOslo\n"},
		{[]string{"drop", "age,city", "p.csv"}, "name\nann\nbob\ncid\ndan\n"},
		{[]string{"filter", "age > 28", "p.csv"}, "name,age,city\nann,30,Paris\ncid,35,Paris\n"},
		{[]string{"filter", "city == 'Paris' && age < 33", "p.csv"}, "name,age,city\nann,30,Paris\n"},
		{[]string{"filter", "-v", "city eq \"Paris\"", "p.csv"}, "name,age,city\nbob,25,Rome\ndan,,Oslo\n"},
		{[]string{"filter", "age == ''", "p.csv"}, "name,age,city\ndan,,Oslo\n"},
		{[]string{"filter", "startswith(name, 'a') or name in ['bob', 'x']", "p.csv"}, "name,age,city\nann,30,Paris\nbob,25,Rome\n"},
		{[]string{"filter", "-l", "1", "contains(city, /^P/)", "p.csv"}, "name,age,city\nann,30,Paris\n"},
		{[]string{"filter", "not (name | len) == 3", "p.csv"}, "name,age,city\n"},
		{[]string{"filter", "col(\"b b\") ne ''", "q.csv"}, "a,b b,c\n\"x,y\",\"q\"\"r\",\"l1\nl2\"\n"},
		{[]string{"search", "ar", "p.csv"}, "name,age,city\nann,30,Paris\ncid,35,Paris\n"},
		{[]string{"search", "-s", "city", "-r", "^[PR]o", "p.csv"}, "name,age,city\nbob,25,Rome\n"},
		{[]string{"search", "-e", "-i", "ROME", "p.csv"}, "name,age,city\nbob,25,Rome\n"},
		{[]string{"search", "-v", "-s", "name", "a", "p.csv"}, "name,age,city\nbob,25,Rome\ncid,35,Paris\n"},
		{[]string{"search", "-E", "-s", "age", "p.csv"}, "name,age,city\ndan,,Oslo\n"},
		{[]string{"head", "-l", "1", "p.csv"}, "name,age,city\nann,30,Paris\n"},
		{[]string{"tail", "-l", "2", "p.csv"}, "name,age,city\ncid,35,Paris\ndan,,Oslo\n"},
		{[]string{"slice", "-s", "1", "-l", "2", "p.csv"}, "name,age,city\nbob,25,Rome\ncid,35,Paris\n"},
		{[]string{"slice", "-i", "0", "p.csv"}, "name,age,city\nann,30,Paris\n"},
		{[]string{"slice", "-e", "1", "p.csv"}, "name,age,city\nann,30,Paris\n"},
		{[]string{"slice", "-I", "0,3", "p.csv"}, "name,age,city\nann,30,Paris\ndan,,Oslo\n"},
		{[]string{"sort", "-s", "city", "p.csv"}, "name,age,city\ndan,,Oslo\nann,30,Paris\ncid,35,Paris\nbob,25,Rome\n"},
		{[]string{"sort", "-N", "-s", "n", "num.csv"}, "n\nx\n2.5\n9\n10\n"},
		{[]string{"sort", "-N", "-R", "-s", "age", "p.csv"}, "name,age,city\ncid,35,Paris\nann,30,Paris\nbob,25,Rome\ndan,,Oslo\n"},
		{[]string{"sort", "-u", "-s", "k", "dup.csv"}, "k,v\na,1\nb,2\n"},
		{[]string{"reverse", "c.csv"}, "city,country\nBern,CH\nRome,IT\nParis,FR\n"},
		{[]string{"dedup", "dup.csv"}, "k,v\na,1\nb,2\na,3\n"},
		{[]string{"dedup", "-s", "k", "dup.csv"}, "k,v\na,1\nb,2\n"},
		{[]string{"dedup", "-l", "-s", "k", "dup.csv"}, "k,v\nb,2\na,3\n"},
		{[]string{"dedup", "--keep-duplicates", "dup.csv"}, "k,v\na,1\na,1\n"},
		{[]string{"frequency", "-s", "city", "p.csv"}, "field,value,count\ncity,Paris,2\ncity,Oslo,1\ncity,Rome,1\n"},
		{[]string{"freq", "-l", "1", "-s", "city,age", "p.csv"}, "field,value,count\ncity,Paris,2\ncity,<rest>,2\nage,<empty>,1\nage,<rest>,3\n"},
		{[]string{"freq", "-N", "-s", "age", "p.csv"}, "field,value,count\nage,25,1\nage,30,1\nage,35,1\n"},
		{[]string{"join", "city", "p.csv", "city", "c.csv"}, "name,age,city,city,country\nann,30,Paris,Paris,FR\nbob,25,Rome,Rome,IT\ncid,35,Paris,Paris,FR\n"},
		{[]string{"join", "--left", "city", "p.csv", "c.csv"}, "name,age,city,city,country\nann,30,Paris,Paris,FR\nbob,25,Rome,Rome,IT\ncid,35,Paris,Paris,FR\ndan,,Oslo,,\n"},
		{[]string{"join", "--right", "city", "p.csv", "city", "c.csv"}, "name,age,city,city,country\nann,30,Paris,Paris,FR\nbob,25,Rome,Rome,IT\ncid,35,Paris,Paris,FR\n,,,Bern,CH\n"},
		{[]string{"join", "--anti", "city", "p.csv", "city", "c.csv"}, "name,age,city\ndan,,Oslo\n"},
		{[]string{"join", "--semi", "city", "c.csv", "city", "p.csv"}, "city,country\nParis,FR\nRome,IT\n"},
		{[]string{"join", "--cross", "t.tsv", "head.csv"}, "a,b,a,b\n"},
		{[]string{"groupby", "city", "count() as n, sum(age) as s, mean(age) as m", "p.csv"}, "city,n,s,m\nParis,2,65,32.5\nRome,1,25,25\nOslo,1,0,\n"},
		{[]string{"groupby", "k", "values(v, ';') as vs, max(v), cardinality(v) as c", "dup.csv"}, "k,vs,max(v),c\na,1;1;3,3,2\nb,2,2,1\n"},
		{[]string{"agg", "min(age), max(age), median(age), count(age), first(name), mode(city)", "p.csv"}, "min(age),max(age),median(age),count(age),first(name),mode(city)\n25,35,30,3,ann,Paris\n"},
		{[]string{"agg", "sum(age * 2) as d, stddev(age) as s", "p.csv"}, "d,s\n180,4.08248290463863\n"},
		{[]string{"map", "len(name) as l", "p.csv"}, "name,age,city,l\nann,30,Paris,3\nbob,25,Rome,3\ncid,35,Paris,3\ndan,,Oslo,3\n"},
		{[]string{"map", "a + b", "sum", "t.tsv"}, "a,b,sum\n1,2,3\n"},
		{[]string{"map", "-O", "upper(name) as name", "p.csv"}, "name,age,city\nANN,30,Paris\nBOB,25,Rome\nCID,35,Paris\nDAN,,Oslo\n"},
		{[]string{"map", "if(age >= 30, 'old', 'young') as c", "p.csv"}, "name,age,city,c\nann,30,Paris,old\nbob,25,Rome,young\ncid,35,Paris,old\ndan,,Oslo,young\n"},
		{[]string{"transform", "name", "upper", "p.csv"}, "name,age,city\nANN,30,Paris\nBOB,25,Rome\nCID,35,Paris\nDAN,,Oslo\n"},
		{[]string{"transform", "-r", "n2", "name", "_ ++ '!' | trim(_, 'a')", "p.csv"}, "n2,age,city\nnn!,30,Paris\nbob!,25,Rome\ncid!,35,Paris\ndan!,,Oslo\n"},
		{[]string{"rename", "x,y,z", "p.csv"}, "x,y,z\nann,30,Paris\nbob,25,Rome\ncid,35,Paris\ndan,,Oslo\n"},
		{[]string{"rename", "-p", "p_", "head.csv"}, "p_a,p_b\n"},
		{[]string{"enum", "-c", "i", "t.tsv"}, "i,a,b\n0,1,2\n"},
		{[]string{"explode", "tags", "tags.csv"}, "id,tags\n1,a\n1,b\n2,c\n3,\n"},
		{[]string{"explode", "tags", "--drop-empty", "-r", "tag", "tags.csv"}, "id,tag\n1,a\n1,b\n2,c\n"},
		{[]string{"implode", "v", "dup.csv"}, "k,v\na,1\nb,2\na,1|3\n"},
		{[]string{"implode", "--sep", ";", "-r", "vs", "v", "dup.csv"}, "k,vs\na,1\nb,2\na,1;3\n"},
		{[]string{"fill", "gap.csv"}, "a,b\n1,\n1,2\n3,2\n"},
		{[]string{"fill", "-v", "0", "gap.csv"}, "a,b\n1,0\n0,2\n3,0\n"},
		{[]string{"top", "age", "-l", "2", "p.csv"}, "name,age,city\ncid,35,Paris\nann,30,Paris\n"},
		{[]string{"top", "-R", "age", "-l", "1", "p.csv"}, "name,age,city\nbob,25,Rome\n"},
		{[]string{"cat", "rows", "c.csv", "c.csv"}, "city,country\nParis,FR\nRome,IT\nBern,CH\nParis,FR\nRome,IT\nBern,CH\n"},
		{[]string{"cat", "cols", "t.tsv", "num.csv", "-d", ","}, "a\tb,n\n1\t2,10\n"},
		{[]string{"cat", "cols", "-p", "head.csv", "num.csv"}, "a,b,n\n,,10\n,,9\n,,x\n,,2.5\n"},
		{[]string{"transpose", "c.csv"}, "city,Paris,Rome,Bern\ncountry,FR,IT,CH\n"},
		{[]string{"fixlengths", "bad.csv"}, "a,b,\n1,2,3\n"},
		{[]string{"fmt", "-t", "\\t", "p.csv"}, "name\tage\tcity\nann\t30\tParis\nbob\t25\tRome\ncid\t35\tParis\ndan\t\tOslo\n"},
		{[]string{"fmt", "--quote-always", "--crlf", "t.tsv"}, "\"a\",\"b\"\r\n\"1\",\"2\"\r\n"},
		{[]string{"fmt", "q.csv"}, "a,b b,c\n\"x,y\",\"q\"\"r\",\"l1\nl2\"\n,,\n"},
		{[]string{"to", "json", "t.tsv"}, "[\n  {\n    \"a\": 1,\n    \"b\": 2\n  }\n]\n"},
		{[]string{"to", "jsonl", "p.csv"}, "{\"name\":\"ann\",\"age\":30,\"city\":\"Paris\"}\n{\"name\":\"bob\",\"age\":25,\"city\":\"Rome\"}\n{\"name\":\"cid\",\"age\":35,\"city\":\"Paris\"}\n{\"name\":\"dan\",\"age\":null,\"city\":\"Oslo\"}\n"},
		{[]string{"to", "json", "head.csv"}, "[]\n"},
		{[]string{"to", "md", "t.tsv"}, "| a | b |\n| --- | --- |\n| 1 | 2 |\n"},
		{[]string{"from", "o.json"}, "a,b,c\n1,\"x, y\",\n,,\"[1,2]\"\n"},
		{[]string{"from", "-f", "ndjson", "l.jsonl"}, "a\ntrue\nz\n"},
		{[]string{"view", "t.tsv"}, "┌───┬───┐\n│ a │ b │\n├───┼───┤\n│ 1 │ 2 │\n└───┴───┘\n"},
		{[]string{"flatten", "t.tsv"}, "Row n°0\na 1\nb 2\n"},
		{[]string{"behead", "t.tsv"}, "1,2\n"},
		{[]string{"stats", "-s", "age", "p.csv"}, "field,count,count_empty,type,types,sum,mean,variance,stddev,min,max,lex_first,lex_last,min_length,max_length\nage,3,1,int,int|empty,90,30,16.666666666666668,4.08248290463863,25,35,25,35,0,2\n"},
		{[]string{"head", "-n", "-l", "1", "p.csv"}, "name,age,city\n"},
		{[]string{"select", "1", "-n", "t.tsv"}, "b\n2\n"},
		{[]string{"count"}, "1\n"},
	} {
		cases = append(cases, commandtest.Case{Args: append([]string{"xan"}, c.args...), Files: files, Stdin: "s\n1\n", Want: &commandtest.Result{Stdout: c.stdout}})
	}
	for _, c := range []struct {
		args []string
		look map[string]string
	}{
		{[]string{"select", "-e", "upper(name) as N, age + 1 as next", "p.csv", "-o", "out"}, map[string]string{"out": "N,next\nANN,31\nBOB,26\nCID,36\nDAN,\n"}},
		{[]string{"fmt", "-o", "o.tsv", "c.csv"}, map[string]string{"o.tsv": "city\tcountry\nParis\tFR\nRome\tIT\nBern\tCH\n"}},
		{[]string{"split", "-S", "2", "c.csv"}, map[string]string{"0.csv": "city,country\nParis,FR\nRome,IT\n", "2.csv": "city,country\nBern,CH\n"}},
		{[]string{"partition", "city", "p.csv"}, map[string]string{"Paris.csv": "name,age,city\nann,30,Paris\ncid,35,Paris\n", "Oslo.csv": "name,age,city\ndan,,Oslo\n"}},
	} {
		x := commandtest.Case{Args: append([]string{"xan"}, c.args...), Files: files, Want: &commandtest.Result{Files: c.look}}
		for name := range c.look {
			x.Look = append(x.Look, name)
		}
		cases = append(cases, x)
	}
	for _, c := range []struct {
		args   []string
		stderr string
	}{
		{[]string{"nosuch"}, "xan: unknown command \"nosuch\"; try 'xan --help'\n"},
		{[]string{"count", "nosuch"}, "xan: count: nosuch: No such file or directory\n"},
		{[]string{"count", "bad.csv"}, "xan: count: bad.csv: line 2: found record with 3 fields, but the previous record has 2 fields\n"},
		{[]string{"select", "zz", "p.csv"}, "xan: select: column \"zz\" does not exist; there are name, age, city\n"},
		{[]string{"select", "7", "p.csv"}, "xan: select: column 7 is out of range: there are 3\n"},
		{[]string{"filter", "age >", "p.csv"}, "xan: filter: expression \"age >\": it ends too early\n"},
		{[]string{"filter", "nosuch(age)", "p.csv"}, "xan: filter: expression \"nosuch(age)\": unknown function \"nosuch\"\n"},
		{[]string{"filter", "name + 1", "p.csv"}, "xan: filter: row 0: \"ann\" is no number\n"},
		{[]string{"filter", "1 / 0", "p.csv"}, "xan: filter: row 0: division by zero\n"},
		{[]string{"agg", "nosuch(x)", "p.csv"}, "xan: agg: expression \"nosuch(x)\": unknown aggregation \"nosuch\"\n"},
		{[]string{"head", "-l", "x", "p.csv"}, "xan: invalid number 'x'\n"},
		{[]string{"select"}, "xan: missing columns\n"},
		{[]string{"search", "-r", "(", "p.csv"}, "xan: search: error parsing regexp: missing closing ): `(`\n"},
		{[]string{"rename", "a", "p.csv"}, "xan: rename: there are 1 names for 3 columns\n"},
		{[]string{"sort", "-c", "-s", "city", "p.csv"}, ""},
	} {
		stdout := ""
		if c.args[0] == "filter" && (c.args[1] == "name + 1" || c.args[1] == "1 / 0") {
			stdout = "name,age,city\n"
		}
		cases = append(cases, commandtest.Case{Args: append([]string{"xan"}, c.args...), Files: files, Stderr: true, Want: &commandtest.Result{Stdout: stdout, Stderr: c.stderr, Status: 1}})
	}
	commandtest.Compare(t, xan.Commands(), cases)
}

// A seed gives the same rows each time, and as many as asked for.
func TestSample(t *testing.T) {
	run := func(seed string) string {
		return commandtest.Run(t, xan.Commands(), commandtest.Case{Args: []string{"xan", "sample", "--seed", seed, "2", "p.csv"}, Files: map[string]string{"p.csv": people}}).Stdout
	}
	if a, b := run("1"), run("1"); a != b || strings.Count(a, "\n") != 3 {
		t.Errorf("%q, then %q", a, b)
	}
	if run("1") == run("2") && run("1") == run("3") && run("1") == run("4") {
		t.Error("all seeds give the same")
	}
}
