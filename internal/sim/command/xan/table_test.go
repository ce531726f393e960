package xan_test

import "slices"

const people = "name,age,city\nann,30,Paris\nbob,25,Rome\ncid,35,Paris\ndan,,Oslo\n"

// fixtures are the files that a line may name.
func fixtures() map[string]string {
	return map[string]string{
		"p.csv":      people,
		"c.csv":      "city,country\nParis,FR\nRome,IT\nBern,CH\n",
		"upper.csv":  "town,zip\nPARIS,75\nrome,00\n",
		"q.csv":      "a,\"b b\",c\n\"x,y\",\"q\"\"r\",\"l1\nl2\"\n,,\n",
		"t.tsv":      "a\tb\n1\t2\n",
		"semi.ssv":   "a;b\n1;2\n",
		"pipe.psv":   "a|b\n1|2\n",
		"semi.csv":   "a;b\n1;2\n",
		"tags.csv":   "id,tags\n1,a|b\n2,c\n3,\n",
		"two.csv":    "id,xs,ys\n1,a|b,c|d\n2,e,f\n",
		"odd.csv":    "id,xs,ys\n1,a|b,c\n",
		"dup.csv":    "k,v\na,1\nb,2\na,1\na,3\n",
		"runs.csv":   "k,v\na,1\na,2\nb,3\nb,3\na,4\n",
		"bad.csv":    "a,b\n1,2,3\n",
		"short.csv":  "a,b,c\n1,2,3\n4\n5,6,7,8\n",
		"o.json":     "[{\"a\":1,\"b\":\"x, y\"},{\"b\":null,\"c\":[1,2]}]\n",
		"one.json":   "{\"a\":1,\"b\":\"x\"}\n",
		"deep.json":  "[{\"a\":{\"b\":1,\"c\":{\"d\":\"x\"}},\"e\":[1,\"z\"],\"f\":1.5,\"g\":false}]\n",
		"l.jsonl":    "{\"a\":true}\n{\"a\":\"z\"}\n",
		"l.ndjson":   "{\"a\":1,\"b\":2}\n{\"b\":3,\"a\":null}\n",
		"l.txt":      "one\ntwo, three\n",
		"t.md":       "| a | b |\n| --- | --- |\n| 1 | x |\n",
		"num.csv":    "n\n10\n9\nx\n2.5\n",
		"float.csv":  "x,y\n1.5,2\n-3,4.25\n1e3,0.1\n,7\n",
		"mixed.csv":  "i,f,s,b,z\n1,1.5,a,true,\n02,2,b,false,\n-3,.5,,true,\n",
		"gap.csv":    "a,b\n1,\n,2\n3,\n",
		"dates.csv":  "d,n\n2024-01-15,1\n2024-03-02,2\n2023-12-31,3\n",
		"text.csv":   "s\n  Hello World \nfoo-bar baz\nÉté à la mer\n",
		"dupcol.csv": "a,b,a\n1,2,3\n",
		"empty":      "",
		"head.csv":   "a,b\n",
		"bom.csv":    "\xef\xbb\xbfa,b\n1,2\n",
		"crlf.csv":   "a,b\r\n1,2\r\n3,4\r\n",
		"noeol.csv":  "a,b\n1,2",
		"blank.csv":  "a,b\n\n1,2\n\n",
		"lone.csv":   "a\n\"\"\nx\n",
		"quote.csv":  "a,b\nx\"y,\"z\"w\n",
		"d/":         "",
	}
}

// table lists the rows. The random verbs shuffle and sample are compared by property in xan_test.go.
func table() []row {
	return slices.Concat(reading(), choosing(), ordering(), aggregating(), joining(), changing(), converting(), expressions(), functions(), failing())
}

func lines(list ...string) []row {
	out := make([]row, len(list))
	for i, l := range list {
		out[i].line = l
	}
	return out
}

