package interpreter

import (
	_ "embed"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock"
)

// A Language is the language of a cell.
type Language string

const (
	Python     Language = "python"
	JavaScript Language = "javascript"
	TypeScript Language = "typescript"
	Bash       Language = "bash"
	R          Language = "r"
	Java       Language = "java"
)

// Languages lists all languages.
func Languages() []Language {
	return []Language{Python, JavaScript, TypeScript, Bash, R, Java}
}

// ParseLanguage parses the name of a language, or one of its short forms. Empty is Python.
func ParseLanguage(name string) (Language, error) {
	switch name {
	case "", "python", "py", "python3":
		return Python, nil
	case "javascript", "js", "node":
		return JavaScript, nil
	case "typescript", "ts":
		return TypeScript, nil
	case "bash", "sh":
		return Bash, nil
	case "r", "R":
		return R, nil
	case "java":
		return Java, nil
	}
	return "", fmt.Errorf("language %q is not known: python, javascript, typescript, bash, r, java: %w", cut(name, 64), paddock.Invalid)
}

// A language says how its kernel is started and spoken to.
type language struct {
	needs     string // in words
	command   func(tag) []string
	source    func(mark string) []byte                 // what is sent first
	request   func(seq int64, c Cell, size int) []byte // size is at least its own
	text      func(string) int                         // bytes of a text in a request
	ping      func(seq int64) []byte
	interrupt string // sent besides the signal, where the language needs it

	// again is a program that interrupts whom the signal missed, with the process of
	// the kernel as its argument; nil is that the signal misses nobody.
	again []string
}

var (
	//go:embed kernel/kernel.py
	pythonKernel string
	//go:embed kernel/chart.py
	pythonChart string
	//go:embed kernel/kernel.js
	nodeKernel string
	//go:embed kernel/kernel.bash
	bashKernel string
	//go:embed kernel/interrupt.bash
	bashAgain string
	//go:embed kernel/kernel.r
	rKernel string
	//go:embed kernel/Kernel.java
	javaKernel string
)

// Programs that read the kernel's own from their input, so that it needs no file in
// the sandbox. The ways in is moved from descriptor 0 to one that user code does not
// read by accident.
const (
	pythonBoot = `import os,sys
f=os.fdopen(os.dup(0),"rb");n=os.open(os.devnull,os.O_RDONLY);os.dup2(n,0);os.close(n)
exec(compile(f.read(int(f.readline())),"<kernel>","exec"),{"__name__":"paddock_kernel","requests":f,"mark":sys.argv[1].split(":")[4]})`

	nodeShell = `exec 3<&0 </dev/null; exec node --no-warnings -e "$0" -- "$1"`
	nodeBoot  = `{const fs=require("fs");const read=n=>{const b=Buffer.alloc(n);for(let i=0;i<n;){try{const k=fs.readSync(3,b,i,n-i);if(!k)process.exit(1);i+=k}catch(e){if(e.code!=="EAGAIN")throw e}}return b};` +
		`let n="",c;while((c=read(1).toString())!=="\n")n+=c;` +
		`new Function("require","mark","language",read(+n).toString())(require,process.argv[1].split(":")[4],process.argv[1].split(":")[2])}`

	rShell = `exec 3<&0 </dev/null; exec Rscript --vanilla -e "$0" "$1"`
	rBoot  = `.in<-file("/dev/fd/3","rb",blocking=TRUE);.src<-readLines(.in,as.integer(readLines(.in,1)));eval(parse(text=.src),list2env(list(requests=.in),parent=baseenv()))`

	javaShell = `command -v java >/dev/null || exit 127; exec 3<&0 </dev/null; IFS= read -r n <&3; f=$(mktemp "${TMPDIR:-/tmp}/.paddock-kernel-XXXXXX") || exit 1; head -c "$n" <&3 >"$f"; exec java --source 11 -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto "$f" "$0" "$f"`
)

// size gives the bytes of the request for a cell: its own or a few more.
func (l language) size(c Cell) int {
	n := 100 + l.text(c.Code) // the number of the cell, and what is around the code
	for name, value := range c.Env {
		n += l.text(name) + l.text(value) + 2 // what is between them
	}
	return n
}

// languages is the table of them.
func languages() map[Language]language {
	python := language{
		needs:   "python3 (3.8 or later)",
		command: func(t tag) []string { return []string{"python3", "-c", pythonBoot, t.String()} },
		source:  func(string) []byte { return sized(pythonKernel + "\n" + pythonChart + "\nserve()\n") },
		request: jsonRequest, text: jsonSize, ping: jsonPing,
	}
	node := language{
		needs:   "node (20 or later)",
		command: func(t tag) []string { return []string{"/bin/sh", "-c", nodeShell, nodeBoot, t.String()} },
		source:  func(string) []byte { return sized(nodeKernel) },
		request: jsonRequest, text: jsonSize, ping: jsonPing,
		interrupt: "{\"interrupt\":true}\n",
	}
	typed := node
	typed.needs = "node (22.13, 23.2 or later, which can strip types)"
	return map[Language]language{
		Python: python, JavaScript: node, TypeScript: typed,
		Bash: {
			needs: "bash (4.4 or later)",
			command: func(t tag) []string {
				return []string{"bash", "--norc", "--noprofile", "--noediting", "-i", "-s", t.String()}
			},
			source:  func(string) []byte { return []byte(bashKernel) },
			request: bashRequest, text: quotedSize,
			ping:  func(seq int64) []byte { return fmt.Appendf(nil, "\n__paddock_end %d\n", seq) },
			again: []string{"bash", "--norc", "--noprofile", "-c", bashAgain, "paddock-interrupt"},
		},
		R: {
			needs:   "Rscript",
			command: func(t tag) []string { return []string{"/bin/sh", "-c", rShell, rBoot, t.String()} },
			source: func(string) []byte {
				return fmt.Appendf(nil, "%d\n%s", strings.Count(rKernel, "\n"), rKernel)
			},
			request: plainRequest, text: text64Size, ping: plainPing,
		},
		Java: {
			needs:   "a JDK (11 or later, with jshell)",
			command: func(t tag) []string { return []string{"/bin/sh", "-c", javaShell, t.String()} },
			source:  func(string) []byte { return sized(javaKernel) },
			request: plainRequest, text: text64Size, ping: plainPing,
			interrupt: "interrupt\n",
		},
	}
}

