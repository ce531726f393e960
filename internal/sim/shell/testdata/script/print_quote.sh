# Functions are shown with the quotes that bash makes of $'' and $"".
f() {
  echo $'a\tb' $"c d" "$'x'" 'y$'\''z'
  v=$'\n'
  case $x in
    $'q') ;;
    *) ;;
  esac
}
declare -f f
g() {
  local v=x
  unset v
  declare -p v
}
g
