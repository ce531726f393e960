package jq_test

import (
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/command/jq"
)

const document = `{"name":"x","n":3,"list":[3,1,2],"deep":{"a":{"b":[{"c":1},{"c":2}]}},"s":"héllo \"w\"\n","t":true,"nil":null,"f":1.5,"users":[{"id":1,"name":"ann","tags":["a","b"]},{"id":2,"name":"bob","tags":[]},{"id":3,"name":"cid","tags":["a"]}]}`

func files() map[string]string {
	return map[string]string{
		"doc.json":  document + "\n",
		"many":      "1 2\n[3]\n{\"a\":4} \"five\" null\ntrue",
		"bad":       "{\"a\":1}\n{\"a\":\n",
		"text":      "line one\nline two\n\nlast",
		"empty":     "",
		"prog.jq":   "# a program\n.list\n| add\n",
		"lib.jq":    "def twice: . * 2;\ndef two($a; f): $a + f;\n",
		"data.json": "[1,2]\n",
		"dir/":      "",
	}
}

// of makes cases of programs, over the document.
func of(options []string, programs ...string) []commandtest.Case {
	cases := make([]commandtest.Case, 0, len(programs))
	for _, p := range programs {
		args := append(append([]string{"jq"}, options...), p, "doc.json")
		cases = append(cases, commandtest.Case{Args: args, Files: files()})
	}
	return cases
}

// null makes cases of programs that read nothing.
func null(programs ...string) []commandtest.Case {
	cases := make([]commandtest.Case, 0, len(programs))
	for _, p := range programs {
		cases = append(cases, commandtest.Case{Args: []string{"jq", "-nc", p}, Files: files()})
	}
	return cases
}

