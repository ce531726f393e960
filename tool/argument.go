package tool

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock"
)

// HelpWanted is the error of [Tool.Arguments] if the words ask for --help.
var HelpWanted = errors.New("help is wanted")

// maxWords bounds a command line, because each word costs a lookup.
const maxWords = 1 << 14

// Arguments reads a command line, without the words of the tool's name, and returns the
// JSON for [Set.Call]:
//
//	--amount 5  --amount=5       a value; the next word is the value, whatever it is
//	--live  --live=false         a boolean
//	--tag a --tag b              a list, one element each time
//	--user.name x                a field of an object, a key of a map
//	--user '{"name":"x"}'        an object as JSON
//	--json '{…}'  --json -  -    everything as JSON, or from standard input
//
// Elements that are objects, and arguments of any type, are JSON. A []byte takes the word's
// bytes; all other words must be UTF-8. Words that do not fit the tool are an error of kind
// [paddock.Invalid]. Standard input is read only for "-"; nil means empty.
func (t Tool) Arguments(words []string, stdin io.Reader) (json.RawMessage, error) {
	args, err := t.readWords(words, stdin)
	if errors.Is(err, HelpWanted) {
		return nil, HelpWanted
	}
	if err == nil {
		_, args, err = t.prepare(args)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", strings.ReplaceAll(t.name, "/", " "), err, paddock.Invalid)
	}
	return encode(args), nil
}

func (t Tool) readWords(words []string, stdin io.Reader) (any, error) {
	if len(words) > maxWords {
		return nil, fmt.Errorf("more than %d words", maxWords)
	}
	l := line{members: map[string]any{}, whole: map[string]bool{}}
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		if word == "--help" || word == "-h" {
			return nil, HelpWanted
		}
		if word == "-" {
			word = "--json=-"
		}
		flag, value, inline := strings.Cut(word, "=")
		name, ok := strings.CutPrefix(flag, "--")
		if !ok || name == "" {
			return nil, fmt.Errorf("%s: arguments are given as --name value", short(word))
		}
		var f target
		if name != "json" {
			var err error
			if f, err = t.in.target(name); err != nil {
				return nil, err
			}
			if f.shape.kind == kindBoolean && !inline {
				value, inline = "true", true
			}
		}
		if !inline {
			if len(words) == 0 {
				return nil, fmt.Errorf("--%s: a value is missing", short(name))
			}
			value, words = words[0], words[1:]
		}
		var err error
		if name == "json" {
			err = l.setAll(value, stdin)
		} else {
			err = l.set(f, value)
		}
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", cut(name, maxShown), err)
		}
	}
	if l.all != nil {
		return l.all, nil
	}
	return l.members, nil
}

// A target is what a flag sets.
type target struct {
	path  []string
	shape *shape // of the value, or of a list's element
	list  bool   // each flag appends an element
}

// target resolves a flag's name at its dots. The text after a map's name is one key,
// including dots, unless the map holds objects.
func (s *shape) target(name string) (target, error) {
	at := s
	var path []string
	rest := name
	for rest != "" {
		head, tail, more := strings.Cut(rest, ".")
		switch at.kind {
		case kindStruct:
			f := at.field(head)
			if f == nil {
				return target{}, fmt.Errorf("--%s: there is no argument of this name%s", cut(name, maxShown), at.suggest(head))
			}
			at = f.shape
		case kindMap:
			if at.elem.kind != kindStruct {
				head, tail, more = rest, "", false
			}
			at = at.elem
		default:
			return target{}, fmt.Errorf("--%s: %s has no parts", cut(name, maxShown), short(strings.Join(path, ".")))
		}
		if !utf8.ValidString(head) || head == "" || more && tail == "" {
			return target{}, fmt.Errorf("--%s: a name is expected around the dot", short(name))
		}
		path = append(path, head)
		rest = tail
	}
	if at.kind == kindList {
		return target{path: path, shape: at.elem, list: true}, nil
	}
	return target{path: path, shape: at}, nil
}

// A line is what a command line has set so far.
type line struct {
	members map[string]any
	whole   map[string]bool // objects that were given as JSON, by dotted path
	all     any             // from --json
}

