# Functions, their variables and what is known of their calls.
f() { echo "$# $1 $FUNCNAME"; }; f a b; f
function g { local x=in; x+=1; h; echo $x; }; h() { x=changed; }; x=out; g; echo $x
r() { [ $1 -le 0 ] && return 0; echo $1; r $(($1-1)); }; r 3
v() { return $1; }; v 300; echo $?
p() { set -- new; echo $1; }; set -- old; p; echo $1
a() { b; }; b() { echo "${FUNCNAME[@]}"; caller 0 | cut -d' ' -f2; }; a
k() ( x=sub; echo $x ); x=top; k; echo $x
unset -f k; k 2>/dev/null; echo $?
n() { unset x; echo "${x-unset}"; }; m() { local x=1; n; }; x=g; m; echo $x
s() { echo s1; for i in 1; do if :; then echo $i; else :; fi; done; while false; do :; done; case x in y|z) echo a;; esac; { echo g; } 2>&1; (echo s; echo t) > /dev/null; a && b || c; d | e & [[ a = b ]]; ((1+1)); for ((i=0;i<1;i++)); do :; done; x=1 cmd "$a" <<< b; }; declare -f s
t() { local -; set -f; echo *; }; cd /; t; echo "$-" | tr -d -c f; echo
echo() { builtin echo "wrapped: $*"; }; echo hi; unset -f echo; echo hi
w() { cat; }; echo in | w
y() { local v=1; eval 'v=2'; echo $v; }; y
z() { x=$1 command eval 'echo $x'; }; z tmp
x=5; tmpf() { echo $x; x=7; }; x=6 tmpf; echo $x
type -t f type for nosuch; echo $?
command -v f cd if
f2() { f3() { echo nested; }; }; f2; f3
ff() { shift; echo "$@" "$*"; }; ff 1 2 3
ex() { echo exported; }; export -f ex; bash -c ex
depth() { FUNCNEST=5; depth; }; (depth) 2>/dev/null; echo $?
