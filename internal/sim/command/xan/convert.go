package xan

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
)

// The verbs that write or read other formats.

func (j *job) to() error {
	format, err := j.operand("a format")
	if err != nil {
		return err
	}
	switch format {
	case "json", "jsonl", "ndjson", "md", "html", "txt":
	default:
		return &usageError{fmt.Sprintf("unknown format '%s': html, json, jsonl, md, ndjson or txt", format)}
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	switch format {
	case "md":
		return j.toMarkdown(x)
	case "html":
		return j.toHTML(x)
	case "txt":
		s, _ := j.a.Value("s")
		c, err := j.single(s, x.head)
		if err != nil {
			return err
		}
		return x.each(func(row []string) error { return j.out.text("%s\n", row[c]) })
	}
	return j.toJSON(x, format == "json")
}

func (j *job) toMarkdown(x *table) error {
	rows, err := x.all()
	if err != nil {
		return err
	}
	head := x.head
	if x.bare {
		head = make([]string, len(x.head))
	}
	widths := make([]int, len(head))
	for i, h := range head {
		widths[i] = max(3, width(h))
	}
	for _, r := range rows {
		for i, c := range r {
			r[i] = strings.NewReplacer("|", `\|`, "<", `\<`, ">", `\>`).Replace(c)
			widths[i] = max(widths[i], width(r[i])+strings.Count(c, "\n"))
		}
	}
	line := func(row []string) error {
		b := []byte("|")
		for i, c := range row {
			b = append(append(append(b, ' '), padTo(c, widths[i], false)...), " |"...)
		}
		return j.out.text("%s\n", b)
	}
	rule := make([]string, len(head))
	for i, w := range widths {
		rule[i] = strings.Repeat("-", w)
	}
	for _, r := range append([][]string{head, rule}, rows...) {
		if err := line(r); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) toHTML(x *table) error {
	row := func(cells []string, tag string) error {
		if err := j.out.text("    <tr>\n"); err != nil {
			return err
		}
		for _, c := range cells {
			c = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;").Replace(c)
			if err := j.out.text("      <%s>%s</%s>\n", tag, c, tag); err != nil {
				return err
			}
		}
		return j.out.text("    </tr>\n")
	}
	if err := j.out.text("<table>\n"); err != nil {
		return err
	}
	if !x.bare {
		if err := j.out.text("  <thead>\n"); err != nil {
			return err
		}
		if err := row(x.head, "th"); err != nil {
			return err
		}
		if err := j.out.text("  </thead>\n"); err != nil {
			return err
		}
	}
	if err := j.out.text("  <tbody>\n"); err != nil {
		return err
	}
	if err := x.each(func(cells []string) error { return row(cells, "td") }); err != nil {
		return err
	}
	return j.out.text("  </tbody>\n</table>\n")
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
	read := map[string]func([]byte) error{"json": j.fromJSON, "jsonl": j.fromLines, "ndjson": j.fromLines, "txt": j.fromText, "md": j.fromMarkdown, "markdown": j.fromMarkdown}[format]
	if read == nil {
		return &usageError{fmt.Sprintf("unknown format '%s': json, jsonl, md, ndjson or txt", format)}
	}
	b, err := command.ReadAll(j.t, name)
	if err != nil {
		return fileError(name, err)
	}
	return read(b)
}

// fromText makes a row of each line.
func (j *job) fromText(b []byte) error {
	name, ok := j.a.Value("c")
	if !ok {
		name = "value"
	}
	if err := j.out.row([]string{name}); err != nil {
		return err
	}
	for line := range bytes.Lines(b) {
		j.t.Step(1 + len(line)>>5)
		if err := j.out.row([]string{string(bytes.TrimRight(line, "\r\n"))}); err != nil {
			return err
		}
	}
	return nil
}

// fromMarkdown reads the first table of pipes: a head, a rule and rows.
func (j *job) fromMarkdown(b []byte) error {
	j.t.Step(len(b) >> 3)
	lines := strings.Split(string(b), "\n")
	rule := regexp.MustCompile(`^\s*\|?(\s*:?-+:?\s*\|)*\s*:?-+:?\s*\|?\s*$`)
	for i := 1; i < len(lines); i++ {
		if !strings.Contains(lines[i-1], "|") || !rule.MatchString(lines[i]) {
			continue
		}
		head := markdownCells(lines[i-1])
		if err := j.out.row(head); err != nil {
			return err
		}
		for _, line := range lines[i+1:] {
			if strings.TrimSpace(line) == "" {
				break
			}
			row := make([]string, len(head))
			copy(row, markdownCells(line))
			if err := j.out.row(row); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.New("there is no table")
}

// markdownCells cuts a row at the pipes that no backslash escapes.
func markdownCells(line string) []string {
	line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|")
	var out []string
	from := 0
	for i := range len(line) {
		if line[i] == '|' && (i == 0 || line[i-1] != '\\') {
			out = append(out, strings.TrimSpace(line[from:i]))
			from = i + 1
		}
	}
	return append(out, strings.TrimSpace(line[from:]))
}

// width tells how many places a text takes on a screen.
func width(s string) int {
	n := 0
	for _, r := range s {
		n += max(0, command.RuneWidth(r))
	}
	return n
}

// padTo fills a text up with blanks.
func padTo(s string, places int, right bool) string {
	blanks := strings.Repeat(" ", max(0, places-width(s)))
	if right {
		return blanks + s
	}
	return s + blanks
}