func reading() []row {
	return append(lines(
		"headers p.csv", "h -j q.csv", "headers empty", "headers -d ; semi.csv", "headers t.tsv", "headers semi.ssv", "headers pipe.psv",
		"headers bom.csv", "headers dupcol.csv",
		"count p.csv", "count empty", "count q.csv", "count -n head.csv", "count head.csv", "count noeol.csv", "count blank.csv", "count crlf.csv", "count lone.csv",
		"select a bom.csv", "select b crlf.csv", "select b noeol.csv", "fmt blank.csv", "fmt lone.csv", "fmt q.csv", "fmt crlf.csv", "fmt empty", "fmt head.csv",
		"fmt t.tsv", "fmt semi.ssv", "fmt pipe.psv", "fmt -d ; semi.csv", "fmt -d '\\t' t.tsv", "fmt -d , t.tsv", "fmt -t '\\t' p.csv", "fmt -t ; p.csv", "fmt -t ; semi.csv",
		"fmt --quote-always --crlf c.csv", "fmt --crlf c.csv", "fmt --quote-always lone.csv", "fmt short.csv",
		"behead p.csv", "behead q.csv", "behead empty",
		"fixlengths short.csv", "fixlengths bad.csv", "fixlengths -l 2 short.csv", "fixlengths -l 5 p.csv", "fixlengths empty",
		"transpose c.csv", "t c.csv", "transpose p.csv", "transpose head.csv", "transpose q.csv", "transpose short.csv",

		"flatten head.csv",
		"behead head.csv",
	),
		row{line: "count", stdin: "s\n1\n"}, row{line: "count -", stdin: "s\n1\n"}, row{line: "select a", stdin: "a,b\n1,2\n"}, row{line: "headers", stdin: "x,y\n"},
		row{line: "select name p.csv -o out.csv", look: []string{"out.csv"}}, row{line: "head -l 1 p.csv --output=x.ssv", look: []string{"x.ssv"}},
		row{line: "split -S 2 c.csv", look: []string{"0.csv", "2.csv", "1.csv"}}, row{line: "split -S 3 p.csv -O d", look: []string{"d/0.csv", "d/3.csv"}},
		row{line: "split -n -S 2 c.csv", look: []string{"0.csv", "2.csv"}},
		row{line: "partition city p.csv", look: []string{"Paris.csv", "Oslo.csv", "Rome.csv"}}, row{line: "partition --drop city p.csv", look: []string{"Paris.csv", "Rome.csv"}}, row{line: "partition -O d city p.csv", look: []string{"d/Paris.csv"}},
		row{line: "partition age p.csv", look: []string{"empty.csv", "30.csv"}},
		row{line: "partition nosuch p.csv", look: []string{"Paris.csv"}},
	)
}

