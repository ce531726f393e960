package sim_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
)

// besideBash are scripts that end here as in bash, with the same output. Each
// writes only below its working directory.
func besideBash() []string {
	return []string{
		// Names for descriptors.
		`grep -n a <(printf 'a\nb\n')`,
		`printf 'a\nb\n' | grep -c a /dev/stdin`,
		`printf 'a\nb\n' >f; grep -n b /dev/fd/3 3<f`,
		`printf 'a\nb\n' | gzip | zcat /dev/stdin; zcat <(printf 'c\n' | gzip); gzip -c <(echo d) | zcat`,
		`bzcat <(echo a | bzip2); xzcat <(echo a | xz); zcat -f <(echo plain)`,
		`rev <(printf 'ab\n'); printf 'cd\n' | rev /dev/stdin`,
		`strings <(printf 'abcdef\n'); printf 'abcdef\n' | strings /dev/stdin`,
		`printf 'a\nb\n' >f; exec 3<f; read -u3 x; cat /dev/fd/3; cat <&3`,
		`printf 'a\nb\n' >f; { read x; cat /dev/stdin; cat; } <f`,
		`{ echo a; echo b >/dev/stdout; echo c; } >f; od -c f`,
		`{ echo a; echo b >>/dev/stdout; } >>f; cat f`,
		`ln -s /dev/stdin in; printf 'a\n' | cat in; printf 'a\n' | cat /proc/self/fd/0; printf 'b\n' | cat /dev/../dev/fd/0`,
		`cat /dev/fd/9; echo $?; [ -e /dev/fd/9 ]; echo $?; echo x | [ -p /dev/fd/0 ]; echo $?`,
		`echo abc >f; exec 3<f; readlink /proc/self/fd/3 | sed 's/.*\///'; [ -f /dev/fd/3 ] && echo ok; stat -L -c %s /dev/fd/3; find -L /dev/fd/3 -printf '%s\n'`,
		`echo abc >f; exec 3<f; rm f; cat /dev/fd/3; readlink /proc/self/fd/3 | sed 's/.*\///'`,
		`echo abc >f; chmod 600 f; exec 3<f; chmod 640 /dev/fd/3; stat -c %a f; : >/dev/fd/3; cat f; mv f g; cat /proc/self/fd/3`,
		`mkdir d; echo x >d/y; exec 3<d; cat /proc/self/fd/3/y`,
		`cat /dev/stdin <<<here; cat /dev/fd/0 <<E
document
E`,
		`echo a | tee /dev/stderr 2>f; cat f; echo b | tee /dev/fd/3 3>g; cat g`,
		`echo a >f; cp /dev/stdin g <f; cat g; install /dev/stdin h <f; cat h; cp <(echo b) i; cat i`,
		`file -b <(echo a) | cut -d: -f1; file -bL <(echo a) | cut -c1-4`,

		// A number before a process substitution is a part of the word.
		`x=2>(true); echo ${x%%[0-9]*[0-9]}; a=(1>(true)); echo ${#a[@]}`,
		`echo 12<(true)x | sed 's/[0-9]*x$//'; cat 2</dev/null <(echo a)`,

		// Associative arrays, and elements that are assigned for one command.
		`declare -A a=([x]=9); a=([x]+=3 [y]+=1); declare -p a | tr ' ' '\n' | sort; a+=([x]+=4); echo ${a[x]}; a=([q]=1 [q]+=2 [q]+=3); echo ${a[q]}`,
		`declare -A a=([x]=1 [x]+=3); echo ${a[x]}; b=([0]=2 [0]+=3); echo ${b[0]}; declare -Ai n=([q]=1 [q]+=2); echo ${n[q]}`,
		`export -A a=([x]=1); echo $?; declare -p a; export -a b=(1 2); declare -p b; readonly -A c=([k]=v); declare -p c`,
		`b=(1 2); b[0]=9 :; echo $? ${b[0]}; b[0]=9 echo hi; echo ${b[@]}; b[0]=9 c=1 env | grep '^c='; c[1]=2 true; echo ${#c[@]}`,
		`declare -A a; a[x]=9 echo hi; f() { echo in ${#a[@]}; }; a[x]=1 f; a[x]=1 eval 'echo e'; echo ${#a[@]}; a[x]=1; echo ${a[x]}`,

		// To awk, a name of a descriptor is what is open, not a file to make.
		`{ echo first; awk 'BEGIN { print "one" > "/dev/stderr"; print "two" > "/dev/stderr" }'; echo last; } > f 2>&1; cat f`,
		`{ echo first; awk 'BEGIN { print "one" > "/dev/fd/1"; print "two"; print "three" > "/dev/stdout" }'; echo last; } > f; cat f`,
		`awk 'BEGIN { print "x" > "/dev/fd/3"; print "y" > "/dev/fd/3" }' 3> f; cat f`,

		// In the locale C a character is a byte.
		`encode() { local LC_ALL=C i c; for ((i = 0; i < ${#1}; i++)); do c=${1:i:1}; case $c in [a-z/]) printf %s "$c" ;; *) printf '%%%02X' "'$c" ;; esac; done; echo; }; encode 'a b/é€'`,
		`export LC_ALL=C; echo é | awk '{ print length($0), substr($0, 2) }' | od -An -tx1; printf é | wc -m; printf 'é a\n' | wc -mwc; echo é | grep -c '^..$'; echo é | sed 's/./x/g'`,
		`export LC_ALL=C; expr length é; expr index xé é; expr substr éa 2 2 | od -An -tx1; expr é : '.*'; expr é : '.\(.\)' | od -An -tx1; env printf '%d\n' "'é"`,
		`LC_ALL=C mkdir "it's/x" 2>&1; LC_ALL=POSIX chmod 'a\b' . 2>&1 | head -1; LC_ALL=C tr a é c 2>&1 | head -1; LC_ALL= LANG=C mktemp é.X 2>&1; LC_ALL=C.UTF-8 mktemp é.X 2>&1`,

		// What still runs when the shell ends writes its output.
		`exec > >(tee log); echo hi`,
		`exec > >(sed s/^/x/); echo hi; sleep 0.1`,
		`echo hi > >(cat; echo end)`,
		`exec > >(tee >(sed s/^/2/ >f)); echo hi; exec >&-; sleep 0.3`,
		`seq 50000 > >(sort -rn | head -1)`,
		`trap 'echo bye' EXIT; exec > >(sed s/^/x/); echo a`,
		`(sleep 0.1; echo late) &`,

		// The EXIT trap has the last word.
		`trap 'exit 5' EXIT; true`,
		`trap 'exit 5' EXIT; exit 3`,
		`trap 'echo $?' EXIT; (exit 4)`,
		`trap 'false' EXIT; exit 3`,
	}
}

func TestScriptsEndAsInBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash beside us")
	}
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	for _, script := range besideBash() {
		t.Run(script, func(t *testing.T) {
			want, status := inBash(t, bash, script)
			for name, run := range map[string]func(io.Writer) (paddock.Exit, error){
				"script": func(w io.Writer) (paddock.Exit, error) {
					return sim.Run(t.Context(), fresh(t, d), sim.Script{Text: script, Stdout: w})
				},
				"command": func(w io.Writer) (paddock.Exit, error) {
					p, err := fresh(t, d).Start(t.Context(), paddock.Cmd{Args: []string{"bash", "-c", script}, Output: paddock.Output{Stdout: w}})
					if err != nil {
						return paddock.Exit{}, err
					}
					return p.Wait(t.Context())
				},
			} {
				var out bytes.Buffer
				exit, err := run(&out)
				if err != nil || out.String() != want || exit.Code != status {
					t.Errorf("as a %s: %q, status %d, %v; bash: %q, status %d", name, out.String(), exit.Code, err, want, status)
				}
			}
		})
	}
}

// fresh makes a sandbox whose commands start in an empty directory.
func fresh(t *testing.T, d *sim.Driver) paddock.Sandbox {
	t.Helper()
	sb, err := d.Create(t.Context(), paddock.Spec{Dir: "/tmp"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sb.Remove(t.Context()) })
	return sb
}

func inBash(t *testing.T, bash, script string) (out string, status int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bash, "-c", script)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8"}
	b, err := cmd.Output()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}
