# Loops, and how one leaves them.
for i in 1 2 3; do for j in a b c; do [ $j = b ] && continue 2; [ $i = 3 ] && break 2; echo $i$j; done; done
i=0; while :; do i=$((i+1)); case $i in 2) continue;; 5) break;; esac; echo w$i; done
until [ $i -le 2 ]; do i=$((i-1)); done; echo $i
for ((a=0, b=10; a < b; a += 3, b--)); do echo $a,$b; false; done
for ((;;)); do break; done; echo $?
set -- x "y z"; for p; do echo "<$p>"; done
for p in; do echo no; done; echo $?
while false; do :; done; echo $?
case abc in a*) echo one;;& *b*) echo two;& zzz) echo three;; *) echo no;; esac
case x in y) ;; esac; echo $?
f() { while :; do return 7; done; }; f; echo $?
g() { for x in 1 2; do (exit 3); break; done; echo $?; }; g
if false; then echo a; elif (exit 4); then echo b; else echo $?; fi
{ echo group; false; } || echo failed
! true; echo $?; ! ! true; echo $?
(break; echo after) 2>/dev/null
break 2>/dev/null; echo $?
select w in one two; do echo "$REPLY:$w"; break; done <<< 2 2>/dev/null
