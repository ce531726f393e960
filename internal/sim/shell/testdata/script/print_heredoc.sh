f() {
cat <<A | tr a b
one
A
cat <<A && echo x
two
A
if cat <<A; then echo y; fi
three
A
while read x; do echo $x; done <<A
four
A
(cat <<A)
five
A
x=$(cat <<A
six
A
)
cat <<A >f <<B
a
A
b
B
echo end
case x in x) cat <<A;; esac
q
A
{ cat <<A
g
A
}
cat <<A
last
A
}
declare -f f
