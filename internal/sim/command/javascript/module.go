package javascript

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command/javascript/quickjs"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// A packageFile is what counts of a package.json.
type packageFile struct {
	Type    string          `json:"type"`
	Main    string          `json:"main"`
	Module  string          `json:"module"`
	Exports json.RawMessage `json:"exports"`
	Imports json.RawMessage `json:"imports"`
	Name    string          `json:"name"`
	dir     string
}

func (p *program) isFile(name string) bool {
	i, err := p.t.View.Stat(name)
	return err == nil && !i.IsDir()
}

// packageAt reads the package.json of a directory, or gives nil.
func (p *program) packageAt(dir string) (*packageFile, error) {
	if f, ok := p.packages[dir]; ok {
		return f, nil
	}
	p.t.Step(1)
	b, err := p.t.View.ReadFile(path.Join(dir, "package.json"), 1<<20)
	var f *packageFile
	if err == nil {
		f = &packageFile{dir: dir}
		if err := json.Unmarshal(b, f); err != nil {
			return nil, &quickjs.Thrown{Message: fmt.Sprintf("Invalid package config %s.", path.Join(dir, "package.json")), Code: "ERR_INVALID_PACKAGE_CONFIG"}
		}
	}
	p.packages[dir] = f
	return f, nil
}

// packageOf finds the package that a file is part of.
func (p *program) packageOf(file string) (*packageFile, error) {
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if path.Base(dir) == "node_modules" {
			return nil, nil
		}
		if f, err := p.packageAt(dir); f != nil || err != nil {
			return f, err
		}
		if dir == "/" {
			return nil, nil
		}
	}
}

// resolve finds the file that a program names.
func (p *program) resolve(name, from string, imported bool) (string, error) {
	missing := fmt.Sprintf("Cannot find module '%s'\nRequire stack:\n- %s", name, from)
	if imported {
		missing = fmt.Sprintf("Cannot find package '%s' imported from %s", name, from)
		if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/") {
			missing = fmt.Sprintf("Cannot find module '%s' imported from %s", path.Join(path.Dir(from), name), from)
		}
	}
	if rest, ok := strings.CutPrefix(name, "file://"); ok {
		name = rest
	}
	dir := path.Dir(from)
	switch {
	case strings.Contains(name, "\x00") || name == "":
		return "", &quickjs.Thrown{Message: missing, Code: "MODULE_NOT_FOUND"}
	case strings.HasPrefix(name, "/"), name == ".", name == "..", strings.HasPrefix(name, "./"), strings.HasPrefix(name, "../"):
		return p.find(name, dir, missing)
	case strings.HasPrefix(name, "#"):
		own, err := p.packageOf(from)
		if err != nil {
			return "", err
		}
		if own != nil {
			if target := conditional(p.t, own.Imports, name, imported); target != "" {
				if strings.HasPrefix(target, ".") {
					return p.find(path.Join(own.dir, target), dir, missing)
				}
				return p.resolve(target, path.Join(own.dir, "package.json"), imported)
			}
		}
	default:
		if file, err := p.resolvePackage(name, from, imported, missing); file != "" || err != nil {
			return file, err
		}
	}
	return "", p.missing(missing, imported)
}

func (*program) missing(text string, imported bool) error {
	code := "MODULE_NOT_FOUND"
	if imported {
		code = "ERR_MODULE_NOT_FOUND"
	}
	return &quickjs.Thrown{Message: text, Code: code}
}

// resolvePackage looks for a package in the directories node_modules.
func (p *program) resolvePackage(name, from string, imported bool, missing string) (string, error) {
	parts := strings.SplitN(name, "/", 3)
	n := 1
	if strings.HasPrefix(name, "@") {
		n = 2
	}
	if len(parts) < n {
		return "", nil
	}
	pkg := strings.Join(parts[:n], "/")
	sub := "." + strings.TrimPrefix(name, pkg)
	if own, err := p.packageOf(from); err == nil && own != nil && own.Name == pkg && own.Exports != nil {
		if target := conditional(p.t, own.Exports, sub, imported); target != "" {
			return p.find(path.Join(own.dir, target), own.dir, missing)
		}
	}
	for dir := path.Dir(from); ; dir = path.Dir(dir) {
		p.t.Step(1)
		if path.Base(dir) != "node_modules" {
			at := path.Join(dir, "node_modules", pkg)
			if i, err := p.t.View.Stat(at); err == nil && i.IsDir() {
				f, err := p.packageAt(at)
				if err != nil {
					return "", err
				}
				if f != nil && f.Exports != nil && string(f.Exports) != "null" {
					target := conditional(p.t, f.Exports, sub, imported)
					if target == "" {
						return "", &quickjs.Thrown{Message: fmt.Sprintf("Package subpath '%s' is not defined by \"exports\" in %s/package.json", sub, at), Code: "ERR_PACKAGE_PATH_NOT_EXPORTED"}
					}
					return p.find(path.Join(at, target), at, missing)
				}
				return p.find(path.Join(at, sub), at, missing)
			}
			if sub == "." {
				if file := p.extended(at); file != "" {
					return p.real(file), nil
				}
			}
		}
		if dir == "/" {
			break
		}
	}
	for _, dir := range strings.Split(p.t.Getenv("NODE_PATH"), ":") {
		if dir != "" {
			if file, err := p.find(path.Join(dir, name), dir, missing); err == nil {
				return file, nil
			}
		}
	}
	return "", nil
}

