package jq_test

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/command/jq"
)

const config = `# the configuration
name: app # its name
version: 1.20
list:
  # first
  - one
  - "two" # second
  - 'three'
nested:
  deep:
    value: 3 # a number
    other: yes
flow: {a: 1, b: [x, y]}
base: &base
  k1: v1
  k2: v2
derived:
  <<: *base
  k2: mine
text: |
  line 1
  line 2
empty:
`

func replaced(s, from, to string) string { return strings.Replace(s, from, to, 1) }

// TestYQ compares with what mikefarah's yq v4 does. It is not at hand to be the
// referee (a yq of distributions is another tool): the expectations are those
// of its manual (mikefarah.gitbook.io/yq, "Operators" and "Usage"), with the
// chapter named, or the same on other data.
func TestYQ(t *testing.T) {
	files := map[string]string{
		"c.yml":  config,
		"a.yaml": "a: 1\nb:\n  c: 2\n", "b.yaml": "b:\n  d: 3\ne: 4\n",
		"multi.yml":    "a: 1\n---\na: 2\n---\na: 3\n",
		"s.yaml":       "---\n# head\na: b\n",
		"p.json":       "{\"x\": [1, 2, {\"y\": null}], \"s\": \"t\"}\n",
		"people.csv":   "name,age,ok\nAnn,30,true\n\"B, b\",4.5,no\n",
		"t.tsv":        "a\tb\n1\t2\n",
		"x.xml":        "<?xml version=\"1.0\"?>\n<root id=\"1\">\n  <cat>x &amp; y</cat>\n  <cat>z</cat>\n  <e/>\n</root>\n",
		"t.toml":       "title = \"T\"\n[owner]\nname = \"Tom\" # c\nages = [1, 2]\n[[srv]]\nip = \"a\"\n[[srv]]\nip = \"b\"\n[a.b]\nc = { d = 1.5, e = true }\n",
		"p.properties": "# c\na.b = 1\na.c.0 = x\na.c.1 = y\nurl: http\\://h\n",
		"i.ini":        "top = 1\n[sec]\nk = v\n",
		"expr":         ".b.c\n",
		"pets.yaml":    "pets:\n  - cat\n  - dog\n",
		"bad.yaml":     "a: [1\nb: 2\n",
		"ann.yaml":     "- {name: bob, n: 2}\n- {name: ann, n: 3}\n- {name: cid, n: 2}\n",
		"fm.md":        "---\ntitle: x\n---\n# Text\nbody\n",
	}
	var cases []commandtest.Case
	for _, c := range []struct {
		args   []string
		stdout string
	}{
		{[]string{".", "a.yaml"}, "a: 1\nb:\n  c: 2\n"},
		{[]string{".", "c.yml"}, config},
		{[]string{".name", "c.yml"}, "app\n"},
		{[]string{".version", "c.yml"}, "1.20\n"},
		{[]string{".list[1]", "c.yml"}, "two\n"},
		{[]string{".list[]", "c.yml"}, "one\ntwo\nthree\n"},
		{[]string{".nested", "c.yml"}, "deep:\n  value: 3 # a number\n  other: yes\n"},
		{[]string{".nosuch", "c.yml"}, "null\n"},
		{[]string{".name.x", "c.yml"}, ""},                  // Traverse: a scalar has nothing
		{[]string{".derived.k1", "c.yml"}, "v1\n"},          // Anchor and Alias: merged keys are found
		{[]string{".derived.k2", "c.yml"}, "mine\n"},        // ... and overridden
		{[]string{".flow", "c.yml"}, "{a: 1, b: [x, y]}\n"}, // styles stay
		{[]string{".text", "c.yml"}, "line 1\nline 2\n\n"},
		{[]string{".name = \"new\"", "c.yml"}, replaced(config, "name: app # its name", "name: new # its name")}, // Assign: comments stay
		{[]string{".nested.deep.value += 1", "c.yml"}, replaced(config, "value: 3 # a number", "value: 4 # a number")},
		{[]string{".list[0] = \"uno\"", "c.yml"}, replaced(config, "- one", "- uno")},
		{[]string{".list[1] = \"dos\"", "c.yml"}, replaced(config, "\"two\" # second", "\"dos\" # second")},
		{[]string{"del(.list[1])", "c.yml"}, replaced(config, "  - \"two\" # second\n", "")},
		{[]string{"del(.nested)", "c.yml"}, replaced(config, "nested:\n  deep:\n    value: 3 # a number\n    other: yes\n", "")},
		{[]string{".flow.c = 2", "c.yml"}, replaced(config, "{a: 1, b: [x, y]}", "{a: 1, b: [x, y], c: 2}")},
		{[]string{".list += [\"four\"]", "c.yml"}, replaced(config, "  - 'three'\n", "  - 'three'\n  - four\n")},
		{[]string{".list += \"four\"", "c.yml"}, replaced(config, "  - 'three'\n", "  - 'three'\n  - four\n")}, // Add
		{[]string{".derived.k2 = \"x\"", "c.yml"}, replaced(config, "k2: mine", "k2: x")},
		{[]string{".empty.a.b = 1", "c.yml"}, replaced(config, "empty:\n", "empty:\n  a:\n    b: 1\n")},
		{[]string{"(.list[] | select(. == \"t*\")) |= upcase", "c.yml"}, replaced(replaced(config, "\"two\"", "\"TWO\""), "'three'", "'THREE'")}, // Equals: wildcards
		{[]string{".a", "multi.yml"}, "1\n---\n2\n---\n3\n"},
		{[]string{"-N", ".a", "multi.yml"}, "1\n2\n3\n"},
		{[]string{"select(di == 1)", "multi.yml"}, "a: 2\n"}, // Document Index
		{[]string{".a += 10", "multi.yml"}, "a: 11\n---\na: 12\n---\na: 13\n"},
		{[]string{"ea", "[.[]]", "multi.yml"}, "- 1\n- 2\n- 3\n"},
		{[]string{"ea", "select(fi == 0) * select(fi == 1)", "a.yaml", "b.yaml"}, "a: 1\nb:\n  c: 2\n  d: 3\ne: 4\n"}, // Multiply (Merge): Merge two files together
		{[]string{"eval-all", ". as $item ireduce ({}; . * $item)", "a.yaml", "b.yaml"}, "a: 1\nb:\n  c: 2\n  d: 3\ne: 4\n"},
		{[]string{". *= load(\"b.yaml\")", "a.yaml"}, "a: 1\nb:\n  c: 2\n  d: 3\ne: 4\n"}, // Load
		{[]string{".f = load_str(\"expr\")", "a.yaml"}, "a: 1\nb:\n  c: 2\nf: |\n  .b.c\n"},
		{[]string{"-n", "{\"a\": [1, 2]} *+ {\"a\": [3]}"}, "a:\n  - 1\n  - 2\n  - 3\n"}, // Multiply: append arrays
		{[]string{"-n", "{\"a\": [{\"x\": 1}]} *d {\"a\": [{\"y\": 2}]}"}, "a:\n  - x: 1\n    y: 2\n"},
		{[]string{"-n", "{\"a\": 1} *n {\"a\": 2, \"b\": 3}"}, "a: 1\nb: 3\n"},
		{[]string{"-n", "{\"a\": 1} *? {\"a\": 2, \"b\": 3}"}, "a: 2\n"},
		{[]string{"-n", "[1] * [2]"}, "- 2\n"},
		{[]string{"keys", "c.yml"}, "- name\n- version\n- list\n- nested\n- flow\n- base\n- derived\n- text\n- empty\n"}, // Keys: in their order
		{[]string{".list | length", "c.yml"}, "3\n"},
		{[]string{"sort_by(.n)", "ann.yaml"}, "- {name: bob, n: 2}\n- {name: cid, n: 2}\n- {name: ann, n: 3}\n"},
		{[]string{"map(.name)", "ann.yaml"}, "- bob\n- ann\n- cid\n"},
		{[]string{"map(select(.n == 2) | .name) | join(\", \")", "ann.yaml"}, "bob, cid\n"},
		{[]string{"group_by(.n) | map(length)", "ann.yaml"}, "- 2\n- 1\n"},
		{[]string{".[] | select(.name == \"a*\") | .n", "ann.yaml"}, "3\n"},
		{[]string{".[] | key", "ann.yaml"}, "0\n1\n2\n"},
		{[]string{".b | path", "a.yaml"}, "- b\n"},
		{[]string{".b.c | parent", "a.yaml"}, "c: 2\n"},
		{[]string{"(.. | select(tag == \"!!int\")) |= . + 1", "a.yaml"}, "a: 2\nb:\n  c: 3\n"}, // Recursive Descent
		{[]string{".b | tag, kind", "a.yaml"}, "!!map\nmap\n"},
		{[]string{"with(.b; .c = 5 | .z = \"y\")", "a.yaml"}, "a: 1\nb:\n  c: 5\n  z: y\n"}, // With
		{[]string{"to_entries | .[0]", "a.yaml"}, "key: a\nvalue: 1\n"},
		{[]string{"with_entries(.key |= \"x_\" + .)", "a.yaml"}, "x_a: 1\nx_b:\n  c: 2\n"},
		{[]string{"sort_keys(..)", "b.yaml"}, "b:\n  d: 3\ne: 4\n"},
		{[]string{"pick([\"b\"])", "a.yaml"}, "b:\n  c: 2\n"},
		{[]string{"omit([\"b\"])", "a.yaml"}, "a: 1\n"},
		{[]string{"has(\"a\"), has(\"zz\")", "a.yaml"}, "true\nfalse\n"},
		{[]string{".a style=\"double\"", "a.yaml"}, "a: \"1\"\nb:\n  c: 2\n"}, // Style
		{[]string{".. style=\"flow\"", "a.yaml"}, "{a: 1, b: {c: 2}}\n"},
		{[]string{".a line_comment=\"one\"", "a.yaml"}, "a: 1 # one\nb:\n  c: 2\n"}, // Comment Operators
		{[]string{".a head_comment=\"one\"", "a.yaml"}, "# one\na: 1\nb:\n  c: 2\n"},
		{[]string{"... comments=\"\"", "s.yaml"}, "---\na: b\n"},
		{[]string{".name | line_comment", "c.yml"}, "its name\n"},
		{[]string{".", "s.yaml"}, "---\n# head\na: b\n"},
		{[]string{".a = \"c\"", "s.yaml"}, "---\n# head\na: c\n"},
		{[]string{".a", "s.yaml"}, "b\n"},
		{[]string{"-n", ".a.b[1] = \"x\""}, "a:\n  b:\n    - null\n    - x\n"},
		{[]string{"-n", ".a = env(N) | .b = strenv(N)"}, "a: 12\nb: \"12\"\n"}, // Env Variable Operators
		{[]string{"-n", ".a = \"${N}x\" | .a |= envsubst"}, "a: 12x\n"},
		{[]string{"-n", "\"cat\" | sub(\"(a)\", \"<${1}>\")"}, "c<a>t\n"}, // String Operators
		{[]string{"-n", "\"a;b\" | split(\";\")"}, "- a\n- b\n"},
		{[]string{"-n", "[\"a\", \"b\"] | contains([\"b\"])"}, "true\n"},
		{[]string{"-n", "[3, 1, 3] | unique"}, "- 3\n- 1\n"},
		{[]string{"-n", "[1, [2, [3]]] | flatten"}, "- 1\n- 2\n- 3\n"},
		{[]string{"-n", "{\"a\": 1} | to_json(0)"}, "{\"a\":1}\n\n"},
		{[]string{"-n", "{\"a\": 1} | @json"}, "{\"a\":1}\n"},
		{[]string{"-n", "\"a: 1\" | from_yaml | .a"}, "1\n"},
		{[]string{"-n", "\"2021-01-01T10:00:00Z\" | format_datetime(\"Mon 2 Jan\")"}, "Fri 1 Jan\n"},
		{[]string{"-o", "json", ".", "a.yaml"}, "{\n  \"a\": 1,\n  \"b\": {\n    \"c\": 2\n  }\n}\n"}, // Working with JSON
		{[]string{"-o=json", "-I=0", ".", "a.yaml"}, "{\"a\":1,\"b\":{\"c\":2}}\n"},
		{[]string{"-oj", "-I0", ".list", "c.yml"}, "[\"one\",\"two\",\"three\"]\n"},
		{[]string{"-o", "json", ".name", "c.yml"}, "\"app\"\n"},
		{[]string{"-r", "-o", "json", ".name", "c.yml"}, "app\n"},
		{[]string{".", "p.json"}, "{\n  \"x\": [\n    1,\n    2,\n    {\n      \"y\": null\n    }\n  ],\n  \"s\": \"t\"\n}\n"},
		{[]string{"-p", "json", "-o", "yaml", ".", "p.json"}, "x:\n  - 1\n  - 2\n  - y: null\ns: t\n"},
		{[]string{"-P", "-p", "yaml", ".", "p.json"}, "x:\n  - 1\n  - 2\n  - y: null\ns: t\n"},
		{[]string{"-p", "csv", ".", "people.csv"}, "- name: Ann\n  age: 30\n  ok: true\n- name: B, b\n  age: 4.5\n  ok: no\n"}, // Working with CSV
		{[]string{"-p", "tsv", "-o", "json", "-I0", ".", "t.tsv"}, "[{\"a\":1,\"b\":2}]\n"},
		{[]string{"-o", "csv", ".", "ann.yaml"}, "name,n\nbob,2\nann,3\ncid,2\n"},
		{[]string{"-o", "tsv", "map([.name, .n])", "ann.yaml"}, "bob\t2\nann\t3\ncid\t2\n"},
		{[]string{"-o", "props", ".", "a.yaml"}, "a = 1\nb.c = 2\n"}, // Working with Properties
		{[]string{"-o", "props", ".list", "c.yml"}, "# first\n0 = one\n# second\n1 = two\n2 = three\n"},
		{[]string{"-p", "props", ".", "p.properties"}, "a:\n  b: 1\n  c:\n    - x\n    - y\nurl: http://h\n"},
		{[]string{"-p", "xml", ".", "x.xml"}, "+p_xml: version=\"1.0\"\nroot:\n  +@id: \"1\"\n  cat:\n    - x & y\n    - z\n  e: null\n"}, // Working with XML
		{[]string{"-o", "xml", ".", "a.yaml"}, "<a>1</a>\n<b>\n  <c>2</c>\n</b>\n"},
		{[]string{"-p", "xml", "-o", "xml", "del(.root.cat)", "x.xml"}, "<?xml version=\"1.0\"?>\n<root id=\"1\">\n  <e></e>\n</root>\n"},
		{[]string{"-p", "toml", "-o", "yaml", ".", "t.toml"}, "title: T\nowner:\n  name: Tom\n  ages:\n    - 1\n    - 2\nsrv:\n  - ip: a\n  - ip: b\na:\n  b:\n    c:\n      d: 1.5\n      e: true\n"}, // Working with TOML
		{[]string{".owner.name", "t.toml"}, "Tom\n"},
		{[]string{"-o", "toml", ".", "a.yaml"}, "a = 1\n\n[b]\nc = 2\n"},
		{[]string{"-o", "ini", ".", "i.ini"}, "top = 1\n\n[sec]\nk = v\n"},
		{[]string{"-o", "sh", ".a", "s.yaml"}, "b\n"},
		{[]string{"-o", "shell", ".", "a.yaml"}, "a=1\nb_c=2\n"}, // Working with Shell
		{[]string{"--from-file", "expr", "a.yaml"}, "2\n"},
		{[]string{"a.yaml"}, "a: 1\nb:\n  c: 2\n"},
		{[]string{"--expression", ".a", "a.yaml", "s.yaml"}, "1\n---\nb\n"},
		{[]string{"-f", "extract", ".title", "fm.md"}, "x\n"},
		{[]string{"-f", "process", ".title = \"y\"", "fm.md"}, "---\ntitle: y\n---\n# Text\nbody\n"},
		{[]string{".a.b-c", "-"}, "in\n"},
		{[]string{".a.\"b-c\""}, "in\n"},
		{[]string{"-0", ".list[]", "c.yml"}, "one\x00two\x00three\x00"},
		{[]string{"-n", "[1, 2, 3] | .[1:]"}, "- 2\n- 3\n"},
		{[]string{"-n", "\"x\" // \"y\", null // \"y\""}, "x\ny\n"}, // Alternative
		{[]string{"-n", "{\"a\": {\"b\": 1}} | .. | select(tag == \"!!int\")"}, "1\n"},
		{[]string{"-n", "[\"a\", \"b\"] | to_entries | .[1].key"}, "1\n"},
		{[]string{"-n", "{\"b\": 2, \"a\": 1} | sort_keys(.)"}, "a: 1\nb: 2\n"},
		{[]string{"-n", "[true, false] | any, all"}, "true\nfalse\n"},
		{[]string{"-n", "[{\"a\": 1}, {\"a\": 2}] | pivot"}, "a:\n  - 1\n  - 2\n"},
		{[]string{"-n", "\"abc\" | test(\"b\")"}, "true\n"},
		{[]string{".b | to_yaml", "a.yaml"}, "c: 2\n\n"},
		{[]string{"explode(.) | .derived", "c.yml"}, "k1: v1\nk2: mine\n"}, // Anchor and Alias Operators
		{[]string{"filename, fi", "a.yaml"}, "a.yaml\n0\n"},
		{[]string{".[] | splitDoc", "ann.yaml"}, "{name: bob, n: 2}\n---\n{name: ann, n: 3}\n---\n{name: cid, n: 2}\n"},
	} {
		cases = append(cases, commandtest.Case{Args: append([]string{"yq"}, c.args...), Files: files, Stdin: "a:\n  b-c: in\n", Env: []string{"N=12"}, Stderr: true, Want: &commandtest.Result{Stdout: c.stdout}})
	}
	fails := func(stderr string, status int, args ...string) {
		cases = append(cases, commandtest.Case{Args: append([]string{"yq"}, args...), Files: files, Stderr: true, Want: &commandtest.Result{Stderr: stderr, Status: status}})
	}
	fails("Error: open nosuch: no such file or directory\n", 1, ".", "nosuch")
	fails("Error: bad file 'bad.yaml': yaml: line 1: did not find expected ',' or ']'\n", 1, ".", "bad.yaml")
	fails("Error: no matches found\n", 1, "-e", "select(false)", "a.yaml")
	fails("Error: value for env variable 'NO' not provided in env()\n", 1, "-n", "env(NO)")
	fails("Error: cannot index array with 'name' (strconv.ParseInt: parsing \"name\": invalid syntax)\n", 1, ".name", "ann.yaml")
	fails("Error: unknown format 'zz' please use [yaml|json|props|csv|tsv|xml|base64|uri|sh|shell|toml|ini]\n", 1, "-o", "zz", ".", "a.yaml")
	fails("Error: write inplace flag only applicable when giving an expression and at least one file\n", 1, "-i", ".a = 1")
	for _, c := range []struct {
		args []string
		file string
		text string
	}{
		{[]string{"-i", ".b.c = 9", "a.yaml"}, "a.yaml", "a: 1\nb:\n  c: 9\n"}, // Output: -i
		{[]string{"-i", ".name = \"z\"", "c.yml"}, "c.yml", replaced(config, "name: app", "name: z")},
		{[]string{"-i", ".s = \"u\"", "p.json"}, "p.json", "{\n  \"x\": [\n    1,\n    2,\n    {\n      \"y\": null\n    }\n  ],\n  \"s\": \"u\"\n}\n"},
		{[]string{"-s", ".name", ".[]", "ann.yaml"}, "bob.yml", "{name: bob, n: 2}\n"}, // Split into multiple files
		{[]string{"-s", "$index", ".[]", "ann.yaml"}, "2.yml", "{name: cid, n: 2}\n"},
	} {
		cases = append(cases, commandtest.Case{Args: append([]string{"yq"}, c.args...), Files: files, Look: []string{c.file}, Want: &commandtest.Result{Files: map[string]string{c.file: c.text}}})
	}
	commandtest.Compare(t, jq.Commands(), cases)
}
