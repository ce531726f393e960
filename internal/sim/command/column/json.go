package column

import (
	"strings"
)

// json shows the table as JSON.
func (c *columner) json(name string) {
	c.w.String("{\n   " + quoteJSON(name) + ": [\n")
	var top []*row
	for _, r := range c.rows {
		if !r.child {
			top = append(top, r)
		}
	}
	c.objects(top, "      ")
	c.w.String("   ]\n}\n")
}

func (c *columner) objects(rows []*row, lead string) {
	shown := c.shown()
	for i, r := range rows {
		if i == 0 {
			c.w.String(lead)
		}
		c.w.String("{\n")
		for k, at := range shown {
			c.w.String(lead + "   " + quoteJSON(strings.ToLower(c.columns[at].name)) + ": ")
			if at < len(r.cells) && r.cells[at] != "" {
				c.w.String(quoteJSON(r.cells[at]))
			} else {
				c.w.String("null")
			}
			if k < len(shown)-1 || len(r.children) > 0 {
				c.w.Byte(',')
			}
			c.w.Byte('\n')
		}
		if len(r.children) > 0 {
			c.w.String(lead + "   \"children\": [\n")
			c.objects(r.children, lead+"      ")
			c.w.String(lead + "   ]\n")
		}
		c.w.String(lead + "}")
		c.t.Step(1)
		if i < len(rows)-1 {
			c.w.Byte(',')
		} else {
			c.w.Byte('\n')
		}
	}
}

func quoteJSON(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ':
			if k := strings.IndexByte("\b\f\n\r\t", c); k >= 0 {
				b.WriteByte('\\')
				b.WriteByte("bfnrt"[k])
			} else {
				const hex = "0123456789abcdef"
				b.WriteString("\\u00")
				b.WriteByte(hex[c>>4])
				b.WriteByte(hex[c&15])
			}
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