func choosing() []row {
	return append(lines(
		"select city,name p.csv", "select 0:1 p.csv", "select '!age' p.csv", "select -- -1 p.csv", "select '\"b b\"' q.csv", "select 'c*' p.csv", "select '*e' p.csv", "select '*' p.csv", "select name:city p.csv", "select city:name p.csv", "select :age p.csv", "select age: p.csv", "select '!name,city' p.csv",
		"select name,name p.csv", "select '*,name' p.csv", "select a dupcol.csv", "select 'z*' p.csv", "select 2,0 p.csv", "select -n 1 p.csv", "select 1 -n t.tsv", "select -2: p.csv", "select '!0' p.csv", "select '!*' p.csv",
		"select -e 'name, age' p.csv", "select -e 'len(name)' p.csv", "select -e '1 + 2' c.csv", "select -e 'name as \"full name\"' p.csv",
		"drop age,city p.csv", "drop 0 p.csv", "drop '!name' p.csv",
		"filter 'city eq \"Paris\" && age < 33' p.csv", "filter -v 'city eq \"Paris\"' p.csv", "filter 'age eq \"\"' p.csv", "filter age p.csv", "filter '!age' p.csv", "filter 'not(age)' p.csv",
		"filter 'startswith(name, \"a\") or name in [\"bob\", \"x\"]' p.csv", "filter -l 1 'contains(city, /^P/)' p.csv", "filter 'name not in [\"bob\"]' p.csv", "filter 'col(\"b b\") ne \"\"' q.csv", "filter 'col(1)' q.csv", "filter true p.csv", "filter false p.csv", "filter null p.csv", "filter '\"\"' p.csv", "filter 0 p.csv", "filter 'index() == 1' p.csv", "filter -n 'col(0) eq \"ann\"' p.csv", "filter 'b eq \"true\"' mixed.csv",
		"search ar p.csv", "search -s city -r '^[PR]o' p.csv", "search -e -i ROME p.csv", "search -e Rome p.csv", "search -v -s name a p.csv", "search -E -s age p.csv", "search -N -s age p.csv", "search -E p.csv", "search -N p.csv", "search -i paris p.csv", "search -r 'A|B' -i p.csv", "search -l 1 a p.csv", "search -s 0 n p.csv", "search -n name p.csv", "search zzz p.csv", "search -r '\\d' p.csv", "search -v -i PARIS p.csv",
		"head -l 1 p.csv", "head p.csv", "head -n -l 1 p.csv", "head short.csv", "tail -l 2 p.csv", "tail p.csv", "tail -l 0 p.csv", "tail -n -l 1 p.csv",
		"slice -s 1 -l 2 p.csv", "slice -i 0 p.csv", "slice -e 1 p.csv", "slice -I 0,3 p.csv", "slice -I 3,0 p.csv", "slice -s 2 p.csv", "slice -s 1 -e 3 p.csv", "slice -i 9 p.csv", "slice -s 9 p.csv", "slice -n -i 0 p.csv", "slice p.csv",
		"top age p.csv", "top age -l 2 p.csv", "top -R age -l 1 p.csv", "top -l 1 n num.csv",
	),
		row{line: "select -f e.txt p.csv"},
	)
}

func ordering() []row {
	return lines(
		"sort p.csv", "sort -s city p.csv", "sort -N -s n float.csv", "sort -N -s x float.csv", "sort -N -s n num.csv", "sort -N -R -s age p.csv", "sort -N -s age p.csv", "sort -R -s name p.csv", "sort -u -s k dup.csv", "sort -u dup.csv", "sort -R -s city p.csv", "sort -s city,name -R p.csv", "sort -n p.csv", "sort --check -s city p.csv", "sort --check -N -s v dup.csv", "sort --check -R -s name p.csv", "sort empty", "sort -N -u -s v dup.csv", "sort head.csv", "sort text.csv",
		"reverse c.csv", "reverse -n c.csv", "reverse empty", "reverse q.csv",
		"dedup dup.csv", "dedup -s k dup.csv", "dedup -l -s k dup.csv", "dedup --keep-duplicates dup.csv", "dedup -S -s k runs.csv", "dedup --check -s k dup.csv", "dedup -n dup.csv",
	)
}

