package xan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
)

// The verbs that write or read other formats.

func (j *job) to() error {
	format, err := j.operand("a format")
	if err != nil {
		return err
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	switch format {
	case "json":
		return j.toJSON(x, true)
	case "jsonl", "ndjson":
		return j.toJSON(x, false)
	case "md", "markdown":
		return j.toMarkdown(x)
	case "txt":
		return x.each(func(row []string) error { return j.out.text("%s\n", strings.Join(row, "\t")) })
	case "tsv":
		j.out.comma = '\t'
		if err := j.head1(x.head); err != nil {
			return err
		}
		return x.each(j.out.row)
	}
	return &usageError{fmt.Sprintf("unknown format '%s'", format)}
}

func (j *job) toJSON(x *table, list bool) error {
	names := make([][]byte, len(x.head))
	for i, h := range x.head {
		names[i] = quote(h)
	}
	first := true
	b := []byte(nil)
	if err := x.each(func(row []string) error {
		b = b[:0]
		switch {
		case list && first:
			b = append(b, "[\n"...)
		case list:
			b = append(b, ",\n"...)
		}
		first = false
		if list {
			b = append(b, "  {\n"...)
		} else {
			b = append(b, '{')
		}
		for i, c := range row {
			if i > 0 {
				b = append(b, ',')
				if list {
					b = append(b, '\n')
				}
			}
			if list {
				b = append(b, "    "...)
			}
			b = append(append(b, names[i]...), ':')
			if list {
				b = append(b, ' ')
			}
			b = append(b, asJSON(c)...)
		}
		if list {
			b = append(b, "\n  }"...)
		} else {
			b = append(b, "}\n"...)
		}
		j.out.b = append(j.out.b, b...)
		if len(j.out.b) > 32<<10 {
			return j.out.flush()
		}
		return nil
	}); err != nil {
		return err
	}
	switch {
	case list && first:
		return j.out.text("[]\n")
	case list:
		return j.out.text("\n]\n")
	}
	return nil
}

func (j *job) toMarkdown(x *table) error {
	line := func(row []string) error {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = strings.NewReplacer("|", `\|`, "\n", " ").Replace(c)
		}
		return j.out.text("| %s |\n", strings.Join(cells, " | "))
	}
	if err := line(x.head); err != nil {
		return err
	}
	if err := j.out.text("|%s\n", strings.Repeat(" --- |", len(x.head))); err != nil {
		return err
	}
	return x.each(line)
}

func (j *job) from() error {
	name := "-"
	if len(j.rest) > 0 {
		name = j.rest[0]
	}
	format, ok := j.a.Value("f")
	if !ok {
		format = name[strings.LastIndexByte(name, '.')+1:]
	}
	switch format {
	case "tsv":
		j.comma, j.given = '\t', true
		x, err := j.open(name)
		if err != nil {
			return err
		}
		if err := j.head1(x.head); err != nil {
			return err
		}
		return x.each(j.out.row)
	case "json", "jsonl", "ndjson":
		b, err := command.ReadAll(j.t, name)
		if err != nil {
			return fileError(name, err)
		}
		return j.fromJSON(b)
	}
	return &usageError{fmt.Sprintf("unknown format '%s': json, jsonl, ndjson or tsv", format)}
}

// A member is one of an object, in its order.
type member struct{ name, cell string }

// fromJSON reads objects; their members are the columns, in the order in
// which they come.
func (j *job) fromJSON(b []byte) error {
	j.t.Step(len(b))
	j.t.Grow(4 * len(b))
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var rows [][]member
	var head []string
	known := map[string]int{}
	add := func(raw json.RawMessage) error {
		row, err := members(raw)
		if err != nil {
			return err
		}
		for _, m := range row {
			if _, ok := known[m.name]; !ok {
				known[m.name] = len(head)
				head = append(head, m.name)
			}
		}
		j.t.Step(1 + len(row))
		rows = append(rows, row)
		return nil
	}
	for {
		var raw json.RawMessage
		if err := d.Decode(&raw); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("%w", err)
		}
		var list []json.RawMessage
		if len(raw) > 0 && raw[0] == '[' {
			if err := json.Unmarshal(raw, &list); err != nil {
				return fmt.Errorf("%w", err)
			}
		} else {
			list = []json.RawMessage{raw}
		}
		for _, r := range list {
			if err := add(r); err != nil {
				return err
			}
		}
	}
	if len(head) == 0 {
		return nil
	}
	if err := j.head1(head); err != nil {
		return err
	}
	out := make([]string, len(head))
	for _, r := range rows {
		clear(out)
		j.t.Step(1 + len(head)>>4)
		for _, m := range r {
			out[known[m.name]] = m.cell
		}
		if err := j.out.row(out); err != nil {
			return err
		}
	}
	return nil
}

