# What is assigned for one command, and what is expanded before that.
TEMP=0; TEMP=one TEMP=$((TEMP=5)) :; echo $TEMP
a=(outer keep); a=(temp) V=$(echo a)$((a[1]=5)) :; echo "${a[@]}"
a=(old); a=("$((a[0]=5))") :; echo "${a[@]}"
y=0; x=1 export y=$x; echo "y=$y"; x=3 declare z=$x; echo "z=$z"
n=0; /bin/cat /dev/null >f$((n++)); echo $n; echo hi >f$((n++)); echo $n
cat f0
x=1; x=2 echo hi >g$x; cat g1
readonly r=1; r=2 true; echo $?