func TestPathsAndPipes(t *testing.T) {
	cases := of([]string{"-c"}, ".", ".name", ".nosuch", ".n.x?", ".list[]", ".list[0]", ".list[-1]", ".list[1:]", ".list[:1]", ".list[-2:]", ".list[9]", ".deep.a.b[].c", ".deep|.a|.b|length", ".[\"name\"]", ".\"name\"", ".deep[\"a\"].b[0]", "..|numbers", "[..]|length", ".users[]|.name", ".users|map(.id)", "[.users[]|select(.id>1)|.name]", ".users[]|{name,id}", ".users[]|{(.name):.id}", "{a:1,\"b\":2,(\"c\"):3}", "{n,list}", "[.users[].tags[]]", ".users|map(select(.tags|length>0))", ".list|sort", ".users|sort_by(-.id)|map(.name)", ".users|group_by(.tags|length)|map(length)", ".users|min_by(.id).name,max_by(.id).name", ".list|min,max,add,length", ".list|reverse", ".list|unique", "keys", "keys_unsorted", ".deep|to_entries", ".deep|with_entries(.value|=length)", "has(\"name\"),has(\"zz\")", ".list|has(0),has(5)", ".list|contains([1])", ".name|ascii_downcase,ascii_upcase", ".s|length,utf8bytelength", ".list|index(2),indices(1)", "to_entries|map(.key)|join(\",\")", "[paths]|length", "[paths(type==\"number\")]", "[leaf_paths]|length", "path(.deep.a.b[0].c)", "getpath([\"deep\",\"a\"])", "[getpath([\"x\",\"y\"])]", "del(.users,.deep,.s)", "del(.users[0,2])|.users|length", "delpaths([[\"users\"],[\"deep\"]])|keys", "to_entries[0]", ".list as [$a,$b]|$a+$b", ".users[0] as {id:$i,name:$m}|[$i,$m]", ".users[0] as {$id,$name}|[$id,$name]", ".list as $x|reduce $x[] as $i (0;.+$i)", "foreach .list[] as $i (0;.+$i)", "foreach .list[] as $i (0;.+$i;[$i,.])", "limit(2;.list[])", "first(.list[])", "[.list[]|if .>1 then \"big\" elif .==1 then \"one\" else \"small\" end]", ".list[]|.+1", ".n+1,.n-1,.n*2,.n/2,.n%2", ".t and false,.t or false,(.t|not)", ".nosuch//\"default\"", ".nil//\"n\"", "(.list[]|select(.>5))//\"none\"", ".list==[3,1,2],.n!=3,.n<4", ".a=1|.a", ".n|=.+1|.n", ".n+=1|.n", ".list[0]=9|.list", ".users[].id|=.*10|[.users[].id]", ".users|=map(.id)|.users", ".deep.a.b[1].c//=5|.deep.a.b[1].c", ".x.y.z=1|.x", ".list+=[4]|.list", ".list-=[1]|.list", ".n*=2|.n,(.n/=2|.n)", "(.users[]|select(.id==2)|.name)=\"BOB\"|.users[1].name", "map_values(length?)", ".list|map(.*2)", ".list|map(select(.>1))", ".list|any(.>2),all(.>2)", ".users|map({(.name):.id})|add", ".list|@csv,@tsv,@sh,@json,@text,@html", "@base64 \"x\\(.name)y\"", ".name|@base64|.,@base64d", "@uri \"a b&\\(.s)\"", "\"v: \\(.n) \\(.list)\"", ".s|test(\"h.llo\"),test(\"HELLO\";\"i\")", ".name|startswith(\"x\"),endswith(\"y\"),ltrimstr(\"x\"),rtrimstr(\"x\")", ".users|map(.name)|join(\"-\")", "[.users[].name]|map(split(\"\"))", "\"a,b,c\"|split(\",\")", "\"a1b22\"|[match(\"[0-9]+\";\"g\").string]", "\"a1b22\"|[scan(\"[0-9]+\")]", "\"abc\"|sub(\"b\";\"X\"),gsub(\"[ac]\";\"Y\")", "\"ab\"|capture(\"(?<x>.)(?<y>.)\")", "[range(5)],[range(2;5)],[range(0;10;3)]", "[.list[]|tostring]", "\"12\"|tonumber", "[1,[2,[3]]]|flatten,flatten(1)", "input_filename", "type,(.[]|type)", "[splits(\", *\")]?", "try error(\"x\") catch .", "try error catch .name", "[.[]|numbers]", "[.[]|strings]", "[.[]|scalars]|length", "[.[]|arrays]|length", ".list|combinations?", "[[1,2],[3,4]]|[combinations]", "[[1,2],[3,4]]|transpose", "[limit(3;repeat(1))]", "[.n|while(.<50;.*2)],(.n|until(.>50;.*2))", "[recurse(if type==\"array\" then .[] else empty end)]|length", "env|type", "$ENV|type", "tojson|fromjson|.name", "ascii_downcase?", "walk(if type==\"number\" then .+1 else . end)|.list", "[.users[]|.tags|length]|add/length", "@json \"x\\(.list)\"", ".list|tojson", "splits(\"a\")?", "label $out|.list[]|if .==1 then break $out else . end", "def f(x):x*2;f(.n)", "def f($a;$b):$a+$b;f(1;2)", "def fac:if .<=1 then 1 else .*(.-1|fac) end;.n|fac", "[.list[],.n]|@csv", "to_entries|from_entries|keys", ".[]?|empty", "input?", "[.list|.[1:]|.[]]", ".list|first,last,nth(1)", "[.list|until(length<2;.[1:])]", ".list|inside([1,2,3])", "ltrimstr(1)?", "splits(1)?", "[inputs]", "$__loc__", "infinite,-infinite|isinfinite", "nan|isnan", "[1,2]-[2]", "{a:1}+{b:2}", "{a:{b:1}}*{a:{c:2}}", "\"x\"*3", "\"a,b\"/\",\"", "null+1", "[1]+null", "@text,@json|length")
	cases = append(cases, null("1,2", "[.[]?]", "1 as $x|2 as $y|[$x,$y,$x+$y]", "[1,2,3]|IN(2)", "[1,2]|implode?", "[65,66]|implode", "\"AB\"|explode", "now|type", "0|todate", "\"2015-03-05T23:51:47Z\"|fromdate,strptime(\"%Y-%m-%dT%H:%M:%SZ\")", "1425599507|gmtime|mktime", "1425599507|strftime(\"%A, %B %d, %Y\")", "[3.7,-3.7]|map(floor,ceil,round,fabs,sqrt?)", "pow(2;10),log2?", "[1,1.0,1.50,100000000000000000000,1e1000,0.1]", "[.1+.2,1/3,1e17,1e-5,3.0]", "{} | .a.b.c", "{}|.a[2]=1", "[]|.[3]=1", "null|length,not", "[true,false,null,1,\"a\",[],{}]|sort", "[{},[],\"a\",1,null,true,false]|sort_by(type)", "\"\\u00e9\\ud83d\\ude00\"", "\"a\\tb\\\\\"", "[limit(0;1,2)]", "[first(empty)]", "input_line_number", "splits(\"a\")?", "tojson", "[.]|tojson", "\"abc\"|.[1:2]", "\"x\"|ascii_downcase|@html", "[1,2,3]|.[1:]=[9]", "[1,2,3]|del(.[0,2])", "{\"a\":[1,2]}|[paths]", "tostream", "{\"a\":[1,{\"b\":2}]}|[tostream]", "fromstream({\"a\":[1]}|tostream)", "[1|truncate_stream([[0],1],[[1,0],2],[[1,0]],[[1]])]", "{\"a\":1}|has(\"a\"),(keys|.[0])", "[1,[2]]|getpath([1,0])", "try (1|error) catch .", "(1,2)|(3,4)", "[(1,2)+(10,20)]", "[(1,2)*(3,4)]", "{a:(1,2),b:(3,4)}", "\"\\(1,2)-\\(3,4)\"", "[range(0,1;3,4)]", "if (true,false) then 1 else 2 end", "[1,2,3]|bsearch(2),bsearch(5)", "ascii(65)?", "\"aXbxc\"|[splits(\"x\";\"i\")]", "[\"a\",1]|join(\"-\")", "\"1 2\"|[scan(\"\\\\d\")]|map(tonumber)", "@sh \"echo \\(\"it's\")\"", "[\"a b\",\"c\"]|@sh", "1e3,1.0e2,100e-2", "-1|-.", "[-1,- 1]", "1-1", "{\"a\":1}.a", "[1,2][0]", "\"abc\"|test(\"B\";\"ix\")", "\"aaa\"|[match(\"a\";\"g\").offset]", "{}|.[\"a\",\"b\"]=1", "[3,1]|sort|.[0]", "reduce empty as $x (0;.+1)", "def f:def g:3;g;f", "def f(g):[g,g];f(1,2)", "def f($x):$x|.+1;f(5)", "[.[]?,1]", "..", "[[1,2],[1]]|unique_by(length)", "[{\"a\":1,\"b\":2},{\"a\":1}]|group_by(.a)|length", "splits(1;2)?", "@json", "[1,2]|@text", "\"%41\"|@uri", "halt", "\"x\"|halt_error", "{\"a\":1}|halt_error(3)", "error(\"bad\")", "error(null)", "error({a:1})", "1|error", "{}|.[0]", "[]|.a", "\"x\"|.[]", "1+\"a\"", "{}-1", "[]|implode?", "\"a\"|tonumber", "break?", "1/0", "1%0", "{(1):2}", "[1]|join(1)?", "null|keys")...)
	for i := range cases {
		cases[i].Want = wanted(cases[i].Args)
	}
	commandtest.Compare(t, jq.Commands(), cases)
}

