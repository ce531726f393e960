# Too many arguments give up the line of commands.
f() { return 1 2; echo no; }
f; echo no
echo "after return: $?"
for i in 1 2; do break 1 2; echo no; done; echo no
echo "after break: $?"
shift 1 2; echo no
echo "after shift: $?"
exit 1 2; echo no
echo "after exit: $?"
test -t a; echo $?
[ -t '' ]; echo $?
[[ -t a ]]; echo $?
