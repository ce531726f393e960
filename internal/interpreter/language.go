package interpreter

import (
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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
	source    func(mark string) []byte // what is sent first
	request   func(seq int64, c Cell) ([]byte, error)
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

// languages is the table of them.
func languages() map[Language]language {
	python := language{
		needs:   "python3 (3.8 or later)",
		command: func(t tag) []string { return []string{"python3", "-c", pythonBoot, t.String()} },
		source:  func(string) []byte { return sized(pythonKernel + "\n" + pythonChart + "\nserve()\n") },
		request: jsonRequest, ping: jsonPing,
	}
	node := language{
		needs:   "node (20 or later)",
		command: func(t tag) []string { return []string{"/bin/sh", "-c", nodeShell, nodeBoot, t.String()} },
		source:  func(string) []byte { return sized(nodeKernel) },
		request: jsonRequest, ping: jsonPing,
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
			request: bashRequest,
			ping:    func(seq int64) []byte { return fmt.Appendf(nil, "\n__paddock_end %d\n", seq) },
			again:   []string{"bash", "--norc", "--noprofile", "-c", bashAgain, "paddock-interrupt"},
		},
		R: {
			needs:   "Rscript",
			command: func(t tag) []string { return []string{"/bin/sh", "-c", rShell, rBoot, t.String()} },
			source: func(string) []byte {
				return fmt.Appendf(nil, "%d\n%s", strings.Count(rKernel, "\n"), rKernel)
			},
			request: plainRequest, ping: plainPing,
		},
		Java: {
			needs:   "a JDK (11 or later, with jshell)",
			command: func(t tag) []string { return []string{"/bin/sh", "-c", javaShell, t.String()} },
			source:  func(string) []byte { return sized(javaKernel) },
			request: plainRequest, ping: plainPing,
			interrupt: "interrupt\n",
		},
	}
}

// sized is a program after its size.
func sized(source string) []byte {
	return fmt.Appendf(nil, "%d\n%s", len(source), source)
}

// jsonRequest is a line of JSON.
func jsonRequest(seq int64, c Cell) ([]byte, error) {
	line, err := json.Marshal(struct {
		Seq  string            `json:"n"` // a string: numbers of JavaScript are too small
		Code string            `json:"code"`
		Env  map[string]string `json:"env"`
	}{strconv.FormatInt(seq, 10), c.Code, c.Env})
	if err != nil {
		return nil, fmt.Errorf("encode a cell: %w", err)
	}
	return append(line, '\n'), nil
}

func jsonPing(seq int64) []byte { return fmt.Appendf(nil, "{\"n\":\"%d\",\"ping\":true}\n", seq) }

// plainRequest is a line of words, for languages without JSON: the code, and then
// names and values of variables, all in base64.
func plainRequest(seq int64, c Cell) ([]byte, error) {
	line := fmt.Appendf(nil, "run %d %s", seq, text64(c.Code))
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		line = fmt.Appendf(line, " %s %s", text64(name), text64(c.Env[name]))
	}
	return append(line, '\n'), nil
}

// text64 is never empty, so that words can be counted.
func text64(s string) string { return "=" + base64.StdEncoding.EncodeToString([]byte(s)) }

func plainPing(seq int64) []byte { return fmt.Appendf(nil, "ping %d\n", seq) }

// bashRequest is a command for the shell.
func bashRequest(seq int64, c Cell) ([]byte, error) {
	b := []byte("{ __paddock_begin " + strconv.FormatInt(seq, 10))
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		b = append(b, ' ')
		b = append(b, quote(name+"="+c.Env[name])...)
	}
	b = append(b, "; eval "...)
	b = append(b, quote(c.Code)...)
	b = append(b, "\n} </dev/null\n"...)
	return fmt.Appendf(b, "__paddock_end %d\n", seq), nil
}

// quote makes one word of a text for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

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