// wanted gives what is right where jq 1.6, which stands beside most of us, has
// it otherwise than jq 1.8: see the latter's NEWS and manual.
func wanted(args []string) *commandtest.Result {
	out := func(s string) *commandtest.Result { return &commandtest.Result{Stdout: s} }
	switch args[2] {
	case "map_values(length?)": // NEWS 1.7: |= empty removes
		return out("{\"name\":1,\"n\":3,\"list\":3,\"deep\":1,\"s\":10,\"nil\":0,\"f\":1.5,\"users\":3}\n")
	case "[1,1.0,1.50,100000000000000000000,1e1000,0.1]": // NEWS 1.7: literals are kept
		return out("[1,1.0,1.50,100000000000000000000,1E+1000,0.1]\n")
	case "[.1+.2,1/3,1e17,1e-5,3.0]":
		return out("[0.30000000000000004,0.3333333333333333,1E+17,0.00001,3.0]\n")
	case "1e3,1.0e2,100e-2":
		return out("1E+3\n1.0E+2\n1.00\n")
	case "[limit(0;1,2)]": // NEWS 1.7
		return out("[]\n")
	case "error(null)": // NEWS 1.7: it is an error
		return &commandtest.Result{Status: 5}
	case "1/0", "{(1):2}": // NEWS 1.7: an error of the run, no longer of the compiler
		return &commandtest.Result{Status: 5}
	case "[1]|join(1)?": // NEWS 1.8
		return out("")
	case ".s":
		if args[1] == "-ar" { // where 1.6 crashes
			return out("\"h\\u00e9llo \\\"w\\\"\\n\"\n")
		}
	case "bad": // NEWS 1.7: it is an error of input, status 2
		return &commandtest.Result{Stdout: "{\n  \"a\": 1\n}\n", Status: 2}
	}
	return nil
}

