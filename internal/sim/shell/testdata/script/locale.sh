# In the locale C a character is a byte, from the assignment on and for as long
# as it holds.
codes() { local i; for ((i = 0; i < ${#1}; i++)); do printf '%d ' "'${1:i:1}"; done; echo; }
x=aé€; echo ${#x}; codes "$x"
(LC_ALL=C; echo ${#x}; codes "$x")
inner() { local LC_ALL=C; codes "$x"; }; inner; echo ${#x}
LC_ALL=POSIX eval 'echo ${#x}'; echo ${#x}
encoded() { local LC_ALL=C i c; for ((i = 0; i < ${#1}; i++)); do c=${1:i:1}; case $c in [a-zA-Z0-9.~_-]) printf %s "$c" ;; *) printf '%%%02X' "'$c" ;; esac; done; echo; }
encoded 'a b/é€😀~z'
LC_ALL=; LC_CTYPE=C; echo ${#x}; LC_CTYPE=C.UTF-8; echo ${#x}; unset LC_ALL LC_CTYPE; LANG=C; echo ${#x}; LANG=C.UTF-8; echo ${#x}
a=(é ab); LC_ALL=C; echo ${#a[0]} ${#a[1]} ${#a[@]}; codes "${a[0]:1}"; codes "${x: -3:2}"
codes "${x#?}"; codes "${x%??}"; codes "${x/?/}"; codes "${x/%[!a]/}"; echo "${x//[!a]/.}" "${x//?/.}" "${x//[[:alpha:]]/.}"
[[ é == ?? ]] && echo two; [[ é == ? ]] || echo not one; [[ $x == a????? ]] && echo six; [[ é =~ ^..$ ]] && echo matches; [[ é == *$'\251' ]] && echo ends
[[ éééééééééé == *$'\303'? ]] && echo tail; [[ éééééééééé == *[!a]$'\251'??$'\251' ]] || echo no tail; m=aé; m=${m##*?}; echo "<$m>"; m=aéb; codes "${m%[!a]?}"; codes "${m%%[!a]*}"; codes "${m/$'\303'*/-}"
case é in ?) echo 1 ;; ??) echo 2 ;; esac
shopt -s nocasematch extglob; [[ É == é ]] || echo other; [[ AÉ == aÉ ]] && echo same; [[ é == +(?) ]] && echo many; [[ é == !(?) ]] && echo not; shopt -u nocasematch
y=É; codes "${y,,}"; codes "${y~~}"; codes "${y@L}"; z=Aé; echo "${#z}" "${z,,}" "${z^}"
read -n 1 c <<< é; echo ${#c}; codes "$c"; read -N 2 c <<< éa; codes "$c"
touch é ab; for f in ??; do echo "$f"; done; for f in ?; do echo "$f"; done
LC_ALL=C.UTF-8; for f in ?; do echo "$f"; done; echo ${#x} "${x:1:1}" "${x#?}" "${y,,}"; [[ é == ? ]] && echo one; [[ é =~ ^.$ ]] && echo matches; case é in ?) echo 1 ;; ??) echo 2 ;; esac
read -n 1 c <<< é; echo $c; printf '%d\n' "'é"
rm é ab
