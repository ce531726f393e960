# set -e ends at what cannot be assigned or expanded, whatever looks at it.
(set -e; readonly x=1; x=2 || true; echo no); echo $?
x=1; (set -e; echo ${x@Z} || true; echo no); echo $?; unset x
(set -e
y=1
echo ${!x} || true
echo no); echo $?
x=aBc; echo ${x~} ${x~~} ${x~~[a-b]}
(echo ${!#x}; echo no); echo $?
declare -A m
m[]=3
echo $?
set -- p; echo ${!#}
printf '<%s>' x \