func TestOptionalAccess(t *testing.T) {
	// Only the last step of an access may fail, unless it stands in parentheses.
	var cases []commandtest.Case
	for input, programs := range map[string][]string{
		`{"a":1}`:             {"[.a.b?]", "try [.a.b.c?] catch .", "[(.a.b)?]", "[.a?.b?]", "[.a[0]?,.a[]?,.a[\"x\"]?,.a[1:2]?,.a??]", "[path(.a.b?)]", "[.a|.b?]"},
		"1":                   {"try [.a.b?] catch .", "[.a?.b]", "try [path(.a.b?)] catch .", "[path(.a?.b)]", "[.?]"},
		`[[1],null,[2]]`:      {"[.[][]?]", "[path(.[][]?)]", "[path((.[][])?)]", "del(.[][]?)", "[.[][0]?]", "[path(.[][0]?)]", "[path(.[][0:1]?)]", ".[][0]?|=9"},
		`[{"x":1},4,{"x":2}]`: {"[.[].x?]", "del(.[].x?)", "[path(.[].x?)]", "[.[]?.x?]", ".[].x?|=.+1", "[.[][\"x\",\"y\"]?]"},
		`[[1,2],"s",[3]]`:     {"[.[][1:]?]", "try [.[error(\"x\")]?] catch .", "try [.[error(\"x\"):]?] catch .", "try [.[]?|error(\"z\")] catch ."},
		`{"a":"abc"}`:         {"del(.a|ltrimstr(\"z\"))", "del(.a|rtrimstr(\"z\"))", "del(.a|tostring)", "[path(.a|ltrimstr(\"z\",\"y\"))]", "try del(.a|ltrimstr(\"a\")) catch ."},
		"[1,2,3]":             {"del(.[-0.5])", "del(.[-1.5])", "del(.[-0.1],.[-3.5])", "del(.[1.7])", ".[-1.5]=9", ".[1.7]=9"},
	} {
		for _, p := range programs {
			cases = append(cases, commandtest.Case{Args: []string{"jq", "-c", p}, Stdin: input})
		}
	}
	commandtest.Compare(t, jq.Commands(), cases)
}

func TestOptions(t *testing.T) {
	var cases []commandtest.Case
	for _, args := range [][]string{
		{".", "doc.json"}, {"-c", ".", "many"}, {"--tab", ".deep", "doc.json"}, {"--indent", "1", ".deep", "doc.json"}, {"--indent", "7", ".list", "doc.json"}, {"-S", ".", "doc.json"}, {"-Sc", ".", "doc.json"}, {"-r", ".s,.list", "doc.json"}, {"-j", ".name,.n", "doc.json"}, {"-a", ".s", "doc.json"}, {"-ar", ".s", "doc.json"}, {"-s", ".", "many"}, {"-sc", "length", "many"}, {"-n", "input", "many"}, {"-nc", "[inputs]", "many"}, {"-nc", "[., input]", "many"}, {"-R", ".", "text"}, {"-Rs", ".", "text"}, {"-Rn", "[inputs]", "text"}, {"-Rr", "ascii_upcase", "text"}, {"-e", ".t", "doc.json"}, {"-e", ".nil", "doc.json"}, {"-e", "false", "doc.json"}, {"-e", "empty", "doc.json"}, {"-c", "--stream", ".", "many"}, {"-c", "--stream", "select(length==2)", "doc.json"}, {"--arg", "x", "1", "-n", "$x"}, {"--argjson", "x", "{\"a\":1}", "-nc", "$x.a"}, {"--slurpfile", "x", "many", "-nc", "$x"}, {"--rawfile", "x", "text", "-n", "$x"}, {"-nc", "$ARGS", "--args", "a", "b"}, {"-nc", "$ARGS.positional", "--jsonargs", "1", "{}"}, {"-nc", "--arg", "a", "1", "$ARGS.named"}, {"-nc", "[1]"}, {"-f", "prog.jq", "doc.json"}, {"--from-file", "prog.jq", "doc.json"}, {"-L", ".", "-n", "import \"lib\" as l; 3|l::twice"}, {"-L.", "-n", "include \"lib\"; two(1; 2)"}, {"-L", ".", "-nc", "import \"data\" as $d; $d"}, {"-n", "import \"nosuch\" as l; 1"}, {".", "nosuch"}, {".", "many", "nosuch"}, {".", "bad"}, {"-c", ".", "empty"}, {".", "dir"}, {"-nr", "[1,\"a\"]|@csv"}, {"-n", "input_filename"}, {"-c", "--unbuffered", ".", "many"}, {"-cn", "reduce inputs as $x (0; .+1)", "many"}, {".a.", "doc.json"}, {"{", "doc.json"}, {"nosuch", "doc.json"}, {"$x", "doc.json"}, {".[", "doc.json"}, {"-n", "\"\\(1\""}, {"-n", "if 1 then 2"}, {"-n", "def f: 1; g"}, {"-n", "@nosuch \"x\""}, {"-n", "1 as x | x"}, {"-n", "try"}, {"-n", "reduce"}, {"-n", ". as [$a, {b: $c}] ?// $a | $a"}, {"-rn", "@text \"a\\tb\""}, {"-n", "\"a\" as $x | \"b\" as $y | $x + $y"},
	} {
		c := commandtest.Case{Args: append([]string{"jq"}, args...), Stdin: "{\"stdin\":1}\n", Files: files()}
		cases = append(cases, c)
	}
	for i := range cases {
		cases[i].Want = wanted(cases[i].Args)
	}
	commandtest.Compare(t, jq.Commands(), cases)
}

