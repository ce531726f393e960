package jq

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// yqOptions are what the command line of yq says.
type yqOptions struct {
	all                  bool // eval-all
	null, inPlace, exit  bool
	noSeparator, pretty  bool
	nul, parse           bool
	unwrap               int // of strings: 1 is on, -1 off, 0 as the format has it
	in, out              string
	indent               int
	split                string
	front                string
	csvComma, tsvComma   rune
	attribute, content   string
	propsSeparator       string
	expression, fromFile string
	names                []string
}

func yqSpec() *command.Spec {
	return &command.Spec{
		Name: "yq", Synopsis: "[eval|eval-all] [FLAGS] [EXPRESSION] [FILE]...", NoTry: true,
		About: "Read and change YAML, JSON, XML, CSV, TSV, TOML, INI and properties, by expressions like jq's, in the manner of mikefarah's yq, version 4. Comments, styles and the order of keys survive a change.",
		Options: []command.Option{
			{Short: 'i', Long: "inplace", Help: "update the first file in place"},
			{Short: 'n', Long: "null-input", Help: "do not read input; evaluate the expression by itself"},
			{Short: 'p', Long: "input-format", Arg: command.Required, Name: "FORMAT", Help: "auto, yaml, json, xml, csv, tsv, toml, props, ini, base64, uri"},
			{Short: 'o', Long: "output-format", Arg: command.Required, Name: "FORMAT", Help: "auto, yaml, json, xml, csv, tsv, toml, props, ini, base64, uri, sh, shell"},
			{Short: 'I', Long: "indent", Arg: command.Required, Name: "N", Help: "indentation of the output (2)"},
			{Short: 'P', Long: "prettyPrint", Help: "drop the styles: block style, plain words"},
			{Short: 'r', Long: "unwrapScalar", Arg: command.Optional, Name: "BOOL", Help: "print strings by themselves, without quotes (for YAML that is so anyway)"},
			{Short: 'e', Long: "exit-status", Help: "status 1 if there is no result, or it is null or false"},
			{Short: 'N', Long: "no-doc", Help: "no --- between documents"},
			{Short: '0', Long: "nul-output", Help: "a NUL behind each result"},
			{Short: 's', Long: "split-exp", Arg: command.Required, Name: "EXPRESSION", Help: "write each result into a file of the name that this gives ($index counts)"},
			{Short: 'j', Long: "tojson", Help: "the same as -o json"},
			{Short: 'C', Long: "colors", Help: "accepted; there are no colors"},
			{Short: 'M', Long: "no-colors", Help: "accepted"},
			{Short: 'v', Long: "verbose", Help: "accepted"},
			{Short: 'f', Long: "front-matter", Arg: command.Required, Name: "extract|process", Help: "the YAML at the head of a text"},
			{Long: "expression", Arg: command.Required, Name: "EXPRESSION", Help: "the expression; all operands are files"},
			{Long: "from-file", Arg: command.Required, Name: "FILE", Help: "read the expression from a file"},
			{Long: "csv-auto-parse", Arg: command.Optional, Name: "BOOL", Help: "fields of CSV may be numbers and so on (true)"},
			{Long: "tsv-auto-parse", Arg: command.Optional, Name: "BOOL", Help: "the same for TSV"},
			{Long: "csv-separator", Arg: command.Required, Name: "C", Help: "what separates fields of CSV"},
			{Long: "properties-separator", Arg: command.Required, Name: "TEXT", Help: "what is between a property and its value (\" = \")"},
			{Long: "xml-attribute-prefix", Arg: command.Required, Name: "TEXT", Help: "what the names of attributes begin with (+@)"},
			{Long: "xml-content-name", Arg: command.Required, Name: "NAME", Help: "the name of text beside attributes (+content)"},
		},
	}
}

