# Interrupts once more the kernel for bash whose process is $1, and those of its group
# whom the interrupt missed: a child that was between fork and exec when it came, where
# it is lost. Who has the signal's default action would be dead had it come; who is still
# the shell itself, under the kernel's own arguments, may have lost it. Others handle it
# in their own way, and are let alone. Where the system does not tell how a process takes
# a signal, it is interrupted. A shell also forgets an interrupt that comes while it waits
# for a child which ends by itself: one in a loop of short commands takes several.
# A number that is another program's by now is let alone.
LC_ALL=C kernel=$1
mapfile -d '' -t own <"/proc/$kernel/cmdline" || exit
[[ ${own[*]: -1} == paddock-kernel:* ]] || exit
for _ in {1..10}; do
  kill -INT "$kernel" || exit
  for dir in /proc/[0-9]*; do
    pid=${dir#/proc/} line= missed=1
    [[ $pid != "$kernel" ]] || continue
    IFS= read -r -d '' line <"$dir/stat"
    fields=(${line##*) })
    [[ ${fields[2]} == "$kernel" ]] || continue
    mapfile -d '' -t args <"$dir/cmdline"
    while read -r name value; do
      case $name in
      SigIgn:) (( (16#${value: -8} & 2) == 0 )) || missed= ;;
      SigCgt:) (( (16#${value: -8} & 2) == 0 )) || [[ ${args[*]: -1} == "${own[*]: -1}" ]] || missed= ;;
      esac
    done <"$dir/status"
    [[ ! $missed ]] || kill -INT "$pid"
  done
done 2>/dev/null
:
