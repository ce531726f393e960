package jq

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// An element of XML, while it is read.
type element struct {
	name string
	t    *table
	text []byte
}

// readXML reads XML: attributes are members whose names begin with "+@",
// elements of one name make a list, text beside them is "+content".
func (w *weaver) readXML(b []byte) (value, error) {
	d := xml.NewDecoder(bytes.NewReader(b))
	d.Strict = false
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	stack := []*element{{t: &table{}}}
	for {
		tok, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w", err)
		}
		w.m.t.Step(4)
		top := stack[len(stack)-1]
		switch x := tok.(type) {
		case xml.StartElement:
			if len(stack) > maxParse {
				return nil, errors.New("xml: nested too deeply")
			}
			e := &element{name: xmlName(x.Name), t: &table{}}
			for _, a := range x.Attr {
				e.t.put(w.o.attribute+xmlName(a.Name), clean([]byte(a.Value)))
			}
			w.m.alloc(256)
			stack = append(stack, e)
		case xml.EndElement:
			if len(stack) == 1 || top.name != xmlName(x.Name) {
				return nil, fmt.Errorf("xml: unexpected </%s>", xmlName(x.Name))
			}
			stack = stack[:len(stack)-1]
			stack[len(stack)-1].add(w.m, top.name, top.value(w))
		case xml.CharData:
			top.text = append(top.text, x...)
			w.m.alloc(len(x))
		case xml.ProcInst:
			top.t.put("+p_"+x.Target, clean(x.Inst))
		case xml.Directive:
			top.t.put("+directive", clean(x))
		}
	}
	if len(stack) > 1 {
		return nil, fmt.Errorf("xml: <%s> does not end", stack[len(stack)-1].name)
	}
	return w.m.made(stack[0].t), nil
}

func xmlName(n xml.Name) string {
	if n.Space != "" {
		return clean([]byte(n.Space + ":" + n.Local))
	}
	return clean([]byte(n.Local))
}

// add adds a child; the second one of a name makes a list.
func (e *element) add(m *machine, name string, v value) {
	i := e.t.find(name)
	if i < 0 {
		e.t.put(name, v)
		return
	}
	if a, ok := e.t.vals[i].(*array); ok {
		e.t.vals[i] = m.with(a, a.len(), v)
		return
	}
	e.t.vals[i] = m.list([]value{e.t.vals[i], v})
}

func (e *element) value(w *weaver) value {
	text := clean(bytes.TrimSpace(e.text))
	switch {
	case len(e.t.keys) > 0:
		if text != "" {
			c := &table{}
			c.put(w.o.content, text)
			for i, k := range e.t.keys {
				c.put(k, e.t.vals[i])
			}
			return w.m.made(c)
		}
		return w.m.made(e.t)
	case text == "":
		return nil
	}
	return text
}

// writeXML writes a value as readXML would read it.
func (w *weaver) writeXML(v value, indent int) ([]byte, error) {
	o, ok := v.(*object)
	if !ok {
		if kind(v) >= 5 {
			return nil, fmt.Errorf("unsupported type %s: the top of XML is one element", tagOf(v))
		}
		return append(escapeXML(nil, w.m.toString(v)), '\n'), nil
	}
	x := &xmlWriter{w: w, indent: strings.Repeat(" ", indent)}
	t := o.own()
	for i, k := range t.keys {
		if err := x.member(k, t.vals[i], 0); err != nil {
			return nil, err
		}
	}
	return x.b, nil
}

type xmlWriter struct {
	w      *weaver
	b      []byte
	indent string
}

func escapeXML(b []byte, s string) []byte {
	return append(b, strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\"", "&#34;", "'", "&#39;").Replace(s)...)
}

func (x *xmlWriter) line(depth int) {
	x.b = x.w.m.room(x.b, depth*len(x.indent))
	for range depth {
		x.b = append(x.b, x.indent...)
	}
}

func (x *xmlWriter) end() {
	if x.indent != "" {
		x.b = append(x.b, '\n')
	}
}

func validXMLName(s string) bool {
	for i, r := range s {
		if !(r >= 0x80 || isLetter(byte(r)) || i > 0 && (isDigit(byte(r)) || strings.ContainsRune("-.:", r))) {
			return false
		}
	}
	return s != ""
}

func (x *xmlWriter) member(name string, v value, depth int) error {
	if depth > deepestYAML {
		return errors.New("nested too deeply for XML")
	}
	w := x.w
	w.m.t.Step(1)
	w.m.t.Bound("string", int64(len(x.b)), w.m.t.K.Limits.String)
	switch {
	case strings.HasPrefix(name, "+p_"):
		x.line(depth)
		x.b = append(x.b, "<?"+name[3:]+" "+w.m.toString(v)+"?>\n"...)
		return nil
	case name == "+directive":
		x.b = append(x.b, "<!"+w.m.toString(v)+">\n"...)
		return nil
	case !validXMLName(name):
		return fmt.Errorf("%q is no name of an element", name)
	}
	if a, ok := v.(*array); ok {
		for _, y := range a.own() {
			if _, nested := y.(*array); nested {
				return errors.New("a list within a list has no place in XML")
			}
			if err := x.member(name, y, depth); err != nil {
				return err
			}
		}
		return nil
	}
	x.line(depth)
	x.b = append(append(w.m.room(x.b, 2*len(name)+6), '<'), name...)
	o, ok := v.(*object)
	if !ok {
		x.b = append(x.b, '>')
		if v != nil {
			x.b = escapeXML(x.b, w.m.toString(v))
		}
		x.b = append(append(append(x.b, "</"...), name...), '>')
		x.end()
		return nil
	}
	t := o.own()
	children, content := 0, ""
	for i, k := range t.keys {
		attribute, isAttribute := strings.CutPrefix(k, w.o.attribute)
		switch {
		case isAttribute:
			if !validXMLName(attribute) {
				return fmt.Errorf("%q is no name of an attribute", attribute)
			}
			text := w.m.toString(t.vals[i])
			x.b = w.m.room(x.b, len(attribute)+len(text)+4)
			x.b = append(escapeXML(append(x.b, " "+attribute+`="`...), text), '"')
		case k == w.o.content:
			content = w.m.toString(t.vals[i])
		default:
			children++
		}
	}
	x.b = append(x.b, '>')
	x.b = escapeXML(x.b, content)
	if children > 0 {
		x.end()
		for i, k := range t.keys {
			if k != w.o.content && !strings.HasPrefix(k, w.o.attribute) {
				if err := x.member(k, t.vals[i], depth+1); err != nil {
					return err
				}
			}
		}
		x.line(depth)
	}
	x.b = append(append(append(x.b, "</"...), name...), '>')
	x.end()
	return nil
}