func runYQ(t *kernel.Task) int {
	args := t.Args[1:]
	o := &yqOptions{in: "auto", out: "auto", indent: 2, csvComma: ',', tsvComma: '\t', attribute: "+@", content: "+content", propsSeparator: " = ", parse: true}
	if len(args) > 0 {
		switch args[0] {
		case "e", "eval":
			args = args[1:]
		case "ea", "eval-all":
			args, o.all = args[1:], true
		}
	}
	a, status, ok := yqSpec().ParseArgs(t, args)
	if !ok {
		return status
	}
	m := newMachine(t)
	w := &weaver{m: m, o: o, made: map[*yaml.Node]value{}, open: map[*yaml.Node]bool{}}
	m.yq = w
	m.globals["ENV"] = m.environment()
	if err := o.read(t, a); err != nil {
		return w.complain(err)
	}
	return w.main()
}

func (w *weaver) complain(err error) int {
	_, _ = w.m.t.Write(2, []byte("Error: "+err.Error()+"\n"))
	return 1
}

// read takes the flags and operands.
func (o *yqOptions) read(t *kernel.Task, a *command.Args) error {
	for _, f := range a.Flags {
		if !strings.HasPrefix(f.Spelt, "--") {
			f.Value = strings.TrimPrefix(f.Value, "=")
		}
		yes := f.Value == "" || f.Value == "true"
		switch f.Key {
		case "i":
			o.inPlace = true
		case "n":
			o.null = true
		case "p":
			o.in = f.Value
		case "o":
			o.out = f.Value
		case "j":
			o.out = "json"
		case "I":
			n, err := strconv.Atoi(f.Value)
			if err != nil || n < 0 || n > 16 {
				return fmt.Errorf("invalid argument %q for \"-I, --indent\" flag", f.Value)
			}
			o.indent = n
		case "P":
			o.pretty = true
		case "r":
			o.unwrap = -1
			if yes {
				o.unwrap = 1
			}
		case "e":
			o.exit = true
		case "N":
			o.noSeparator = true
		case "0":
			o.nul = true
		case "s":
			o.split = f.Value
		case "f":
			o.front = f.Value
		case "expression":
			o.expression = f.Value
		case "from-file":
			o.fromFile = f.Value
		case "csv-auto-parse", "tsv-auto-parse":
			o.parse = yes
		case "csv-separator":
			if f.Value != "" {
				o.csvComma = []rune(f.Value)[0]
			}
		case "properties-separator":
			o.propsSeparator = f.Value
		case "xml-attribute-prefix":
			o.attribute = f.Value
		case "xml-content-name":
			o.content = f.Value
		}
	}
	return o.operands(t, a)
}

func (o *yqOptions) operands(t *kernel.Task, a *command.Args) error {
	o.names = a.Operands
	isFile := func(name string) bool {
		i, err := t.View.Stat(name)
		return err == nil && i.IsRegular()
	}
	switch {
	case a.Has("expression"):
	case o.fromFile != "":
		b, err := command.ReadAll(t, o.fromFile)
		if err != nil {
			return fmt.Errorf("open %s: %s", o.fromFile, strings.ToLower(vfs.Message(err)))
		}
		o.expression = string(b)
	case len(o.names) > 0 && (o.names[0] == "-" || len(o.names) == 1 && isFile(o.names[0])):
	case len(o.names) > 0:
		o.expression, o.names = o.names[0], o.names[1:]
	}
	if o.inPlace && (len(o.names) == 0 || o.names[0] == "-") {
		return errors.New("write inplace flag only applicable when giving an expression and at least one file")
	}
	if o.null && len(o.names) > 0 {
		return errors.New("cannot pass files in when using null-input flag")
	}
	if !o.null && len(o.names) == 0 {
		o.names = []string{"-"}
	}
	auto := o.in == "" || o.in == "auto" || o.in == "a"
	if auto {
		o.in = "yaml"
		if len(o.names) > 0 {
			o.in = formatOf(path.Ext(o.names[0]))
		}
	}
	in, ok := formatNamed(o.in)
	if !ok {
		return fmt.Errorf("unknown format '%s' please use [yaml|json|props|csv|tsv|xml|base64|uri|toml|ini]", o.in)
	}
	o.in = in
	if o.out == "" || o.out == "auto" || o.out == "a" {
		o.out = "yaml"
		if auto {
			o.out = o.in
		}
	}
	out, ok := formatNamed(o.out)
	if !ok {
		return fmt.Errorf("unknown format '%s' please use [yaml|json|props|csv|tsv|xml|base64|uri|sh|shell|toml|ini]", o.out)
	}
	o.out = out
	return nil
}