func TestMessages(t *testing.T) {
	// In the words of jq 1.7.1; what is cut is cut where it cuts.
	var cases []commandtest.Case
	for _, c := range []struct {
		program, said string
		status        int
	}{
		{"1+\"a\"", "jq: error (at <unknown>): number (1) and string (\"a\") cannot be added\n", 5},
		{"{}-1", "jq: error (at <unknown>): object ({}) and number (1) cannot be subtracted\n", 5},
		{"{}|.[0]", "jq: error (at <unknown>): Cannot index object with number\n", 5},
		{"[]|.a", "jq: error (at <unknown>): Cannot index array with string \"a\"\n", 5},
		{"1|.[]", "jq: error (at <unknown>): Cannot iterate over number (1)\n", 5},
		{"null|.[]", "jq: error (at <unknown>): Cannot iterate over null (null)\n", 5},
		{"1|.a.b?", "jq: error (at <unknown>): Cannot index number with string \"a\"\n", 5},
		{"\"abcdefghijkl\"-1", "jq: error (at <unknown>): string (\"abcdefghijkl\") and number (1) cannot be subtracted\n", 5},
		{"\"abcdefghijklm\"-1", "jq: error (at <unknown>): string (\"abcdefghij...) and number (1) cannot be subtracted\n", 5},
		{"[range(20)]|path(map(.))", "jq: error (at <unknown>): Invalid path expression with result [0,1,2,3,4,5,6,7,8,9,10,11...\n", 5},
		{"[1]|delpaths([[\"a\"]])", "jq: error (at <unknown>): Cannot delete string element of array\n", 5},
		{"{}|delpaths([[0]])", "jq: error (at <unknown>): Cannot delete number field of object\n", 5},
		{"null|keys", "jq: error (at <unknown>): null (null) has no keys\n", 5},
		{"\"a\"|tonumber", "jq: error (at <unknown>): string (\"a\") cannot be parsed as a number\n", 5},
		{"error(\"x\")", "jq: error (at <unknown>): x\n", 5},
		{"error({a:1})", "jq: error (at <unknown>) (not a string): {\"a\":1}\n", 5},
		{"1%0", "jq: error (at <unknown>): number (1) and number (0) cannot be divided (remainder) because the divisor is zero\n", 5},
		{"\"x\"|halt_error", "x", 5},
		{"{}|halt_error(3)", "{}\n", 3},
		{"nosuch(1)", "jq: error: nosuch/1 is not defined at <top-level>, line 1:\nnosuch(1)\njq: 1 compile error\n", 3},
		{"$nosuch", "jq: error: $nosuch is not defined at <top-level>, line 1:\n$nosuch\njq: 1 compile error\n", 3},
	} {
		cases = append(cases, commandtest.Case{Args: []string{"jq", "-n", c.program}, Stderr: true, Want: &commandtest.Result{Stderr: c.said, Status: c.status}})
	}
	commandtest.Compare(t, jq.Commands(), cases)
}