// sized is a program after its size.
func sized(source string) []byte {
	return fmt.Appendf(nil, "%d\n%s", len(source), source)
}

// jsonRequest is a line of JSON. The number is a string, because numbers of JavaScript are too small.
func jsonRequest(seq int64, c Cell, size int) []byte {
	line := fmt.Appendf(make([]byte, 0, size), `{"n":"%d","code":`, seq)
	line = appendJSON(line, c.Code)
	line = append(line, `,"env":{`...)
	for n, name := range slices.Sorted(maps.Keys(c.Env)) {
		if n > 0 {
			line = append(line, ',')
		}
		line = appendJSON(line, name)
		line = append(line, ':')
		line = appendJSON(line, c.Env[name])
	}
	return append(line, "}}\n"...)
}

// appendJSON appends a text as a string of JSON. Package json would make six bytes of one for
// characters of HTML, which code has many of, and keep the memory for its next text.
func appendJSON(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\r':
			b = append(b, '\\', 'r')
		case r == '\t':
			b = append(b, '\\', 't')
		case r < ' ':
			b = append(b, '\\', 'u', '0', '0', "0123456789abcdef"[r>>4], "0123456789abcdef"[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// jsonSize gives the bytes that appendJSON appends.
func jsonSize(s string) int {
	n := 2
	for _, r := range s {
		switch {
		case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t':
			n += 2
		case r < ' ':
			n += 6
		default:
			n += utf8.RuneLen(r)
		}
	}
	return n
}

func jsonPing(seq int64) []byte { return fmt.Appendf(nil, "{\"n\":\"%d\",\"ping\":true}\n", seq) }

// plainRequest is a line of words, for languages without JSON: the code, and then
// names and values of variables, all in base64.
func plainRequest(seq int64, c Cell, size int) []byte {
	line := fmt.Appendf(make([]byte, 0, size), "run %d ", seq)
	line = append64(line, c.Code)
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		line = append64(append(line, ' '), name)
		line = append64(append(line, ' '), c.Env[name])
	}
	return append(line, '\n')
}

// append64 appends a text in base64. It is never empty, so that words can be counted.
func append64(b []byte, s string) []byte {
	const piece = 3 << 10 // whose base64 is not padded
	b = append(b, '=')
	for ; len(s) > piece; s = s[piece:] {
		b = base64.StdEncoding.AppendEncode(b, []byte(s[:piece]))
	}
	return base64.StdEncoding.AppendEncode(b, []byte(s))
}

// text64Size gives the bytes that append64 appends.
func text64Size(s string) int { return 1 + base64.StdEncoding.EncodedLen(len(s)) }

func plainPing(seq int64) []byte { return fmt.Appendf(nil, "ping %d\n", seq) }

// bashRequest is a command for the shell.
func bashRequest(seq int64, c Cell, size int) []byte {
	b := fmt.Appendf(make([]byte, 0, size), "{ __paddock_begin %d", seq)
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		b = appendQuoted(append(b, ' '), name, "=", c.Env[name])
	}
	b = append(b, "; eval "...)
	b = appendQuoted(b, c.Code)
	return fmt.Appendf(b, "\n} </dev/null\n__paddock_end %d\n", seq)
}

// appendQuoted appends texts as one word for a shell.
func appendQuoted(b []byte, texts ...string) []byte {
	b = append(b, '\'')
	for _, s := range texts {
		part, rest, more := strings.Cut(s, "'")
		for b = append(b, part...); more; b = append(b, part...) {
			b = append(b, `'\''`...)
			part, rest, more = strings.Cut(rest, "'")
		}
	}
	return append(b, '\'')
}

// quotedSize gives the bytes that appendQuoted appends.
func quotedSize(s string) int { return 2 + len(s) + 3*strings.Count(s, "'") }

// A tag is the last argument of a kernel's process: by it a later Interpreter knows
// what it is.
type tag struct {
	language  Language
	id        string
	mark      string
	byDefault bool
}

const tagName, tagVersion = "paddock-kernel", "1"

func (t tag) String() string {
	kind := "made"
	if t.byDefault {
		kind = "default"
	}
	return strings.Join([]string{tagName, tagVersion, string(t.language), t.id, t.mark, kind}, ":")
}

// parseTag reads the tag of a process, which a guest may have made up.
func parseTag(args []string) (tag, bool) {
	if len(args) == 0 {
		return tag{}, false
	}
	f := strings.Split(args[len(args)-1], ":")
	if len(f) != 6 || f[0] != tagName || f[1] != tagVersion || !digits(f[3], 32) || !digits(f[4], markSize) || (f[5] != "made" && f[5] != "default") {
		return tag{}, false
	}
	if !slices.Contains(Languages(), Language(f[2])) {
		return tag{}, false
	}
	return tag{Language(f[2]), f[3], f[4], f[5] == "default"}, true
}

// digits tells whether s is n hexadecimal digits.
func digits(s string, n int) bool {
	return len(s) == n && strings.Trim(s, "0123456789abcdef") == ""
}
