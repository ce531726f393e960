# Limits that a script sets hold.
ulimit -f; ulimit -f -- -42; echo $?
(ulimit -n 10; exec 20</dev/null; echo $?; exec 8</dev/null; echo $?)
(ulimit -n 20 -f 3; ulimit -n; ulimit -f; ulimit -nf)
(ulimit -n 64 x; echo $?; ulimit -n; ulimit -Sn; ulimit foo; echo $?; ulimit -z; echo $?)
(ulimit -f 1; for i in 1 2 3 4; do printf '%400s' x; done >f; echo no); echo $?
wc -c <f
[[ "\\" =~ ["."] ]]; echo $?
[[ "\\" =~ [\.] ]]; echo $?
[[ a]b =~ a[]]b && a-b =~ a['x-']b && aXb =~ a[^"x"]b ]]; echo $?
cd /; pushd /usr >/dev/null; pushd /tmp >/dev/null; echo ~0 ~1 ~2 ~-0 ~-1 ~3 ~+1
BASH_ARGV0=hello; echo $0