func (l *line) setAll(value string, stdin io.Reader) error {
	if l.all != nil || len(l.members) > 0 {
		return errors.New("it is all of the arguments, and others are given too")
	}
	text := []byte(value)
	if value == "-" {
		if stdin == nil {
			stdin = strings.NewReader("")
		}
		var err error
		if text, err = io.ReadAll(io.LimitReader(stdin, maxArgumentBytes+1)); err != nil {
			return fmt.Errorf("read standard input: %w", err)
		}
	}
	v, err := parse(text, maxArgumentBytes)
	if err != nil {
		return err
	}
	if _, ok := v.(map[string]any); !ok {
		return errNotObject
	}
	l.all = v
	return nil
}

func (l *line) set(f target, word string) error {
	if l.all != nil {
		return errors.New("--json is all of the arguments already")
	}
	v, err := f.shape.fromWord(word)
	if err != nil {
		return err
	}
	at := l.members
	for i, name := range f.path[:len(f.path)-1] {
		if l.whole[strings.Join(f.path[:i+1], ".")] {
			return fmt.Errorf("%s is given as a whole already", name)
		}
		inner, ok := at[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			at[name] = inner
		}
		at = inner
	}
	last := f.path[len(f.path)-1]
	if f.list {
		list, ok := at[last].([]any)
		if !ok && at[last] != nil {
			return errors.New("it is given already")
		}
		at[last] = append(list, v)
		return nil
	}
	if _, twice := at[last]; twice {
		return errors.New("it is given twice")
	}
	l.whole[strings.Join(f.path, ".")] = true
	at[last] = v
	return nil
}

// fromWord converts one word to a value of shape s.
func (s *shape) fromWord(word string) (any, error) {
	if s.kind == kindBytes {
		return base64.StdEncoding.EncodeToString([]byte(word)), nil
	}
	if !utf8.ValidString(word) {
		return nil, errors.New("the value is not UTF-8")
	}
	switch s.kind {
	case kindString, kindText:
		return word, nil
	case kindBoolean:
		switch word {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return nil, fmt.Errorf("true or false is expected, not %s", short(word))
	case kindInteger, kindFloat, kindExact:
		return parseNumber(word)
	}
	v, err := parse([]byte(word), maxArgumentBytes)
	if err != nil {
		return nil, fmt.Errorf("JSON is expected: %w", err)
	}
	return v, nil
}

// Help returns the output of --help.
func (t Tool) Help() string {
	if t.in == nil {
		return ""
	}
	var b strings.Builder
	command := strings.ReplaceAll(t.name, "/", " ")
	fmt.Fprintf(&b, "Usage: %s%s\n", command, t.in.usage(""))
	fmt.Fprintf(&b, "       %s --json '{…}'    all arguments as JSON; - reads them from standard input\n", command)
	if t.about != "" {
		fmt.Fprintf(&b, "\n%s\n", t.about)
	}
	rows := t.in.rows("", false)
	if len(rows) > 0 {
		b.WriteString("\nArguments:\n")
	}
	width := 0
	for _, r := range rows {
		width = max(width, len(r.flag))
	}
	for _, r := range rows {
		fmt.Fprintf(&b, "%s\n", strings.TrimRight(fmt.Sprintf("  %-*s  %s", width, r.flag, r.doc), " "))
	}
	return b.String()
}

type row struct{ flag, doc string }

// usage lists the flags on one line, optional ones in brackets.
func (s *shape) usage(prefix string) string {
	var b strings.Builder
	for _, f := range s.fields {
		flag := prefix + f.name
		var text string
		if f.shape.kind == kindStruct {
			text = strings.TrimPrefix(f.shape.usage(flag+"."), " ")
		} else {
			text = f.flag(flag)
		}
		if text == "" {
			continue
		}
		if f.optional {
			text = "[" + text + "]"
		}
		b.WriteString(" " + text)
	}
	return b.String()
}

func (f *field) flag(name string) string {
	switch f.shape.kind {
	case kindBoolean:
		if f.optional {
			return "--" + name
		}
		return "--" + name + "=true|false"
	case kindList:
		return "--" + name + " " + f.shape.word() + "..."
	case kindMap:
		return "--" + name + ".KEY " + f.shape.elem.word()
	default:
		return "--" + name + " " + f.shape.word()
	}
}

func (s *shape) rows(prefix string, optional bool) []row {
	var out []row
	for _, f := range s.fields {
		optional := optional || f.optional
		if f.shape.kind == kindStruct {
			out = append(out, f.shape.rows(prefix+f.name+".", optional)...)
			continue
		}
		doc := f.doc
		if !optional {
			doc = strings.TrimSpace(doc + " (required)")
		}
		out = append(out, row{f.flag(prefix + f.name), doc})
	}
	return out
}