func aggregating() []row {
	return lines(
		"frequency -s city p.csv", "freq -s city p.csv", "freq -N -s age p.csv", "freq -l 0 -s name p.csv", "freq -n dup.csv", "freq head.csv", "freq -N -l 1 -s city p.csv", "freq -A q.csv",
		"groupby city,name 'count()' p.csv", "groupby nosuch 'count()' p.csv", "groupby city 'max(age) as oldest' empty", "groupby city 'count()' head.csv", "groupby k 'sum(v) / count()' dup.csv",
		"agg 'count()' p.csv", "agg 'count(age)' p.csv", "agg 'sum(age)' p.csv", "agg 'mean(age)' p.csv", "agg 'avg(age) as a' p.csv", "agg 'min(age), max(age), median(age), count(age), first(name), mode(city)' p.csv", "agg 'var(age)' p.csv", "agg 'lex_first(name), lex_last(city)' p.csv", "agg 'first(age), last(age)' p.csv", "agg 'mode(city), cardinality(city)' p.csv", "agg 'values(name)' p.csv", "agg 'values(age)' p.csv", "agg 'distinct_values(city)' p.csv", "agg 'distinct_values(city, \",\")' p.csv", "agg 'all(age), any(age)' p.csv", "agg 'all(name), any(null)' p.csv", "agg 'sum(x), mean(y)' float.csv", "agg 'sum(age)' empty", "agg 'sum(a), mean(a), min(a), count(), count(a), first(a), mode(a)' head.csv", "agg 'sum(f), sum(i)' mixed.csv", "agg 'count() * 2' p.csv", "agg 'sum(age) as \"total age\"' p.csv", "agg -n 'count()' p.csv", "agg 'min(x), max(x)' float.csv", "agg 'stddev(x), var(y)' float.csv", "agg 'median(x)' float.csv", "agg 'sum(age)+count() as z, count(city eq \"Rome\") as r' p.csv", "agg 'lex_first(d)' dates.csv",
		"stats -s age p.csv",
	)
}

func joining() []row {
	return append(lines(
		"join --anti city p.csv city c.csv", "join --semi city c.csv city p.csv", "join --cross t.tsv head.csv", "join --cross c.csv t.tsv", "join -i city c.csv town upper.csv", "join city c.csv town upper.csv", "join --left -i city c.csv town upper.csv", "join --right -i city c.csv town upper.csv", "join --full -i city c.csv town upper.csv", "join 'city,name' p.csv city c.csv",
		"cat rows c.csv c.csv", "cat rows t.tsv", "cat rows c.csv empty", "cat rows head.csv t.tsv", "cat cols t.tsv num.csv", "cat cols -p head.csv num.csv", "cat cols head.csv num.csv", "cat columns c.csv p.csv", "cat cols -p c.csv p.csv", "cat rows -n c.csv c.csv", "cat cols -d , t.tsv num.csv",
	),
		row{line: "cat rows", stdin: "a\n1\n"}, row{line: "cat rows - c.csv", stdin: "city,country\nx,y\n"},
	)
}

func changing() []row {
	return lines(
		"map 'len(name) as l' p.csv", "map 'a + b as sum' t.tsv", "map 'a + b' t.tsv", "map -O 'upper(name) as name' p.csv", "map 'upper(name) as name' p.csv", "map 'a as x, b as y' t.tsv", "map '1 as one' empty", "map '1 as one' head.csv", "map -n 'col(0) as z' c.csv", "map 'split(tags, \"|\") as l' tags.csv", "map 'split(name, \"n\") as (x, y)' dup.csv", "map '\"a,b\" as z' t.tsv", "map -O 'b as a, a as c' t.tsv", "map 'index() as i' c.csv",
		"transform name upper p.csv", "transform name upper(_) p.csv", "transform name 'upper(name)' p.csv", "transform -r n2 name '_ ++ \"!\" | trim(_, \"a\")' p.csv", "transform name,city lower p.csv", "transform -r x,y name,city lower p.csv", "transform 0 len p.csv", "transform -n 0 len c.csv", "transform nosuch upper p.csv", "transform a '_' empty",
		"rename x,y,z p.csv", "rename x p.csv", "rename -p p_ head.csv", "rename --suffix _s head.csv", "rename -S q.csv", "rename --slugify text.csv", "rename n -s name p.csv", "rename -s name,city n,c p.csv", "rename '\"x,y\",z' c.csv", "rename -n x,y c.csv", "rename x,y empty", "rename -p p_ -s age p.csv", "rename -p x -n c.csv",
		"enum -S 5 c.csv", "enum -n c.csv", "enum head.csv", "enum -S 1 -c nr p.csv",
		"explode tags tags.csv", "explode tags --drop-empty -r tag tags.csv", "explode --sep b tags tags.csv", "explode xs,ys two.csv", "explode -r x,y xs,ys two.csv", "explode nosuch tags.csv", "explode -n 1 tags.csv", "explode --sep , a q.csv",
		"implode v dup.csv", "implode v runs.csv", "implode --sep ; -r vs v dup.csv", "implode xs,ys two.csv", "implode -n 1 runs.csv", "implode v head.csv", "implode tags tags.csv",
		"fill gap.csv", "fill -v 0 gap.csv", "fill -s b gap.csv", "fill -s a -v x gap.csv", "fill -n gap.csv", "fill q.csv",
	)
}