// maxConditions is how deep the conditions of an export may be nested.
const maxConditions = 20

// conditional finds the target of a name in a package's exports or imports.
func conditional(t *kernel.Task, table json.RawMessage, name string, imported bool) string {
	if len(table) == 0 {
		return ""
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(table, &m) != nil || !hasPath(m) {
		if name != "." {
			return ""
		}
		return target(table, imported, maxConditions)
	}
	if found, ok := m[name]; ok {
		return target(found, imported, maxConditions)
	}
	best := ""
	for pattern := range m {
		before, after, ok := strings.Cut(pattern, "*")
		if ok && strings.HasPrefix(name, before) && strings.HasSuffix(name, after) && len(name) >= len(pattern)-1 && len(pattern) > len(best) {
			best = pattern
		}
	}
	if best == "" {
		return ""
	}
	before, after, _ := strings.Cut(best, "*")
	star := name[len(before) : len(name)-len(after)]
	return kernel.ReplaceAll(t, target(m[best], imported, maxConditions), "*", star)
}

func hasPath(m map[string]json.RawMessage) bool {
	for k := range m {
		if strings.HasPrefix(k, ".") || strings.HasPrefix(k, "#") {
			return true
		}
	}
	return false
}

func target(t json.RawMessage, imported bool, depth int) string {
	if depth == 0 {
		return ""
	}
	var s string
	if json.Unmarshal(t, &s) == nil {
		return s
	}
	var list []json.RawMessage
	if json.Unmarshal(t, &list) == nil {
		for _, x := range list {
			if s := target(x, imported, depth-1); s != "" {
				return s
			}
		}
		return ""
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(t, &m) != nil {
		return ""
	}
	way := "require"
	if imported {
		way = "import"
	}
	for _, condition := range []string{"node", way, "module-sync", "default"} {
		if x, ok := m[condition]; ok {
			if s := target(x, imported, depth-1); s != "" {
				return s
			}
		}
	}
	return ""
}

// find finds a file by a path, as it is, with an extension, or as a directory.
func (p *program) find(name, dir, missing string) (string, error) {
	slash := strings.HasSuffix(name, "/")
	if !strings.HasPrefix(name, "/") {
		name = path.Join(dir, name)
	}
	name = path.Clean(name)
	if !slash {
		if file := p.extended(name); file != "" {
			return p.real(file), nil
		}
	}
	if i, err := p.t.View.Stat(name); err == nil && i.IsDir() {
		f, err := p.packageAt(name)
		if err != nil {
			return "", err
		}
		if f != nil && f.Main != "" {
			at := path.Join(name, f.Main)
			if file := p.extended(at); file != "" {
				return p.real(file), nil
			}
			if file := p.extended(path.Join(at, "index")); file != "" {
				return p.real(file), nil
			}
		}
		if file := p.extended(path.Join(name, "index")); file != "" {
			return p.real(file), nil
		}
	}
	return "", p.missing(missing, strings.Contains(missing, " imported from "))
}

func (p *program) extended(name string) string {
	p.t.Step(1)
	for _, ext := range []string{"", ".js", ".json", ".cjs", ".mjs"} {
		if p.isFile(name + ext) {
			return name + ext
		}
	}
	return ""
}

// real follows links, as node does before it takes a file for a module.
func (p *program) real(name string) string {
	if real, err := p.t.View.Realpath(name); err == nil {
		return real
	}
	return name
}

func withoutShebang(s string) string {
	if strings.HasPrefix(s, "#!") {
		return "//" + s[2:]
	}
	return s
}

// source reads the text of a module.
func (p *program) source(file string) (string, error) {
	switch path.Ext(file) {
	case ".ts", ".mts", ".cts", ".tsx", ".jsx":
		return "", &quickjs.Thrown{Message: file + ": TypeScript and JSX are not supported in this sandbox: write JavaScript", Code: "ERR_UNKNOWN_FILE_EXTENSION", Class: "TypeError"}
	case ".node", ".wasm":
		return "", &quickjs.Thrown{Message: file + ": native code is not supported in this sandbox", Code: "ERR_UNKNOWN_FILE_EXTENSION", Class: "TypeError"}
	}
	b, err := p.readAll(file, linux.O_RDONLY, p.t.K.Limits.Source)
	if err != nil {
		return "", failed(err, "open", file, "")
	}
	return withoutShebang(strings.TrimPrefix(string(b), "\uFEFF")), nil
}

// isModule reports whether a file is an ES module.
func (p *program) isModule(file, code string) (bool, error) {
	switch path.Ext(file) {
	case ".mjs":
		return true, nil
	case ".cjs", ".json":
		return false, nil
	}
	if known, ok := p.typed[file]; ok {
		return known, nil
	}
	f, err := p.packageOf(file)
	if err != nil {
		return false, err
	}
	is := f != nil && f.Type == "module" || (f == nil || f.Type == "") && p.e.IsModule(code)
	p.typed[file] = is
	return is, nil
}

const wrapper = "(function (exports, require, module, __filename, __dirname) {"

// file runs the program's main file. The value is a promise for an ES module.
func (p *program) file(file string) (quickjs.Value, error) {
	code, err := p.source(file)
	if err != nil {
		return quickjs.Undefined(), err
	}
	is, err := p.isModule(file, code)
	if err != nil {
		return quickjs.Undefined(), err
	}
	if !is && path.Ext(file) != ".json" && path.Ext(file) != ".cjs" && strings.Contains(code, "await") {
		// As newer ones do it: what only makes sense as a module is one.
		if p.e.Compile(wrapper+code+"\n})", file, false) != nil && p.e.Compile(code, file, true) == nil {
			is = true
			p.typed[file] = true
		}
	}
	if is {
		return p.e.EvalModule(code, file, meta(file))
	}
	return p.e.Call(p.hooks["load"], quickjs.Undefined(), file)
}

func meta(file string) map[string]any {
	return map[string]any{"url": "file://" + file, "filename": file, "dirname": path.Dir(file)}
}

// compile makes the function of a CommonJS module.
func (p *program) compile(file string) (any, error) {
	code, err := p.source(file)
	if err != nil {
		return nil, err
	}
	is, err := p.isModule(file, code)
	if err != nil {
		return nil, err
	}
	if is {
		return nil, &quickjs.Thrown{Message: "require() of ES Module " + file + " not supported.\nInstead change the require of " + path.Base(file) + " to a dynamic import() which is available in all CommonJS modules.", Code: "ERR_REQUIRE_ESM"}
	}
	return p.e.Eval(wrapper+code+"\n})", file, quickjs.Script)
}

func (p *program) resolveImport(base, name string) (string, error) {
	bare := strings.TrimPrefix(name, "node:")
	if slices.Contains(modules(), bare) {
		return "node:" + bare, nil
	}
	if strings.HasPrefix(name, "node:") {
		return "", &quickjs.Thrown{Message: "No such built-in module: " + name, Code: "ERR_UNKNOWN_BUILTIN_MODULE"}
	}
	if strings.HasPrefix(name, "http:") || strings.HasPrefix(name, "https:") || strings.HasPrefix(name, "data:") {
		return "", &quickjs.Thrown{Message: "Only URLs with a scheme in: file and node are supported in this sandbox. Received '" + name + "'", Code: "ERR_UNSUPPORTED_ESM_URL_SCHEME"}
	}
	if !strings.HasPrefix(base, "/") {
		base = p.absolute("[eval]")
	}
	return p.resolve(name, base, true)
}

// loadImport gives the source of an ES module. What is not one is made one:
// its value is handed over as a part of import.meta.
func (p *program) loadImport(name string) (string, map[string]any, error) {
	code, is := "", false
	if !strings.HasPrefix(name, "node:") && path.Ext(name) != ".json" {
		var err error
		if code, err = p.source(name); err != nil {
			return "", nil, err
		}
		if is, err = p.isModule(name, code); err != nil {
			return "", nil, err
		}
	}
	if is {
		return code, meta(name), nil
	}
	value, err := p.e.Call(p.hooks["expose"], quickjs.Undefined(), name)
	if err != nil {
		return "", nil, err
	}
	list, err := p.e.Call(p.hooks["names"], quickjs.Undefined(), value)
	if err != nil {
		return "", nil, err
	}
	names := p.e.Strings(list)
	p.e.Free(list)
	var b strings.Builder
	b.WriteString("const v = import.meta.value; export default v;")
	for i, n := range names {
		if n != "default" {
			q := strconv.QuoteToASCII(n)
			if strings.Contains(q, `\x`) || strings.Contains(q, `\U`) || strings.Contains(q, `\a`) || strings.Contains(q, `\v`) {
				continue // nobody can name it
			}
			fmt.Fprintf(&b, "const x%d = v[%s]; export { x%d as %s };", i, q, i, q)
		}
	}
	return b.String(), map[string]any{"value": value}, nil
}