// compileYQ reads an expression.
func (w *weaver) compile(src string) (*node, error) {
	m := w.m
	if strings.TrimSpace(src) == "" {
		src = "."
	}
	m.t.Bound("source", int64(len(src)), m.t.K.Limits.Source)
	m.t.Grow(16 * len(src))
	m.t.Step(len(src))
	mod, err := parseAs(src, int(m.t.K.Limits.Nesting), true)
	if err != nil {
		return nil, fmt.Errorf("invalid expression: %s, line %d", err.msg, err.line)
	}
	body := mod.body
	if body == nil {
		body = &node{op: opIdentity}
	}
	for i := len(mod.defs) - 1; i >= 0; i-- {
		body = &node{op: opDef, def: mod.defs[i], l: body}
	}
	r := &resolver{m: m, imports: map[string]imported{}, values: map[string]value{}}
	if bad := resolving(func() { r.resolve(body, nil) }); bad != nil {
		return nil, fmt.Errorf("invalid expression: %s", bad.msg)
	}
	return body, nil
}

// A spot is a value in a document.
type spot struct {
	doc *document
	p   pathValue
}

func (w *weaver) main() int {
	n, err := w.compile(w.o.expression)
	if err != nil {
		return w.complain(err)
	}
	out := &yqPrinter{w: w}
	if w.o.split != "" {
		w.m.globals["index"] = 0.0
		if out.name, err = w.splitName(); err != nil {
			return w.complain(err)
		}
	}
	if err := w.evaluate(n, out); err != nil {
		_ = w.m.t.Flush() // what was there before the error
		if b := new(haltError); errors.As(err, &b) {
			return b.status
		}
		return w.complain(unpass(err))
	}
	if err := out.finish(); err != nil {
		return w.complain(err)
	}
	if w.o.exit && !out.truthy {
		return w.complain(errors.New("no matches found"))
	}
	return 0
}

// splitName compiles the expression of --split-exp.
func (w *weaver) splitName() (*node, error) {
	e := w.o.split
	if e == "$index" {
		e = "0"
	}
	return w.compile(e)
}

func (w *weaver) evaluate(n *node, out *yqPrinter) error {
	if w.o.null {
		return w.run(n, []spot{{doc: &document{}}}, out)
	}
	var all []spot
	for i, name := range w.o.names {
		docs, rest, err := w.file(name)
		if err != nil {
			return err
		}
		for _, d := range docs {
			d.name, d.file = name, i
			here := spot{d, pathValue{v: d.value}}
			if w.o.all {
				all = append(all, here)
				continue
			}
			if err := w.run(n, []spot{here}, out); err != nil {
				return err
			}
		}
		out.rest = rest
	}
	if w.o.all {
		return w.run(n, all, out)
	}
	return nil
}

// file reads the documents of a file, and what follows its front matter.
func (w *weaver) file(name string) (docs []*document, rest []byte, err error) {
	t := w.m.t
	b, err := command.ReadAll(t, name)
	if err != nil {
		return nil, nil, fmt.Errorf("open %s: %s", name, strings.ToLower(vfs.Message(err)))
	}
	if w.o.front != "" {
		b, rest = frontMatter(b)
		if w.o.front == "extract" {
			rest = nil
		}
	}
	docs, err = w.read(b, w.o.in)
	if err != nil {
		return nil, nil, fmt.Errorf("bad file '%s': %w", name, err)
	}
	return docs, rest, nil
}

// frontMatter cuts a text into the YAML at its head and the rest, which begins
// with "---".
func frontMatter(b []byte) (head, rest []byte) {
	s := string(b)
	from := 0
	if strings.HasPrefix(s, "---\n") {
		from = 4
	}
	if i := strings.Index(s[from:], "\n---"); i >= 0 {
		return b[:from+i+1], b[from+i+1:]
	}
	return b, nil
}

func (w *weaver) run(n *node, in []spot, out *yqPrinter) error {
	m := w.m
	w.marks = w.marks[:0]
	results, err := w.all(n, nil, in)
	m.frames, m.holds = m.frames[:0], m.holds[:0]
	if err != nil {
		return err
	}
	for i, r := range results {
		if err := out.print(r, i); err != nil {
			return err
		}
	}
	return nil
}

