package sim_test

import (
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
)

// A task that gives back more memory than it took ends as broken. So whatever is repeated takes as much as it gives back.
func TestWhatIsRepeatedEndsWell(t *testing.T) {
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	sb, err := d.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"numbers":       `i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done`,
		"elements":      `for ((i = 100000; i < 110000; i++)); do a[i%7]=$i; a[i%5]+=x; : ${a[@]}; unset "a[i%3]"; a[2]=$((i*3)); done`,
		"numbered":      `declare -ai a; declare -i n; for ((i = 100000; i < 110000; i++)); do a[1]+=1; a[2]=i; n+=i; : $n ${a[*]}; done`,
		"keys":          `declare -A a; for ((i = 100000; i < 110000; i++)); do a[k$((i%7))]=$i; a[x]+=y; : ${!a[@]}; unset "a[k$((i%3))]"; a[x]=; done`,
		"locals":        `f() { local i=$1 a=(1 2 3) b; b=$((i+1)); a+=($b); unset a; local -n r=b; r=7; : $r $b; }; for ((i = 100000; i < 106000; i++)); do f $i; done`,
		"lists":         `for ((i = 0; i < 3000; i++)); do a=(1 22 333); a+=(4444 $i); b=("${a[@]/2/$i}"); mapfile -t c <<<"$i"; read -ra e <<<"1 2 $i"; set -- "${b[@]}"; shift; done`,
		"subshells":     `x=some; n=100000; for ((i = 0; i < 2000; i++)); do (x=; n=$((n+1)); : $n; unset n x; y=$i); : $(n=$((n+i)); echo $n); n=$((n+1)); done`,
		"values":        `x=abcabc; for ((i = 0; i < 8000; i++)); do y=${x//b/$i}; y=${y^^}; y=${y#A}; y=${y/'&'/\\}; : "${y@Q}" ${y:1:2}; printf -v y %05d $i; y=${x/#a/&&}; done`,
		"functions":     `for ((i = 0; i < 3000; i++)); do eval "f$((i%5))() { echo $i; }"; unset -f f$((i%3)); trap "echo $i" USR1; trap - USR1; alias a=b$i; unalias a; done`,
		"temporary":     `f() { v=$((v+1)); : $v; }; for ((i = 100000; i < 106000; i++)); do v=$i f; v=$i :; v=$i eval 'v=1; : $v'; done`,
		"awk numbers":   `awk 'BEGIN { for (i = 0; i < 60000; i++) { a[i % 7] = i; a[i % 5] = a[i % 7] "x"; delete a[i % 3]; s = s i; if (length(s) > 90000) s = ""; n = i * 1.5; t = n ""; t = t + 1 } }'`,
		"awk functions": `awk 'function f(x, b) { b[x] = x; split("a b c " x, b); return b[1] x } BEGIN { for (i = 0; i < 20000; i++) { y = f(i); gsub(/1/, "&&", y); z = sprintf("%s%s", sprintf("%d", i), y); n = split(z, p, ""); delete p; $0 = z " " i; $3 = y; NF = 2; z = $0 } }'`,
		"awk large":     `awk 'BEGIN { for (i = 0; i < 300; i++) { x = sprintf("%100000s", i); y = x x; a[i % 3] = y; a[i % 2] = 1; sub(/0/, "1", y); $0 = x; $2 = y; g = gensub(/ 0/, "\\0", "g", x) } }'`,
		"awk records":   `seq 60000 | awk '{ a[NR % 9] = $0; $2 = $1; b = b $0; if (NR % 500 == 0) b = ""; while ((getline l < "/etc/passwd") > 0) n++; close("/etc/passwd") }'`,
		"sed":           `seq 20000 | sed -n 's/1/&&/g; H; x; s/.*\n//; x; G; y/12/34/; $p' | wc -l`,
		"calculators":   `echo 'for (i = 0; i < 3000; i++) { x = i ^ 30; a[i % 5] = x / 7; x = a[2]; }' | bc; seq 2000 | sed 's/.*/& sa la 7 * Sb Lb d :c 0;c +/' | dc -f -`,
		"jq":            `jq -n 'reduce range(40000) as $i ({}; .["k\($i % 7)"] = [$i, "x\($i)"] | del(.["k\($i % 5)"]))'; seq 5000 | jq -c '[., tostring * 3] | map(tostring) | join(",")' | tail -n 1`,
		"files":         `seq 30000 > f; sort -r f | uniq -c | tac | head -n 3; shuf -n 20 f | wc -l; tail -n 100 f | rev | fold -w 3 | paste - - | column -t | tail -n 1; split -l 900 f; cat x* | cmp - f; rm x* f`,
		"xan":           `{ echo a,b; seq 9000 | sed 's/.*/&,x&/'; } > f; xan sort -N -s a f | xan groupby b 'sum(a)' | xan dedup -s b | xan tail -n 3 | xan map 'a . b as c' 2>&1 | tail -n 1; rm f`,
		"archives":      `seq 90000 > f; tar czf f.tgz f; tar xzOf f.tgz | md5sum; zip -q f.zip f; unzip -p f.zip | md5sum; gzip -c f | zcat | xxd | tail -n 1; base64 f | base64 -d | cmp - f; rm f*`,
		"searches":      `seq 30000 > f; grep -c 1 f; grep -A2 -B2 777 f | tail -n 1; rg -c 1 f; rg -C1 -r 'x$0' 999 f | tail -n 1; rg --json 123 f | tail -n 1; diff f <(sed s/7/8/ f) | tail -n 1; find / -name passwd | xargs -n1 basename; rm f`,
		"git":           `git init -q r; cd r; git config user.name a; git config user.email a@b; for i in 1 2 3 4 5 6; do seq $((i*900)) > f; echo $i > g$i; git add .; git commit -qm $i; done; git log -p | tail -n 1; git checkout -q HEAD~3; git diff HEAD~1 | tail -n 1; cd ..; rm -rf r`,
	} {
		t.Run(name, func(t *testing.T) {
			exit, out := do(t, sb, "cd /tmp; { "+script+"; } 2>&1", forgiven)
			if exit.Cause != paddock.Exited || exit.Code != 0 {
				t.Errorf("%+v: %s", exit, out)
			}
		})
	}
	st, err := sb.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes are in use", st.Usage.Memory)
}