func converting() []row {
	return append(lines(
		"to json t.tsv", "to json head.csv", "to json empty", "to json text.csv",
		"to ndjson c.csv", "to jsonl head.csv", "to jsonl dupcol.csv",
		"to txt num.csv",
		"from o.json", "from l.jsonl", "from l.ndjson", "from -f ndjson l.jsonl",
	),
		row{line: "from -f json", stdin: "[1,2]"}, row{line: "from -f ndjson", stdin: "{\"a\":1}\n{\"b\":2}\n"},
		row{line: "to json -o out.json c.csv", look: []string{"out.json"}},
	)
}

// evaluated makes a row of an expression, on one row of cells.
func evaluated(list ...string) []row {
	out := make([]row, len(list))
	for i, e := range list {
		out[i] = row{line: "select -e '" + e + " as z'", stdin: "n,f,s,t,e,l\n7,2.5,Hello,a-b-c,,x|y|z\n"}
	}
	return out
}

func expressions() []row {
	return evaluated(
		`1 + 2`, `n + f`, `n - f`, `n * f`, `n / 2`, `n / f`, `n // 2`, `n % 4`, `n ** 2`, `2 ** -1`, `n + 1 * 2`, `(n + 1) * 2`, `1 / 3`, `10 / 5`, `0.1 + 0.2`, `1e3`, `1_000 + 1`, `7.5 % 2`, `7.5 // 2`, `1.0 + 1`, `2.0`, `1.50`, `1.0 / 0.3`,
		`n == 7`, `n == 7.0`, `f == "2.5"`, `n != 7`, `n < f`, `n <= 7`, `n >= 8`, `n > f`, `s eq "Hello"`, `s ne "x"`, `s lt "I"`, `s le "Hello"`, `s gt "A"`, `s ge "Z"`, `"10" lt "9"`, `"10" < "9"`, `e eq ""`,
		`n == 7 && f > 3`, `n == 7 || f > 3`, `n and s`, `e or s`, `e || "d"`, `n && e`, `!e`, `!(n == 7)`, `true`, `false`, `null`, `true and false`,
		`s ++ t`, `s ++ "-" ++ n`, `1 ++ 2`, `"a\tb"`, `"a\nb"`, `"q\"q"`, `s | len`, `s | upper | lower`, `s | concat(_, "!")`, `s | len(_) + 1`, `s | _ ++ _`, `[1, 2, 3]`, `[]`, `["a", n]`, `"H" in s`, `"z" not in s`, `n in [7, 8]`, `s in ["Hello"]`, `2 in [1, 2]`, `"2" in [1, 2]`, `/ell/ in s`,
		`col("s")`, `col(2)`, `col(-1)`, `if(n > 5, "a", "b")`, `if(e, "a")`, `index()`, `1 == 1 == true`, `n in [1] or true`, `1 < 2 and 2 < 3`, `10 > "9"`, `2 - -3`, `n-1`, `n -1`, `5.`, `a.b`, `n if e`,
	)
}

