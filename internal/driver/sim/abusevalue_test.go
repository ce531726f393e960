package sim_test

// valueAbuses build one large value in one step: what is multiplied must be paid for before it is there.
func valueAbuses() []abuse {
	return []abuse{
		{"valuesubst", "", `x=$(head -c 4000000 /dev/zero | tr '\0' a); w=$(printf '&%.0s' {1..300}); y=${x//*/$w}`, "string"},
		{"valueanchor", "", `x=$(head -c 4000000 /dev/zero | tr '\0' a); w=$(printf '&%.0s' {1..300}); y=${x/#*/$w}`, "string"},
		{"valueeach", "", `w=$(head -c 100000 /dev/zero | tr '\0' a); a=({1..20000}); b=("${a[@]/#/$w}")`, "heap"},
		{"valuequote", "", `x=$(head -c 4000000 /dev/zero | tr '\0' a); set -- "$x" "$x" "$x" "$x" "$x" "$x" "$x" "$x"; y=${*//a/bbbbbbbb}`, "heap string"},
		{"valuejoin", "", `x=$(head -c 3000000 /dev/zero | tr '\0' a); f() { y=$*; }; set -- {1..5000}; IFS=$x; f "$@" "${x:0:1}"; y="$*"; IFS=; y=${#y}`, "exit"},
		{"valueofs", "", `x=$(head -c 100000 /dev/zero | tr '\0' a); set --; for i in {1..200}; do set -- "$@" "$x"; done; for i in {1..30}; do y="$*$*$*$*$*$*$*$*$*$*"; done`, "string"},
		{"valuecompgen", "", `w=$(head -c 100000 /dev/zero | tr '\0' a); compgen -P "$w" -W '{1..20000}'`, "heap"},
		{"valuecompreply", "", `w=$(head -c 100000 /dev/zero | tr '\0' a); f() { COMPREPLY=({1..20000}); }; compgen -S "$w" -F f x`, "heap"},
		{"valueawksub", "awk", `awk 'BEGIN { x = sprintf("%8000000s", ""); w = sprintf("%150s", ""); gsub(/ /, "\\&", w); sub(/.*/, w, x) }'`, "string"},
		{"valueawkgensub", "awk", `awk 'BEGIN { x = sprintf("%8000000s", ""); w = sprintf("%150s", ""); gsub(/ /, "\\&", w); x = gensub(/.*/, w, "g", x) }'`, "string"},
		{"valueawkformats", "awk", `awk 'BEGIN { f = sprintf("%200000s", ""); gsub(/ /, "%%", f); for (i = 0; i < 150; i++) x = sprintf(f i) }'`, "exit"},
		{"valueawkcsv", "awk", `head -c 15M /dev/zero | tr '\0' , | awk --csv '{ print NF }'`, "array"},
		{"valuesed", "sed", `w=$(printf '&%.0s' {1..300}); head -c 4M /dev/zero | tr '\0' a | sed "s/.*/$w/" | wc -c`, "record"},
		{"valuesedcase", "sed", `w=$(printf '\\U&%.0s' {1..300}); head -c 4M /dev/zero | tr '\0' a | sed "s/.*/$w/" | wc -c`, "record"},
		{"valuetransform", "tar", `s='s/.*/&&&&&&&&&&/'; touch aaaaaaaaaaaaaaaaaaaa; tar cf /dev/null --transform="$s;$s;$s;$s;$s;$s;$s;$s" aaaaaaaaaaaaaaaaaaaa`, "string"},
		{"valuezip", "zip", valueZip + ` zip -dq o.zip 0007`, "archive"},
		{"valuezipadd", "zip", valueZip + ` echo new > new; zip -q o.zip new`, "archive"},
		{"valuezipfile", "zip", `for i in {1..30}; do head -c 3000000 /dev/urandom > f$i; done; zip -q z f*`, "heap archive"},
		{"valuerg", "rg", `w=$(printf '$0%.0s' {1..300}); head -c 4M /dev/zero | tr '\0' a > f; rg -r "$w" 'a+' f | wc -c`, "record"},
		{"valuergjson", "rg", `head -c 8M /dev/zero | tr '\0' a > f; rg --json a f | wc -c`, "heap record"},
		{"valueyqsub", "yq", `head -c 4M /dev/zero | tr '\0' a > f; w=$(printf '${0}%.0s' {1..300}) yq -n 'load_str("f") | sub("a+", strenv(w)) | length'`, "string"},
		{"valueyqenv", "yq", `export x=$(printf 'a%.0s' {1..100000}); s=$(printf '${x}%.0s' {1..10000}) yq -n 'strenv(s) | envsubst | length'`, "string"},
		{"valuejqshared", "jq", `jq -n '("a" * 1000000) as $s | [range(3000) | $s]' | wc -c`, "string"},
		{"valuejqkeys", "jq", `jq -n '("a" * 1000000) as $s | [range(3000) | {($s): 1}]' | wc -c`, "heap string"},
		{"valuejqescape", "jq", `jq -n '[limit(12; repeat("\u0001" * 1000000))]' | wc -c`, "string heap"},
		{"valuejqtext", "jq", `jq -n '("a" * 1000000) as $s | [range(3000) | $s] | tojson | length'`, "string"},
		{"valuejqadd", "jq", `jq -n '("a" * 1000000) as $s | [range(3000) | $s] | add | length'`, "string"},
		{"valuejqjoin", "jq", `jq -n '("a" * 1000000) as $s | [range(3000) | $s] | join($s) | length'`, "string"},
		{"valuejqgsub", "jq", `jq -n '("a" * 100000) as $s | "b" * 1000000 | gsub("b"; $s) | length'`, "string heap"},
		{"valuejqmatch", "jq", `jq -n '"a" * 3000000 | [match(""; "g")] | length'`, "heap array"},
		{"valuejqscan", "jq", `jq -n '"a" * 3000000 | [scan("a")] | length'`, "heap array"},
		{"valuejqsplit", "jq", `jq -n '"a" * 15000000 | split("") | length'`, "heap array"},
		{"valuejqdivide", "jq", `jq -n '("a" * 15000000) / "a" | length'`, "heap array"},
		{"valuejqexplode", "jq", `jq -n '"a" * 15000000 | explode | length'`, "heap array"},
		{"valuejqcsv", "jq", `jq -n '("a" * 1000000) as $s | [range(3000) | $s] | @csv | length'`, "string"},
		{"valuexan", "xan", `w=$(printf '$0%.0s' {1..300}); { echo h; head -c 4M /dev/zero | tr '\0' a; echo; } | xan map "replace(h, /a+/, \"$w\") as b" | wc -c`, "string"},
		{"valuexancells", "xan", `head -c 15M /dev/zero | tr '\0' , | xan headers | wc -c`, "heap array"},
		{"valuexanrow", "xan", `{ echo h; head -c 15M /dev/zero | tr '\0' ,; echo; } | xan count`, "heap array exit"},
		{"valuexansplit", "xan", `{ echo a; head -c 15M /dev/zero | tr '\0' x; echo; } | xan map 'split(a, "x") as b' | wc -c`, "heap array string"},
		{"valuejoinfields", "join", `{ head -c 15M /dev/zero | tr '\0' ,; echo; } > f; join -t, f f | wc -c`, "heap array"},
		{"valuecut", "cut", `w=$(head -c 100000 /dev/zero | tr '\0' a); head -c 1M /dev/zero | tr '\0' , | cut -d, -f1,3- --output-delimiter="$w" | wc -c`, "steps"},
		{"valuecutbytes", "cut", `w=$(head -c 100000 /dev/zero | tr '\0' a); head -c 1M /dev/zero | tr '\0' b | cut -c"$(seq -s, 1 2 16000)" --output-delimiter="$w" | wc -c`, "exit"},
		{"valueddblock", "dd", `echo a | dd cbs=100G conv=block 2>/dev/null | wc -c`, "steps"},
		{"valueddend", "dd", `printf a | dd cbs=100G conv=block 2>/dev/null | wc -c`, "steps"},
		{"valueddunblock", "dd", `{ head -c 2G /dev/zero | tr '\0' ' '; echo a; } | dd cbs=100G conv=unblock 2>/dev/null | wc -c`, "exit steps"},
		{"valuexargs", "xargs", `a=$(printf '{}%.0s' {1..1000}); head -c 3000000 /dev/zero | tr '\0' a | xargs -I{} echo "$a" | wc -c`, "exit"},
		{"valueparallel", "parallel", `parallel echo "$(printf '{}%.0s' {1..50000})" ::: $(head -c 100000 /dev/zero | tr '\0' a) | wc -c`, "string"},
		{"valuetime", "time", `env time -f "$(printf '%%C%.0s' {1..60000})" echo $(head -c 100000 /dev/zero | tr '\0' a) 2>&1 | wc -c`, "string"},
		{"valuecolumns", "column", `{ head -c 200000 /dev/zero | tr '\0' a; echo; for i in {1..20000}; do echo a b; done; } | column -t | wc -c`, "exit steps"},
		{"valuefdenviron", "", `x=$(head -c 100000 /dev/zero | tr '\0' a); for i in {1..35}; do export v$i=$x; done; bash -c 'while exec {fd}</proc/self/environ; do :; done'`, "heap"},
		{"valuepipes", "", `fill() { for i in {1..900}; do mkfifo p$1.$i && eval "exec {fd}<>p$1.$i" && head -c 65536 /dev/zero > p$1.$i; done; }; for j in {1..10}; do fill $j & done; wait`, "heap"},
	}
}

// valueZip makes an archive of a thousand members that all have the same contents.
const valueZip = `head -c 2000000 /dev/urandom > 0000; zip -q0X z.zip 0000; rm 0000
at=$((2000000 + 30 + 4)); tail -c +$((at + 1)) z.zip | head -c 50 > one; head -c $at z.zip > o.zip
for i in {0000..0999}; do head -c 46 one; printf %s $i; done >> o.zip
{ printf 'PK\5\6\0\0\0\0\xe8\3\xe8\3'; printf %08x $((50 * 1000)) | sed 's/\(..\)\(..\)\(..\)\(..\)/\4\3\2\1/' | xxd -r -p
printf %08x $at | sed 's/\(..\)\(..\)\(..\)\(..\)/\4\3\2\1/' | xxd -r -p; printf '\0\0'; } >> o.zip; rm one z.zip;`