func TestFilesAreOneText(t *testing.T) {
	// What one file ends with and what the next begins with belong together.
	var cases []commandtest.Case
	add := func(files map[string]string, programs ...[]string) {
		for _, args := range programs {
			args = append(append([]string{"jq", "-c"}, args...), "a", "b", "c")
			cases = append(cases, commandtest.Case{Args: args, Files: files})
		}
	}
	read := [][]string{{"."}, {"-s", "."}, {"-n", "[inputs]"}, {"-n", "input"}, {"--stream", "."}}
	add(map[string]string{"a": "1", "b": "2\n3", "c": "4"}, read...)
	add(map[string]string{"a": "[1,", "b": "", "c": "{\"x\":2}]\n"}, read...)
	add(map[string]string{"a": "\"one", "b": " str", "c": "ing\" null"}, read...)
	add(map[string]string{"a": "tr", "b": "ue fal", "c": "se"}, read...)
	add(map[string]string{"a": "{\"x\":1}", "b": "{\"x\":2}", "c": "[3]\n"}, append(read, []string{"[.x?,input_filename]"})...)
	lines := [][]string{{"-R", "."}, {"-Rs", "."}, {"-Rn", "[inputs]"}, {"-R", "[.,input_filename]"}}
	add(map[string]string{"a": "no end", "b": " but here\nand", "c": " more\n"}, lines...)
	add(map[string]string{"a": "é", "b": "", "c": "\n\nlast"}, lines...)
	add(map[string]string{"a": "x\n", "b": "y\n", "c": "z\n"}, lines...)
	cases = append(cases,
		commandtest.Case{Args: []string{"jq", "-c", ".", "a", "none", "b"}, Files: map[string]string{"a": "[1,", "b": "2]"}},
		commandtest.Case{Args: []string{"jq", "-c", "-R", ".", "a", "-", "b"}, Files: map[string]string{"a": "[1,", "b": "2]"}, Stdin: "in\nand "},
		commandtest.Case{Args: []string{"jq", "-c", "[., input_filename]"}, Stdin: "1 [2]\n"},
		commandtest.Case{Args: []string{"jq", "-c", "[., input_filename]", "-"}, Stdin: "\"x\"\n"},
	)
	commandtest.Compare(t, jq.Commands(), cases)
}

func TestPathsOfSomeOfManyValues(t *testing.T) {
	// 1.6 has no skip, and finds no paths by nth.
	var cases []commandtest.Case
	for _, c := range []struct{ program, out string }{
		{"[path(nth(1; .a[]))]", "[[\"a\",1]]\n"},
		{"[path(nth(0,2; .a[]))]", "[[\"a\",0],[\"a\",2]]\n"},
		{"[path(nth(3; .a[]))]", "[]\n"},
		{"[nth(1.5; .a[]), nth(0.1; .a[])]", "[30,20]\n"},
		{"del(nth(1; .a[]), .b)", "{\"a\":[10,30]}\n"},
		{"nth(2; .a[]) = 0 | .a", "[10,20,0]\n"},
		{"[path(skip(1; .a[]))]", "[[\"a\",1],[\"a\",2]]\n"},
		{"[skip(0,2; .a[])]", "[10,20,30,30]\n"},
		{"[limit(1; skip(1; .a[]))]", "[20]\n"},
		{"[skip(1.5; .a[])]", "[20,30]\n"},
		{"try skip(-1; 1) catch .", "\"skip doesn't support negative count\"\n"},
		{"try skip(null; 1) catch .", "\"skip doesn't support negative count\"\n"},
		{"try skip(\"x\"; 1) catch .", "\"string (\\\"x\\\") and number (1) cannot be subtracted\"\n"},
	} {
		cases = append(cases, commandtest.Case{Args: []string{"jq", "-c", c.program}, Stdin: "{\"a\":[10,20,30],\"b\":1}", Want: &commandtest.Result{Stdout: c.out}})
	}
	commandtest.Compare(t, jq.Commands(), cases)
}

func TestPathsAndPatterns(t *testing.T) {
	// A path expression may name a value, and may not take it apart.
	var cases []commandtest.Case
	for _, p := range []string{
		"del(.a as $x | .b)", "[path(.a as $x | .b, .a)]", "try del(.a as [$x] | .b) catch \"no path\"", "try path(. as {a: $x} | .b) catch \"no path\"",
		"(.a as [$x] | .b = $x)", "try ((.a as {$b} | .b) = 1) catch \"no path\"", "[path(.a as [$x] ?// $x | .b)]", ".a as [$x, $y] | $y",
		"del(.n | ltrimstr(\"x\"))", "[path(.n | rtrimstr(1))]", ".n | ltrimstr(\"x\"), rtrimstr(\"x\")", "ltrimstr(\"x\") | .b", "[.a, .b, null | ltrimstr(2)]",
	} {
		cases = append(cases, commandtest.Case{Args: []string{"jq", "-c", p}, Stdin: "{\"a\":[1,2],\"b\":\"str\",\"n\":3}"})
	}
	commandtest.Compare(t, jq.Commands(), cases)
}
