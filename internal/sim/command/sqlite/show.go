package sqlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// A table shows the rows of one query.
type table struct {
	c     *console
	names []string
	n     int
	kept  [][]string // of the modes that need the widths
}

func (c *console) writer(names []string) *table { return &table{c: c, names: names} }

// text gives a value as SQLite shows it.
func (c *console) text(v any) string {
	switch v := v.(type) {
	case nil:
		return c.null
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return float(v)
	case []byte:
		return string(v)
	case string:
		return v
	case bool:
		if v {
			return "1"
		}
		return "0"
	case time.Time:
		return v.Format("2006-01-02 15:04:05")
	}
	return fmt.Sprint(v)
}

func float(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	}
	s := strconv.FormatFloat(v, 'g', 15, 64)
	if !strings.ContainsAny(s, ".en") {
		s += ".0"
	} else if i := strings.IndexByte(s, 'e'); i > 0 && !strings.Contains(s, ".") {
		s = s[:i] + ".0" + s[i:]
	}
	return s
}

func (w *table) row(values []any) {
	c, out := w.c, w.c.t.Out()
	w.n++
	switch c.mode {
	case "json":
		w.object(values)
		return
	case "line":
		width := 5
		for _, n := range w.names {
			width = max(width, len(n))
		}
		if w.n > 1 {
			fmt.Fprintln(out)
		}
		for i, n := range w.names {
			fmt.Fprintf(out, "%*s = %s\n", width, n, c.text(values[i]))
		}
		return
	}
	fields := make([]string, len(values))
	for i, v := range values {
		fields[i] = c.text(v)
		if c.mode == "quote" {
			fields[i] = literal(v)
		}
	}
	switch c.mode {
	case "column", "markdown", "table", "box":
		size := 0
		for _, f := range fields {
			size += len(f) + 16
		}
		c.t.Grow(size)
		w.kept = append(w.kept, fields)
	default:
		if w.n == 1 && c.header {
			w.line(w.names)
		}
		w.line(fields)
	}
}

func literal(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return float(v)
	case []byte:
		return fmt.Sprintf("X'%x'", v)
	}
	return "'" + strings.ReplaceAll(fmt.Sprint(v), "'", "''") + "'"
}

func (w *table) line(fields []string) {
	out := w.c.t.Out()
	switch w.c.mode {
	case "csv":
		for i, f := range fields {
			if i > 0 {
				_, _ = out.WriteString(w.c.separator)
			}
			if f == "" && w.c.null == "" || strings.ContainsAny(f, "\"\n\r '") || strings.Contains(f, w.c.separator) {
				if f != "" {
					f = `"` + strings.ReplaceAll(f, `"`, `""`) + `"`
				}
			}
			_, _ = out.WriteString(f)
		}
		_, _ = out.WriteString(w.c.newline)
	case "html":
		_, _ = out.WriteString("<TR>")
		for _, f := range fields {
			f = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(f)
			_, _ = out.WriteString("<TD>" + f + "</TD>\n")
		}
		_, _ = out.WriteString("</TR>\n")
	case "quote":
		_, _ = out.WriteString(strings.Join(fields, ",") + "\n")
	default:
		_, _ = out.WriteString(kernel.Join(w.c.t, fields, w.c.separator) + "\n")
	}
}

func (w *table) object(values []any) {
	out := w.c.t.Out()
	if w.n == 1 {
		_, _ = out.WriteString("[{")
	} else {
		_, _ = out.WriteString(",\n{")
	}
	for i, v := range values {
		if i > 0 {
			_, _ = out.WriteString(",")
		}
		_, _ = out.WriteString(quoted(w.names[i]) + ":")
		switch v := v.(type) {
		case nil:
			_, _ = out.WriteString("null")
		case int64, float64:
			_, _ = out.WriteString(w.c.text(v))
		default:
			_, _ = out.WriteString(quoted(w.c.text(v)))
		}
	}
	_, _ = out.WriteString("}")
}

func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// end finishes what needs all rows.
func (w *table) end() {
	out := w.c.t.Out()
	if w.c.mode == "json" && w.n > 0 {
		_, _ = out.WriteString("]\n")
	}
	if len(w.kept) == 0 {
		return
	}
	width := make([]int, len(w.names))
	for i, n := range w.names {
		width[i] = utf8.RuneCountInString(n)
		for _, r := range w.kept {
			width[i] = max(width[i], utf8.RuneCountInString(r[i]))
		}
	}
	pad := func(s string, i int) string { return s + strings.Repeat(" ", width[i]-utf8.RuneCountInString(s)) }
	centre := func(s string, i int) string {
		free := width[i] - utf8.RuneCountInString(s)
		return strings.Repeat(" ", free/2) + s + strings.Repeat(" ", free-free/2)
	}
	row := func(left, mid, right string, fields []string, how func(string, int) string) {
		parts := make([]string, len(fields))
		for i, f := range fields {
			parts[i] = how(f, i)
		}
		_, _ = out.WriteString(left + strings.Join(parts, mid) + right + "\n")
	}
	rule := func(left, mid, right, dash string, extra int) {
		parts := make([]string, len(width))
		for i, n := range width {
			parts[i] = strings.Repeat(dash, n+extra)
		}
		_, _ = out.WriteString(left + strings.Join(parts, mid) + right + "\n")
	}
	switch w.c.mode {
	case "column":
		if w.c.header {
			row("", "  ", "", w.names, pad)
			rule("", "  ", "", "-", 0)
		}
		for _, r := range w.kept {
			row("", "  ", "", r, pad)
		}
	case "markdown":
		row("| ", " | ", " |", w.names, centre)
		rule("|", "|", "|", "-", 2)
		for _, r := range w.kept {
			row("| ", " | ", " |", r, pad)
		}
	case "table":
		rule("+", "+", "+", "-", 2)
		row("| ", " | ", " |", w.names, centre)
		rule("+", "+", "+", "-", 2)
		for _, r := range w.kept {
			row("| ", " | ", " |", r, pad)
		}
		rule("+", "+", "+", "-", 2)
	case "box":
		rule("┌", "┬", "┐", "─", 2)
		row("│ ", " │ ", " │", w.names, centre)
		rule("├", "┼", "┤", "─", 2)
		for _, r := range w.kept {
			row("│ ", " │ ", " │", r, pad)
		}
		rule("└", "┴", "┘", "─", 2)
	}
}
