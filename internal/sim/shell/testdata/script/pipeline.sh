# Pipelines.
echo a | cat | tr a b; echo "${PIPESTATUS[@]}"
(exit 1) | (exit 2) | (exit 3); echo "${PIPESTATUS[@]}" $?
set -o pipefail; (exit 1) | true; echo $?; true | true; echo $?; set +o pipefail
x=1; echo 2 | read x; echo $x
shopt -s lastpipe; echo 2 | read x; echo $x; shopt -u lastpipe
echo one |& cat; { echo err >&2; } |& cat
while :; do echo y; done 2>/dev/null | head -2; echo "${PIPESTATUS[1]}"
! true | false; echo $?
echo x | while read l; do echo "<$l>"; exit 3; done; echo $?
for i in 3 1 2; do echo $i; done | sort | { read a; read b; echo $a$b; }
{ echo a; echo b; } | (read x; cat)
echo $BASH_SUBSHELL | cat; (echo $BASH_SUBSHELL) | cat; { echo $BASH_SUBSHELL; } | cat
f() { cat; }; echo through | f | f
true | exit 4; echo $?
echo end | tee /dev/null | cat
