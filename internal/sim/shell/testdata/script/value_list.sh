# A value that looks like a list and goes on is a plain one.
typeset -i n=1
n=(4*3)/2
echo $n
a='p q'
b=(x $a)y
declare -p b
c=(1 2)
c+=(3)4
declare -p c
printf "%q\n" $'a\x{41}b'
