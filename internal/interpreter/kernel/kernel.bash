exec 250>/proc/self/fd/1 251>/proc/self/fd/2 || exec 250>&1 251>&2 # anew: programs make the shared ones non-blocking
# Interrupts are ignored except in a cell's code: one that comes while the shell writes cuts the
# message, and one that comes while it reads can end it. A trap that a cell sets is kept meanwhile.
trap '' INT
PS1= PS2= PS4='+ '
PROMPT_COMMAND=__paddock_shut # an interrupt drops the rest of a cell's line; another must not meet the shell while it reads
set +m +H +o history
__paddock_mark=${1#*:*:*:*:} __paddock_mark=${__paddock_mark%%:*} __paddock_count=0 __paddock_names=() __paddock_trap= __paddock_open=
set --
__paddock_send() { local LC_ALL=C; printf '\036%s.%04x%s' "$__paddock_mark" "${#2}" "$2" >&"$1" || exit 74; }
__paddock_shut() {
  [[ $__paddock_open ]] || return 0
  __paddock_trap=$(trap -p INT)
  trap '' INT
  __paddock_open=
}
__paddock_begin() {
  __paddock_count=$((__paddock_count + 1)) __paddock_names=()
  local __paddock_pair __paddock_seq=$1
  shift
  for __paddock_pair; do
    local __paddock_name=${__paddock_pair%%=*}
    if [[ -v $__paddock_name ]]; then
      __paddock_names+=("$__paddock_name=${!__paddock_name}")
    else
      __paddock_names+=("$__paddock_name")
    fi
    export "$__paddock_pair"
  done
  __paddock_send 250 "{\"t\":\"begun\",\"n\":\"$__paddock_seq\",\"count\":$__paddock_count}"
  __paddock_open=1
  eval "${__paddock_trap:-trap - INT}"
}
__paddock_end() {
  local status=$? pair
  __paddock_shut
  for pair in "${__paddock_names[@]}"; do
    case $pair in *=*) export "$pair" ;; *) unset "$pair" ;; esac
  done
  __paddock_names=()
  if [[ $status == 130 ]]; then
    __paddock_send 250 "{\"t\":\"error\",\"n\":\"$1\",\"name\":\"Interrupted\",\"value\":\"the cell was interrupted\",\"traceback\":\"\"}"
  elif [[ $status != 0 && $__paddock_ran ]]; then
    __paddock_send 250 "{\"t\":\"error\",\"n\":\"$1\",\"name\":\"ExitStatus\",\"value\":\"the cell ended with exit status $status\",\"traceback\":\"\"}"
  fi
  __paddock_send 250 "{\"t\":\"end\",\"n\":\"$1\"}"
  __paddock_send 251 "{\"t\":\"end\",\"n\":\"$1\"}"
}
__paddock_ran=1
__paddock_send 250 '{"t":"ready","n":"0"}'
__paddock_send 251 '{"t":"ready","n":"0"}'