// members gives the members of an object, or the elements of a list by their
// numbers, as cells.
func members(raw json.RawMessage) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	tok, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	open, ok := tok.(json.Delim)
	if !ok {
		return []member{{"value", cellText(raw)}}, nil
	}
	var list []member
	for d.More() {
		name := fmt.Sprint(len(list))
		if open == '{' {
			k, err := d.Token()
			if err != nil {
				return nil, fmt.Errorf("%w", err)
			}
			name, _ = k.(string)
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, fmt.Errorf("%w", err)
		}
		list = append(list, member{name, cellText(v)})
	}
	return list, nil
}

// cellText gives JSON as a cell: texts by themselves, null as nothing.
func cellText(raw json.RawMessage) string {
	var s string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s
	}
	if string(raw) == "null" {
		return ""
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) == nil {
		return b.String()
	}
	return string(raw)
}

// widest is how wide a cell of view is at most.
const widest = 60

func shortened(s string) string {
	s = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s)
	if utf8.RuneCountInString(s) > widest {
		return string([]rune(s)[:widest-1]) + "…"
	}
	return s
}

func (j *job) view() error {
	limit, err := j.number("l", 100)
	if err != nil {
		return err
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	widths := make([]int, len(x.head))
	var rows [][]string
	note := func(row []string) {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = shortened(c)
			widths[i] = max(widths[i], width(cells[i]))
		}
		rows = append(rows, cells)
	}
	if x.head != nil {
		note(x.head)
	}
	if err := x.each(func(row []string) error {
		if j.a.Has("A") || len(rows) <= limit {
			j.t.Grow(cost(row))
			note(row)
		}
		return nil
	}); err != nil {
		return err
	}
	rule := func(left, middle, right string) error {
		parts := make([]string, len(widths))
		for i, w := range widths {
			parts[i] = strings.Repeat("─", w+2)
		}
		return j.out.text("%s%s%s\n", left, strings.Join(parts, middle), right)
	}
	if len(rows) == 0 {
		return nil
	}
	if err := rule("┌", "┬", "┐"); err != nil {
		return err
	}
	for i, r := range rows {
		cells := make([]string, len(r))
		for k, c := range r {
			cells[k] = " " + c + strings.Repeat(" ", widths[k]-width(c)+1)
		}
		if err := j.out.text("│%s│\n", strings.Join(cells, "│")); err != nil {
			return err
		}
		if i == 0 {
			if err := rule("├", "┼", "┤"); err != nil {
				return err
			}
		}
	}
	if err := rule("└", "┴", "┘"); err != nil {
		return err
	}
	if more := x.rows - (len(rows) - 1); more > 0 {
		return j.out.text("… %d more rows\n", more)
	}
	return nil
}

func (j *job) flatten() error {
	more, err := j.limited("l", -1)
	if err != nil {
		return err
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	columns, err := j.columns(x.head)
	if err != nil {
		return err
	}
	wide := 0
	for _, c := range columns {
		wide = max(wide, utf8.RuneCountInString(x.head[c]))
	}
	return x.each(func(row []string) error {
		if !more() {
			return errEnough
		}
		if x.rows > 1 {
			if err := j.out.text("\n"); err != nil {
				return err
			}
		}
		if err := j.out.text("Row n°%d\n", x.rows-1); err != nil {
			return err
		}
		for _, c := range columns {
			if err := j.out.text("%-*s %s\n", wide, x.head[c], row[c]); err != nil {
				return err
			}
		}
		return nil
	})
}

// width tells how many places a text takes on a screen.
func width(s string) int {
	n := 0
	for _, r := range s {
		n += max(0, command.RuneWidth(r))
	}
	return n
}
