# What functions of a script on standard input say about where they are.
f() {
  declare -p FUNCNAME BASH_SOURCE BASH_LINENO
  caller
  caller 0
  echo "none: $?"
  g
}
g() {
  caller
  caller 0
  caller 1
  echo "none: $?"
}
f
declare -p FUNCNAME BASH_SOURCE BASH_LINENO
nosuchcommand() { nosuch; }
nosuchcommand 2>&1
