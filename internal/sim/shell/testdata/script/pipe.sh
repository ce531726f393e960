# A program that takes its shell's place lets go of what was redirected.
cat /dev/null >f | cat; echo done
/bin/cat f >/dev/stdout | cat; echo done
echo foo >/nosuch/f |& cat
{ echo a; } |& cat
f() { echo a |& cat; { echo b; } |& cat; }; declare -f f
trap 'echo err $LINENO' ERR
(exit 3) | true
true | (exit 4)
(exit 3) | (exit 4)
true | { false; }