func functions() []row {
	return evaluated(
		`abs(-3)`, `abs(f)`, `ceil(f)`, `floor(f)`, `floor(-2.5)`, `round(f)`, `round(-2.5)`, `trunc(-2.7)`, `sqrt(n)`, `sqrt(9)`, `pow(2, 3)`, `pow(2, 0.5)`, `log(n)`, `log(8, 2)`, `neg(n)`, `int("3")`, `float(n)`, `float("2.50")`, `max(1, 2)`, `max([1, 5, 3])`, `min(3, n, f)`, `abs(s)`, `abs(e)`, `sqrt(-1)`, `exp(1)`,
		`len(s)`, `len(e)`, `len("é")`, `len([1, 2])`, `lower(s)`, `upper(s)`, `upper("é")`, `trim("  a ")`, `trim("xxaxx", "x")`, `ltrim("  a ")`, `rtrim("  a ")`, `ltrim("xya", "xy")`, `rtrim("axy", "xy")`, `concat(s, "-", n)`, `contains(s, "ell")`, `contains(s, /^h/i)`, `contains([1, 2], 2)`, `contains(s, "")`, `startswith(s, "He")`, `endswith(s, "lo")`, `match(s, /l+/)`, `match(s, /(.)(l+)/, 2)`, `match(s, /z/)`, `replace(s, "l", "L")`, `replace(s, /l+/, "<$0>")`, `replace(s, /(e)(l)/, "$2$1")`, `replace(t, "-", "")`, `split(t, "-")`, `split(t, /-/)`, `split(e, "-")`, `join([1, 2], "+")`, `join(split(l, "|"), ",")`, `first(s)`, `last(s)`, `first([4, 5])`, `last([4, 5])`, `get(s, 1)`, `get(s, 9)`, `get([1, 2], -1)`, `slice(s, 1)`, `slice(s, 1, 3)`, `slice(s, -3, -1)`, `slice(s, 0, 99)`,
		`fmt("{}-{}", n, s)`, `fmt("x{}", s, n)`, `lpad(n, 3, "0")`, `rpad(n, 3, ".")`, `lpad(s, 3)`, `escape_regex("a.b")`, `typeof([1])`, `reverse?(s)`, `not(n)`, `try(int("x"))`, `try(1)`, `err("x")`,
		`year("2024-03-05")`, `hour("2024-03-05")`, `sha256(s)`, `upper()`, `upper(s, s)`, `len(s,)`, `parse_int("0x1f")`, `ascii("a")`, `split(l, "|") | len`, `split(l, "|") | join(_, "")`, `lower(upper(s))`,
	)
}

func failing() []row {
	return append(lines(
		"nosuch", "count nosuch", "count --nosuch p.csv", "select zz p.csv", "select 7 p.csv", "select", "filter 'name + 1' p.csv", "filter", "agg 'nosuch(x)' p.csv", "agg age p.csv", "agg 'sum()' p.csv", "head -l x p.csv", "head -l -1 p.csv", "search -r '(' p.csv", "search", "rename a p.csv", "rename a,b,c,d p.csv", "sort -s zz p.csv", "drop zz p.csv", "join city p.csv zz c.csv", "join city p.csv", "fmt -d xx p.csv", "fmt -d '' p.csv", "count p.csv c.csv", "select name bad.csv", "to nosuch p.csv", "from p.csv", "from -f nosuch p.csv", "from -f json c.csv", "slice -i x p.csv", "split -S 0 c.csv", "top zz p.csv", "cat nosuch p.csv", "cat rows nosuch", "map 'len(' p.csv", "map '1 as' p.csv", "map 'a b' t.tsv", "transform name 'nosuch(_)' p.csv", "groupby city p.csv", "frequency -s zz p.csv", "stats -s zz p.csv", "enum -S x c.csv", "fixlengths -l 0 p.csv", "count d", "to json bad.csv", "flatten bad.csv", "tail short.csv", "explode", "partition city nosuch",
	),
		row{line: "head -l 1 -o nodir/x p.csv"}, row{line: "from -f json", stdin: "{"}, row{line: "from -f jsonl", stdin: "{\"a\":1}\nx\n"},
	)
}