// all computes an expression for many places at once: operators take the
// values of all of them, as eval-all wants it.
func (w *weaver) all(n *node, e *env, in []spot) ([]spot, error) {
	m := w.m
	if len(in) != 1 || w.o.all {
		switch n.op {
		case opPipe:
			x, err := w.all(n.l, e, in)
			if err != nil {
				return nil, err
			}
			return w.all(n.r, e, x)
		case opComma:
			l, err := w.all(n.l, e, in)
			if err != nil {
				return nil, err
			}
			r, err := w.all(n.r, e, in)
			return append(l, r...), err
		case opMath:
			return w.cross(n, e, in)
		case opArray:
			if n.l == nil {
				break
			}
			l, err := w.all(n.l, e, in)
			if err != nil {
				return nil, err
			}
			list := make([]value, len(l))
			for i, x := range l {
				list[i] = x.p.v
			}
			return []spot{{doc: first(in), p: pathValue{v: m.list(list)}}}, nil
		case opReduce:
			return w.reduce(n, e, in)
		}
	}
	var out []spot
	for _, x := range in {
		w.doc, w.here = x.doc, x.p
		err := m.paths(n, e, x.p, func(p pathValue) error {
			m.alloc(64)
			m.hold(p.v)
			out = append(out, spot{x.doc, p})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func first(in []spot) *document {
	if len(in) > 0 {
		return in[0].doc
	}
	return &document{}
}

func (w *weaver) cross(n *node, e *env, in []spot) ([]spot, error) {
	l, err := w.all(n.l, e, in)
	if err != nil {
		return nil, err
	}
	r, err := w.all(n.r, e, in)
	if err != nil {
		return nil, err
	}
	switch {
	case len(l) == 0:
		return r, nil
	case len(r) == 0:
		return l, nil
	}
	var out []spot
	for _, y := range r {
		for _, x := range l {
			w.m.t.Step(1)
			v, err := w.m.operator(n.str, x.p.v, y.p.v)
			if err != nil {
				return nil, err
			}
			w.m.alloc(64)
			w.m.hold(v)
			out = append(out, spot{x.doc, pathValue{at: x.p.at, v: v}})
		}
	}
	return out, nil
}

func (w *weaver) reduce(n *node, e *env, in []spot) ([]spot, error) {
	m := w.m
	from, err := w.all(n.l, e, in)
	if err != nil {
		return nil, err
	}
	var state value
	if err := m.eval(n.r, e, nil, func(v value) error { state = v; return nil }); err != nil {
		return nil, err
	}
	doc := first(in)
	for _, x := range from {
		w.doc = x.doc
		m.hold(state)
		if err := m.bind(n.pats, e, x.p.v, func(e *env) error {
			s := state
			return m.eval(n.x, e, s, func(v value) error { state = v; return nil })
		}); err != nil {
			return nil, err
		}
	}
	return []spot{{doc: doc, p: pathValue{v: state}}}, nil
}

// A yqPrinter writes results.
type yqPrinter struct {
	w      *weaver
	any    bool
	truthy bool
	last   *document
	held   []byte // of -i: what the file becomes
	rest   []byte // what follows the front matter
	name   *node  // of --split-exp
	count  int
}

func (p *yqPrinter) print(r spot, i int) error {
	w := p.w
	w.doc = r.doc
	if truthy(r.p.v) {
		p.truthy = true
	}
	b, err := p.encode(r)
	w.release()
	if err != nil {
		return err
	}
	if p.name != nil {
		return p.toFile(r, b)
	}
	if w.o.out == "yaml" && p.any && !w.o.noSeparator && !w.o.nul && (p.last != r.doc || w.apart) && !strings.HasPrefix(string(b), "---") {
		b = append([]byte("---\n"), b...)
	}
	_ = i
	p.any, p.last = true, r.doc
	if w.o.nul {
		b = append([]byte(strings.TrimSuffix(string(b), "\n")), 0)
	}
	if w.o.inPlace {
		w.m.t.Grow(len(b))
		p.held = append(p.held, b...)
		return nil
	}
	_, err = w.m.t.Out().Write(b)
	return err
}

// encode writes a result in the format of the output.
func (p *yqPrinter) encode(r spot) ([]byte, error) {
	w := p.w
	v := r.p.v
	s, isString := v.(string)
	unwrap := w.o.unwrap == 1 || w.o.unwrap == 0 && w.o.out != "json"
	switch {
	case isString && unwrap && (w.o.out == "yaml" || w.o.out == "json" || w.o.out == "props"):
		return append([]byte(s), '\n'), nil
	case (w.o.out == "toml" || w.o.out == "ini") && kind(v) < 5:
		return append([]byte(w.m.toString(v)), '\n'), nil
	case w.o.out != "yaml":
		return w.write(v, w.o.out, w.o.indent)
	}
	var old *yaml.Node
	root := r.doc.root()
	if derived(v, r.doc.value) || root != nil && r.p.at == nil && w.unchanged(v, root) {
		old = root
	} else if r.p.at != nil {
		_, old = w.nodeAt(r.p.at)
	}
	n, err := w.node(v, old, 0)
	if err != nil {
		return nil, err
	}
	isRoot := root != nil && old == root
	prefix := r.p.at.list()
	lead := r.doc.lead
	for _, k := range w.marks {
		if (k.deep || k.name == "explode") && len(k.path) <= len(prefix) && samePath(w.m, prefix, k.path) {
			k.path = prefix // it holds for all that is below its place
		}
		if len(k.path) < len(prefix) || !samePath(w.m, k.path[:len(prefix)], prefix) {
			continue
		}
		n = w.apply(n, k.path[len(prefix):], k)
		if k.deep && k.name == "comments" && len(k.path) == 0 {
			lead = separators(lead)
			isRoot = isRoot && k.text != ""
		}
	}
	if w.o.pretty {
		n = w.apply(n, nil, mark{name: "style", deep: true})
	}
	if n.Kind == yaml.ScalarNode && kind(v) < 5 {
		if unwrap {
			return append([]byte(n.Value), '\n'), nil
		}
		c := *n
		c.HeadComment, c.LineComment, c.FootComment = "", "", ""
		n = &c
	}
	if isRoot {
		n = &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{n}, HeadComment: r.doc.top.HeadComment, FootComment: r.doc.top.FootComment}
	}
	b, err := w.encodeYAML(n, w.o.indent)
	if err != nil {
		return nil, err
	}
	if w.o.noSeparator {
		lead = strings.ReplaceAll(lead, "---\n", "")
	}
	if lead != "" && (isRoot || derived(v, r.doc.value)) {
		b = append([]byte(lead), b...)
	}
	return b, nil
}

// separators leaves of what stands before a document only the "---".
func separators(lead string) string {
	if strings.Contains(lead, "---\n") {
		return "---\n"
	}
	return ""
}

func samePath(m *machine, a, b []value) bool {
	for i := range b {
		if m.compare(a[i], b[i]) != 0 {
			return false
		}
	}
	return true
}

// toFile writes a result into the file that --split-exp names.
func (p *yqPrinter) toFile(r spot, b []byte) error {
	w := p.w
	name := strconv.Itoa(p.count)
	if w.o.split != "$index" {
		names, err := w.all(p.name, nil, []spot{r})
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return errors.New("split-exp gives no name")
		}
		name = w.m.toString(names[0].p.v)
	}
	p.count++
	p.any = true
	if path.Ext(name) == "" {
		ext := w.o.out
		if ext == "yaml" {
			ext = "yml"
		}
		name += "." + ext
	}
	return w.replace(name, b)
}

// replace writes a file anew.
func (w *weaver) replace(name string, b []byte) error {
	f, err := command.Create(w.m.t, name, linux.O_TRUNC)
	if err != nil {
		return fmt.Errorf("open %s: %s", name, strings.ToLower(vfs.Message(err)))
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %s", name, strings.ToLower(vfs.Message(err)))
	}
	return nil
}

func (p *yqPrinter) finish() error {
	w := p.w
	if w.o.inPlace {
		return w.replace(w.o.names[0], append(p.held, p.rest...))
	}
	if w.o.front == "process" {
		if _, err := w.m.t.Out().Write(p.rest); err != nil {
			return err
		}
	}
	return w.m.t.Flush()
}
