package archive

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// The real tools of this file are scripts around gzip and its like, and so are
// these: the shell runs them, with the tools of this computer.

const searchScript = `pat= opts=() files=() have=0 list=0
while [ $# -gt 0 ]; do
  case $1 in
  --) shift; break ;;
  -e|-f) opts+=("$1" "$2"); have=1; shift ;;
  -e*|-f*|--regexp=*|--file=*) opts+=("$1"); have=1 ;;
  -A|-B|-C|-m|--context|--max-count) opts+=("$1" "$2"); shift ;;
  --help) echo "Usage: $NAME [OPTION]... [-e] PATTERN [FILE]..."; echo "Look for instances of PATTERN in the input FILEs, using their"; echo "uncompressed contents if they are compressed."; exit 0 ;;
  -?*) opts+=("$1"); case $1 in -[!-]*l*|--files-with-matches) list=1 ;; esac ;;
  *) break ;;
  esac
  shift
done
if [ $have = 0 ]; then
  [ $# -gt 0 ] || { echo "$NAME: missing pattern" >&2; exit 2; }
  opts+=(-e "$1"); shift
fi
[ $# -gt 0 ] || set -- -
many=$#
status=1
for f; do
  if [ "$f" != - ] && [ ! -e "$f" ] ; then echo "$TOOL: $f: No such file or directory" >&2; status=2; continue; fi
  label=$f; [ "$f" = - ] && label='(standard input)'
  if [ $many -gt 1 ] || [ $list = 1 ]; then how=-H; else how=-h; fi
  case " ${opts[*]} " in *' -h '*) how=-h ;; *' -H '*) how=-H ;; esac
  open "$f" | $GREP $how --label="$label" "${opts[@]}"
  got=${PIPESTATUS[1]}
  [ $got -eq 0 ] && [ $status -ne 2 ] && status=0
  [ $got -gt 1 ] && status=$got
done
exit $status
`

const compareScript = `opts=() files=()
for a; do case $a in --help) echo "Usage: $NAME [OPTION]... FILE1 [FILE2]"; exit 0 ;; -?*) opts+=("$a") ;; *) files+=("$a") ;; esac; done
case ${#files[@]} in
1) files+=("${files[0]%.*}") ;;
2) ;;
*) echo "$NAME: invalid number of operands; try '$NAME --help' for help" >&2; exit 2 ;;
esac
for f in "${files[@]}"; do [ -e "$f" ] || { echo "gzip: $f: No such file or directory" >&2; exit 2; }; done
$WITH "${opts[@]}" <(open "${files[0]}") <(open "${files[1]}")
`

// scripted runs one of the scripts as the program that it is called by.
func scripted(t *kernel.Task) int {
	name := t.Name()
	tool, cat := "gzip", `open() { case $1 in -) gzip -cdf ;; *.bz2) bzip2 -cd -- "$1" ;; *.xz|*.lzma) xz -cd -- "$1" ;; *.zst) zstd -cdq -- "$1" ;; *) gzip -cdf -- "$1" ;; esac; }`
	switch {
	case strings.HasPrefix(name, "bz"):
		tool, cat = "bzip2", `open() { case $1 in -) bzip2 -cdf ;; *) bzip2 -cdf -- "$1" ;; esac; }`
	case strings.HasPrefix(name, "xz"):
		tool, cat = "xz", `open() { case $1 in -) xz -cdf ;; *) xz -cdf -- "$1" ;; esac; }`
	case strings.HasPrefix(name, "zstd"):
		tool, cat = "zstd", `open() { case $1 in -) zstd -cdfq ;; *) zstd -cdfq -- "$1" ;; esac; }`
	}
	body := compareScript
	with := "grep"
	switch {
	case strings.HasSuffix(name, "egrep"):
		body, with = searchScript, "grep -E"
	case strings.HasSuffix(name, "fgrep"):
		body, with = searchScript, "grep -F"
	case strings.HasSuffix(name, "grep"):
		body = searchScript
	case strings.HasSuffix(name, "cmp"):
		with = "cmp"
	case strings.HasSuffix(name, "diff"):
		with = "diff"
	default:
		body = `for f; do open "$f"; done; [ $# -gt 0 ] || open -` + "\n"
	}
	script := "NAME=" + name + " TOOL=" + tool + " GREP='" + with + "' WITH=" + strings.Fields(with)[0] + "\n" + cat + "\n" + body
	if err := t.Flush(); err != nil {
		return 2
	}
	code, err := t.Exec(kernel.Command{Path: "/usr/bin/bash", Args: append([]string{name, "-c", script, name}, t.Args[1:]...)})
	if err != nil {
		t.Errorf("%s", reason(err))
		return 127
	}
	return code
}
