package expand

import "strings"

// conditional is the expansions that depend on whether a parameter is set.
func (x *Expander) conditional(b *builder, p *Param, v parameter, quoted bool) error {
	missing := !v.set
	if p.null && v.set {
		if v.isList {
			missing = len(v.list) == 0 || len(v.list) == 1 && v.list[0] == "" ||
				v.star && x.loadIFS().first == "" && strings.Join(v.list, "") == ""
		} else {
			missing = v.text == ""
		}
	}
	if p.op == alternate {
		if missing {
			if quoted && !p.weak {
				return b.value("", true)
			}
			return nil
		}
		return x.emitWord(b, p, quoted)
	}
	if !missing {
		return x.emitValue(b, p, v, quoted)
	}
	switch p.op {
	case byDefault:
		return x.emitWord(b, p, quoted)
	case fail:
		return x.complain(p)
	}
	return x.assignDefault(b, p, quoted)
}

// complain is ${name?word}.
func (x *Expander) complain(p *Param) error {
	message := ""
	if p.word != nil && p.word.source != nil {
		var err error
		if message, err = x.joined(p.word.parts, Single); err != nil {
			return err
		}
	} else if p.null {
		message = "parameter null or not set"
	} else {
		message = "parameter not set"
	}
	return &Error{Kind: Unset, Text: x.display(p) + ": " + message}
}

// assignDefault is ${name=word}.
func (x *Expander) assignDefault(b *builder, p *Param, quoted bool) error {
	if p.special != 0 {
		return &Error{Kind: Assigning, Text: "$" + p.name + ": cannot assign in this way"}
	}
	value, err := x.joined(p.word.parts, Single)
	if err != nil {
		return err
	}
	if p.sub != nil {
		if p.sub.all != 0 {
			return &Error{Kind: Assigning, Text: p.name + "[" + p.sub.source + "]: bad array subscript"}
		}
		err = x.assignAt(p.name, p.sub, value, false)
	} else {
		err = x.vars.Set(p.name, value)
	}
	if err != nil {
		return &Error{Kind: Assigning, Text: err.Error()}
	}
	q := *p
	q.op = plain
	v, err := x.lookup(&q)
	if err != nil {
		return err
	}
	return x.emitValue(b, p, v, quoted)
}

// emitWord adds the word of an expansion, in whose place it stands.
func (x *Expander) emitWord(b *builder, p *Param, quoted bool) error {
	if p.word == nil {
		return nil
	}
	before := len(b.out)
	for i := range p.word.parts {
		w := &p.word.parts[i]
		var err error
		if w.kind == text && !w.quoted && b.split {
			err = b.splitValue(w.text)
		} else {
			err = x.emit(b, w)
		}
		if err != nil {
			return err
		}
	}
	if quoted && !b.started && len(b.out) == before {
		return b.value("", true)
	}
	return nil
}
