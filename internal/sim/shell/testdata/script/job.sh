# Commands in the background.
(exit 4) & wait $!; echo $?
(exit 5) & (exit 6) & wait; echo $?
(true & wait -n; echo $?)
((exit 3) & p=$!; wait -n -p who; echo $? $((who == p)))
wait 999999 2>/dev/null; echo $?
(wait -n 2>/dev/null; echo $?)
({ sleep 0.1; exit 8; } & wait %1; echo $?)
(sleep 5 & jobs; kill %1; wait %1 2>/dev/null; echo $?)
(echo one; sleep 0.4; echo two) & sleep 0.2; echo three; wait
x=1; { x=2; } & wait; echo $x
f() { echo "f:$1"; return 2; }; f a & wait $!; echo $?
echo data | { cat & wait; }
cat < /dev/null & wait; echo $?
(sleep 5 & disown; jobs; echo none)
echo $(sleep 0.1 & wait; echo waited)
false | true & wait $!; echo $?
fg 2>/dev/null; echo $?
coproc { read l; echo "got $l"; }; echo hello >&${COPROC[1]}; read r <&${COPROC[0]}; echo $r; wait
coproc NAMED (tr a-z A-Z); echo hi >&${NAMED[1]}; exec {NAMED[1]}>&-; cat <&${NAMED[0]}
