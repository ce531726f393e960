package jq

import "strings"

// definition gives the source of a function that is written in jq itself.
func definition(sig string) string {
	switch sig {
	case "map/1":
		return "def map(f): [.[] | f];"
	case "map_values/1":
		return "def map_values(f): .[] |= f;"
	case "recurse/1":
		return "def recurse(f): def r: ., (f | r); r;"
	case "recurse/2":
		return "def recurse(f; cond): def r: ., (f | select(cond) | r); r;"
	case "recurse_down/0":
		return "def recurse_down: recurse;"
	case "values/0":
		return "def values: select(. != null);"
	case "nulls/0":
		return "def nulls: select(. == null);"
	case "booleans/0":
		return `def booleans: select(type == "boolean");`
	case "numbers/0":
		return `def numbers: select(type == "number");`
	case "strings/0":
		return `def strings: select(type == "string");`
	case "arrays/0":
		return `def arrays: select(type == "array");`
	case "objects/0":
		return `def objects: select(type == "object");`
	case "iterables/0":
		return `def iterables: select(type | . == "array" or . == "object");`
	case "scalars/0":
		return `def scalars: select(type | . != "array" and . != "object");`
	case "sort_by/1":
		return `def sort_by(f): _sorted_by("sort"; f);`
	case "group_by/1":
		return `def group_by(f): _sorted_by("group"; f);`
	case "unique_by/1":
		return `def unique_by(f): _sorted_by("unique"; f);`
	case "min_by/1":
		return `def min_by(f): _sorted_by("min"; f);`
	case "max_by/1":
		return `def max_by(f): _sorted_by("max"; f);`
	case "del/1":
		return "def del(f): delpaths([path(f)]);"
	case "paths/0":
		return "def paths: path(..) | select(length > 0);"
	case "paths/1":
		return "def paths(f): path(.. | select(f)) | select(length > 0);"
	case "leaf_paths/0":
		return "def leaf_paths: paths(scalars);"
	case "pick/1":
		return "def pick(f): . as $v | reduce path(f) as $p (null; setpath($p; $v | getpath($p)));"
	case "from_entries/0":
		return `def from_entries: reduce .[] as $x ({};
			. + {($x | if type == "object" then (if has("k") then .k elif has("key") then .key elif has("name") then .name elif has("Name") then .Name elif has("Key") then .Key elif has("K") then .K else null end)
				else .key end
				| if type == "string" then . elif type == "null" then "null" elif type == "boolean" or type == "number" then tojson else . end):
				($x | if has("value") then .value elif has("v") then .v elif has("Value") then .Value elif has("V") then .V else null end)});`
	case "with_entries/1":
		return "def with_entries(f): to_entries | map(f) | from_entries;"
	case "first/0":
		return "def first: .[0];"
	case "last/0":
		return "def last: .[-1];"
	case "last/1":
		return "def last(f): reduce f as $x ([]; [$x]) | .[];"
	case "nth/1":
		return "def nth($n): .[$n];"
	case "nth/2":
		return `def nth($n; f): if $n < 0 then error("nth doesn't support negative indices") else first(skip(-(-$n | floor); f)) end;`
	case "in/1":
		return "def in(xs): . as $x | xs | has($x);"
	case "inside/1":
		return "def inside(xs): . as $x | xs | contains($x);"
	case "combinations/0":
		return "def combinations: if length == 0 then [] else .[0][] as $x | (.[1:] | combinations) as $w | [$x] + $w end;"
	case "combinations/1":
		return "def combinations(n): . as $dot | [range(n)] | map($dot) | combinations;"
	case "walk/1":
		return `def walk(f): def w: if type == "object" then map_values(w) elif type == "array" then map(w) else . end | f; w;`
	case "any/0":
		return "def any: any(.[]; .);"
	case "all/0":
		return "def all: all(.[]; .);"
	case "any/1":
		return "def any(f): any(.[]; f);"
	case "all/1":
		return "def all(f): all(.[]; f);"
	case "flatten/0":
		return "def flatten: flatten(1e9);"
	case "index/1":
		return "def index($i): indices($i) | .[0];"
	case "rindex/1":
		return "def rindex($i): indices($i) | .[-1:][0];"
	case "inputs/0":
		return `def inputs: def r: (try input catch (if . == "break" then {__stop: true} else error end)) as $x
			| if $x == {__stop: true} then empty else $x, r end; r;`
	case "halt_error/0":
		return "def halt_error: halt_error(5);"
	case "todate/0":
		return `def todate: strftime("%Y-%m-%dT%H:%M:%SZ");`
	case "fromdate/0":
		return "def fromdate: fromdateiso8601;"
	case "date/0":
		return "def date: todate;"
	case "fromdateiso8601/0":
		return `def fromdateiso8601: strptime("%Y-%m-%dT%H:%M:%SZ") | mktime;`
	case "todateiso8601/0":
		return "def todateiso8601: todate;"
	case "dateadd/2":
		return "def dateadd(u; n): . + n;"
	case "datesub/2":
		return "def datesub(u; n): . - n;"
	case "finites/0":
		return "def finites: select(isinfinite or isnan | not);"
	case "normals/0":
		return "def normals: select(isnormal);"
	case "tostream/0":
		return `def tostream: path(def r: (.[]? | r), .; r) as $p | getpath($p) | reduce path(.[]?) as $q ([$p, .]; [$p + $q]);`
	case "fromstream/1":
		return `def fromstream(f): {x: null, e: false} as $init
			| foreach f as $i ($init;
				if .e then $init else . end
				| if $i | length == 2
				then setpath(["e"]; $i[0] | length == 0) | setpath(["x"] + $i[0]; $i[1])
				else setpath(["e"]; $i[0] | length == 1) end;
				if .e then .x else empty end);`
	case "truncate_stream/1":
		return `def truncate_stream(stream): . as $n | null | stream | . as $input
			| if (.[0] | length) > $n then setpath([0]; .[0][$n:]) else empty end;`
	case "ascii/0":
		return "def ascii: [.] | implode;"
	case "transpose/0":
		return `def transpose: [range(0; map(length) | max // 0) as $i | [.[][$i]]];`
	case "IN/1":
		return "def IN(s): any(s == .; .);"
	case "IN/2":
		return "def IN(src; s): any(src == s; .);"
	case "INDEX/1":
		return "def INDEX(f): INDEX(.[]; f);"
	case "INDEX/2":
		return "def INDEX(stream; f): reduce stream as $row ({}; .[$row | f | tostring] |= $row);"
	case "JOIN/2":
		return "def JOIN($idx; idx_expr): [.[] | [., $idx[idx_expr]]];"
	case "JOIN/3":
		return "def JOIN($idx; stream; idx_expr): stream | [., $idx[idx_expr]];"
	case "JOIN/4":
		return "def JOIN($idx; stream; idx_expr; join_expr): stream | [., $idx[idx_expr]] | join_expr;"
	case "match/1":
		return `def match($val): ($val | type) as $vt
			| if $vt == "string" then match($val; null)
			elif $vt == "array" and ($val | length) > 1 then match($val[0]; $val[1])
			elif $vt == "array" and ($val | length) > 0 then match($val[0]; null)
			else error($vt + " not a string or array") end;`
	case "match/2":
		return "def match(re; flags): _match(re; flags; false) | .[];"
	case "test/1":
		return `def test($val): ($val | type) as $vt
			| if $vt == "string" then test($val; null)
			elif $vt == "array" and ($val | length) > 1 then test($val[0]; $val[1])
			elif $vt == "array" and ($val | length) > 0 then test($val[0]; null)
			else error($vt + " not a string or array") end;`
	case "test/2":
		return "def test(re; flags): _match(re; flags; true);"
	case "capture/1":
		return "def capture($val): match($val) | _capture;"
	case "capture/2":
		return "def capture(re; flags): match(re; flags) | _capture;"
	case "_capture/0":
		return "def _capture: [.captures[] | select(.name != null) | {key: .name, value: .string}] | from_entries;"
	case "scan/1":
		return "def scan($re): scan($re; null);"
	case "scan/2":
		return `def scan($re; $flags): match($re; "g" + $flags) | if (.captures | length) > 0 then [.captures[].string] else .string end;`
	case "split/2":
		return `def split($re; flags): . as $s
			| [foreach ((match($re; flags + "g") | [.offset, .length]), null) as $m
				([0, null]; if $m == null then [.[0], $s[.[0]:]] else [$m[0] + $m[1], $s[.[0]:$m[0]]] end; .[1])];`
	case "splits/1":
		return "def splits($re): split($re; null) | .[];"
	case "splits/2":
		return "def splits($re; flags): split($re; flags) | .[];"
	case "isvalid/1":
		return "def isvalid(f): try (f | true) catch false;"
	}
	return ""
}

// builtin finds a function that is written in jq.
func (m *machine) builtin(name string, arity int) *function {
	sig := signature(name, arity)
	if f, ok := m.builtins[sig]; ok {
		return f
	}
	src := ""
	if m.yq != nil {
		src = yqDefinition(sig)
	}
	if src == "" {
		src = definition(sig)
	}
	if src == "" || strings.HasPrefix(name, "_") && name != "_capture" {
		return nil
	}
	mod, err := parse(src, 500)
	if err != nil {
		panic("jq: " + sig + ": " + err.msg)
	}
	f := mod.defs[0]
	m.builtins[sig] = f
	r := &resolver{m: m, own: true}
	r.define(f, nil)
	return f
}
