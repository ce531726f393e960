# set -x in eval, sourced text and the parts of for.
exec 2>&1
set -x
eval 'echo ev'
eval 'eval "echo deep"'
. /dev/stdin <<< 'echo src'
for ((i = 0; i < 2; i++)); do :; done
for ((;;)); do break; done
PS4='+${FUNCNAME[0]:-main} '
eval 'echo ev3'
f() { echo in; }
f
