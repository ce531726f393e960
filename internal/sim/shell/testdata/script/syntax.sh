# Corners of the syntax.
echo a;echo b	;	echo c # comment
echo one \
  two
if true
then echo t
fi
{ echo g; }; ( echo s )
echo "a'b" 'c"d' $'e\tf\x41\101\u263a' "\$x" \$x "a\
b"
x=1 y=2; echo $x$y "${x}y" "$x"y
echo `echo back \`echo tick\`` $(echo $(echo deep))
echo $((1 + 2 * 3)) $(( (1+2) * 3 )) $[4+4]
a=(1 "2 3" [5]=six); echo "${a[@]}" ${#a[@]} "${!a[@]}"
[[ a < b && ! ( c == d ) ]] && echo cond
case "x y" in "x y") echo quoted;; esac
case a in (a|b) echo paren;; esac
echo {a,b}{1..3} {a..c} {01..03} {x,}
shopt -s extglob
case abab in +(ab)) echo ext;; esac
eval 'echo eval; x=9'; echo $x
function with-dash { echo dash; }; with-dash
f() if true; then echo body; fi; f
echo $(case x in x) echo in-case;; esac)
echo "$(cat <<E
in $x
E
)"
for i in a; do echo $i; done; while false; do :; done
! false && echo neg
echo a && echo b || echo c; false && echo d || echo e
echo 'multi
line'; echo "${x:+"nested "quotes""}"
: ${z:=set}; echo $z; echo ${z/s/S} ${z^^} ${#z} ${z:1} ${z: -1}
alias ll='echo aliased'
shopt -s expand_aliases
ll now
alias e1='echo ' e2='two'
e1 e2
alias open='( echo ' shut=')'
open in; shut
echo >/dev/null a b; echo }; echo {; echo ]]
x=(a b); echo ${x[1]}; x[3]=d; echo "${x[*]}"
declare -A m; m[k v]=1; m["q"]=2; echo ${m[k v]} ${m[q]}
((x[5]=7, x[5]++)); echo ${x[5]}
echo ${nosuch[@]} "${empty[@]}" end
eval 'if' 2>/dev/null; echo $?
echo ${a b} 2>/dev/null; echo skipped
echo next line
