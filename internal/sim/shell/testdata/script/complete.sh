# Completion as scripts see it.
complete -o nospace -o default -F foo -A function -abv -W 'a b' -P p -S "s'x" -X '*.o' -G '*.c' -C 'cmd x' git
complete -p git
complete -o zz foo; echo $?
complete -A zz foo; echo $?
complete foo; compopt -o nospace foo; complete -p foo; compopt +o nospace foo; complete -p foo; compopt foo
compopt -o x; echo $?
compopt -o nospace; echo $?
complete -r git; complete -p git; echo $?
compgen -k; compgen -b ec; compgen -A setopt n; compgen -A shopt g; compgen -A signal SIGI; compgen -A foo; echo $?
add() { :; }; _x() { :; }; compgen -A function
compgen -W 'abc abd xyz' -- ab; compgen -W 'a$((1+1)) "b c" b\ d'; compgen -P '<' -S '>' -W 'a b'
IFS=:% compgen -W 'spam:eggs%ham cheese\:colon'
(IFS=:%; compgen -W 'spam:eggs%ham cheese\:colon'; compgen -W '$(echo "x:y%z w")')
compgen -X 'a*' -W 'ab cd'; compgen -X '!a*' -W 'ab cd'; compgen -X '&*' -W 'ab ac' -- ab; echo $?
touch f1 f2 g; mkdir d; compgen -f f | sort; compgen -d; compgen -G 'f*' | sort; compgen -o plusdirs -W d1; compgen -f nosuch/; echo $?
f() { COMPREPLY=(x y); echo "$# $1 $2 $3 $COMP_CWORD $COMP_LINE $COMP_POINT ${#COMP_WORDS[@]}"; }
compgen -F f word; echo "${COMPREPLY-unset}"
compgen -X x -F f; compgen -F nosuch; echo $?
compgen -W '${'; echo $?
compgen -W 'a $((1/0)) b'; echo $?
help -d true; help -q; echo $?; help nosuch 2>/dev/null; echo $?
