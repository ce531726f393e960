# Builtins that are the shell's own.
cd /; pwd; cd usr; pwd; cd ..; pwd; cd - ; cd; cd /usr/../usr/./bin/..; pwd
cd /no/such 2>/dev/null; echo $?
pushd / >/dev/null; pushd /usr; dirs; popd; dirs -v; popd; popd 2>/dev/null; echo $?
echo -n a; echo -e 'b\tc\0101\x42'; echo -E 'd\n'; echo -nE e; echo; echo -z; echo --
umask 027; umask; umask -S; umask u=rwx,g=rx,o=; umask; umask 022
set -- a b c; shift; echo $*; shift 5; echo $?; set --; echo $#
set +o | head -2; shopt extglob; shopt -s nullglob; shopt -p nullglob; shopt -q nullglob; echo $?
type -t cd ls echo if; hash -r; command -v echo; type echo
alias x='a b' y=c; alias; unalias x; alias x 2>/dev/null; echo $?
eval; echo $?; eval 'exit 3' | cat; (eval 'exit 3'); echo $?
(exit 256); echo $?; (exit -1); echo $?; (exit abc) 2>/dev/null; echo $?
printf 'echo sourced $1; return 4\n' > "${TMPDIR:-/tmp}/s$$"; . "${TMPDIR:-/tmp}/s$$" arg; echo $? $#; rm "${TMPDIR:-/tmp}/s$$"
source /no/such 2>/dev/null; echo $?
command cd /tmp; pwd; command nosuch 2>/dev/null; echo $?
builtin echo b; builtin nosuch 2>/dev/null; echo $?
enable -n echo; type -t echo; enable echo; type -t echo
(exec cat <<< execd; echo no); (exec nosuch; echo no) 2>/dev/null; echo $?
true; :; false; echo $?
times >/dev/null; echo $?
set -f; case $- in *f*) echo f;; esac; set +f
echo ${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]} $((BASHPID == $$)) $((PPID >= 0))
RANDOM=42; echo $RANDOM $RANDOM; SECONDS=5; echo $SECONDS
echo $LINENO; f() { echo $LINENO; }; f
IFS=:; x=a:b; echo $x; unset IFS
readonly ro=1; (ro=2; echo no) 2>/dev/null; echo $?
xtrace() { set -x; echo traced "a b"; x=1; set +x; }; xtrace 2>&1
PS4='[$LINENO] '; set -x; : traced; { set +x; } 2>/dev/null
