# Traps of signals and events.
(trap 'echo exit $?' EXIT; exit 5); echo $?
(trap 'echo a; exit 9' EXIT; exit 5); echo $?
(trap 'echo usr1' USR1; kill -USR1 $BASHPID; echo after)
(trap 'echo term; exit 3' TERM; kill $BASHPID; echo no); echo $?
(kill -TERM $BASHPID; echo no) 2>/dev/null; echo $?
(trap '' TERM; kill -TERM $BASHPID; echo survived)
(trap 'echo x' USR1 USR2; trap -p USR1 USR2; trap - USR1; trap -p USR1; trap USR2; trap -p USR2)
(trap 'echo outer' EXIT; (trap -p EXIT; echo inner); (trap 'echo sub' EXIT))
(trap 'echo d:$BASH_COMMAND' DEBUG; x=1; echo hi; trap - DEBUG; echo bye)
(f() { echo in; return 3; }; set -T; trap 'echo ret $?' RETURN; f; echo $?)
(trap 'echo int' USR2; kill -USR2 $BASHPID; echo after)
(trap 'exit' USR1; (exit 7); kill -USR1 $BASHPID); echo $?
(trap 'echo "$(echo nested) $?"' EXIT; false)
trap nonsense 2>/dev/null; echo $?
trap 'x' NOSUCH 2>/dev/null; echo $?
(trap "echo 'it'\''s'" EXIT; trap -p EXIT)
kill -l 9 15 HUP 130
(sleep 5 & p=$!; kill $p; wait $p; echo $?) 2>/dev/null
