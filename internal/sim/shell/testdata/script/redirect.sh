# Redirections of every kind.
cd "${TMPDIR:-/tmp}" && mkdir -p redirect.$$ && cd redirect.$$
echo a > f; echo b >> f; cat f; cat < f > g; cat g
{ echo out; echo err >&2; } > o 2> e; cat o e
{ echo out; echo err >&2; } &> both; sort both; { echo 1; echo 2 >&2; } &>> both; wc -l < both
exec 3> three; echo x >&3; echo y 1>&3; exec 3>&-; cat three; (echo z >&3) 2>/dev/null; echo $?
exec {fd}> four; echo v >&$fd; exec {fd}>&-; cat four; [ $fd -ge 10 ] && echo high
exec 4<> f; read l <&4; echo "got $l"; echo X >&4; exec 4>&-; cat f
cat <<E1; cat <<-'E2'
a $((1+1)) $(echo s) `echo b` \$x
E1
	tab $x
	E2
cat <<< "here $(echo word)"
cat <<E3 <<E4
first
E3
second
E4
set -C; echo n > f 2>/dev/null; echo $?; echo n >| f; cat f; set +C
cat < /no/such 2>/dev/null; echo $?
: > /no/dir/x 2>/dev/null; echo $?
while read -r a b; do echo "$b-$a"; done <<< $'1 2\n3 4 5'
f() { cat; echo err >&2; } 2>/dev/null; echo to-f | f
echo 5 > num; x=$(<num); echo $x
{ echo A; } 3>&1 1>&2 2>&3 2>/dev/null
(exec > sub; echo hidden); cat sub
cat <(echo p1) <(echo p2)
read x y < <(echo 7 8 9); echo "$x|$y"
for i in 1 2; do echo $i; done > loop; cat loop
if true; then echo cond; fi > c; cat c
echo $(echo no >&2) 2>/dev/null
> empty; [ -e empty ] && [ ! -s empty ] && echo made
3>&1 echo before; echo done >&2 2>/dev/null
ls /no/such >& errs; [ -s errs ] && echo told
a=1 eval 'echo $a' >&1; a=2; a=3 echo x > file$a; ls file*
cd ..; rm -r redirect.$$
