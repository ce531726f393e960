# What set -x shows of lists and declarations.
exec 2>&1
set -x
declare -a arr=(1 "2 3" "it's" '')
arr2=(1 "2 3" $x [5]=q)
declare -A m=([a]=1)
m+=([q]=1)
m[x]="a b"
readonly rr=5
export FOO BAR="1 2"
f() { local a=1 b="x y" c; local -a z=(p q); }
f
declare x$x=5
a=1 b="p q"
