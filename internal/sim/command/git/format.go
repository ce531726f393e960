package git

import (
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// A style is how commits are shown.
type style struct {
	format                              string // of --format, after its "format:"
	oneline, separator                  bool   // a newline goes between, not behind
	patch, stat, names, status, numstat bool
	pretty                              string // one of git's own forms
	shown                               bool   // by show, not log
	comings                             bool   // which files come and go
	total                               bool   // of the statistic only the last line
	apart                               bool   // renames are shown as two changes
	decorate, full                      bool
	dates                               string
	context                             int
	paths                               []string
	followed                            map[plumbing.Hash][]string // with --follow: what each commit's paths are
}

func (s style) diffs() bool {
	return s.comings || s.patch || s.stat || s.names || s.status || s.numstat
}

func (w *work) style(o *options) style {
	s := style{
		oneline: o.has("--oneline"), patch: o.has("-p", "--patch", "-u"), stat: o.has("--stat", "--shortstat"), total: o.has("--shortstat"), comings: o.has("--summary"), apart: o.has("--no-renames"), names: o.has("--name-only"), status: o.has("--name-status"),
		numstat: o.has("--numstat"), decorate: o.has("--decorate"), dates: o.flags["--date"], context: 3,
	}
	if n, err := strconv.Atoi(o.flags["-U"]); err == nil {
		s.context = max(0, min(n, 1<<20))
	}
	f, ok := o.flags["--format"]
	if p, given := o.flags["--pretty"]; given {
		f, ok = p, true
	}
	if !ok {
		return s
	}
	switch {
	case f == "oneline":
		s.oneline, s.full = true, true
	case f == "medium" || f == "":
	case f == "short" || f == "full" || f == "fuller" || f == "raw":
		s.pretty = f
	case f == "reference":
		s.format, s.dates = "%h (%s, %ad)", "short"
	case strings.HasPrefix(f, "format:"):
		s.format, s.separator = strings.TrimPrefix(f, "format:"), true
	case strings.HasPrefix(f, "tformat:"):
		s.format = strings.TrimPrefix(f, "tformat:")
	default:
		s.format = f
	}
	return s
}

func (w *work) showCommit(c *object.Commit, s style, marks map[plumbing.Hash][]string, first bool) error {
	mark := ""
	if names := marks[c.Hash]; len(names) > 0 && s.decorate {
		mark = " (" + strings.Join(names, ", ") + ")"
	}
	switch {
	case s.format != "":
		if s.separator && !first {
			w.printf("\n")
		}
		w.printf("%s", expand(s.format, c, marks[c.Hash], s.dates, w.t.K.Now()))
		if !s.separator || s.diffs() {
			w.printf("\n")
		}
	case s.oneline && s.full:
		w.printf("%s%s %s\n", c.Hash, mark, subject(c))
	case s.oneline:
		w.printf("%s%s %s\n", short(c.Hash), mark, subject(c))
	default:
		if !first {
			w.printf("\n")
		}
		w.printf("commit %s%s\n", c.Hash, mark)
		if c.NumParents() > 1 && s.pretty != "raw" {
			w.printf("Merge:")
			for _, h := range c.ParentHashes {
				w.printf(" %s", short(h))
			}
			w.printf("\n")
		}
		w.signed(c, s)
		text := strings.TrimRight(c.Message, "\n")
		if s.pretty == "short" {
			text = subject(c)
		}
		for _, l := range strings.Split(text, "\n") {
			if l == "" {
				w.printf("    \n")
			} else {
				w.printf("    %s\n", l)
			}
		}
	}
	if s.diffs() && c.NumParents() > 1 && s.shown && !s.oneline && s.format == "" {
		w.printf("\n")
	}
	if !s.diffs() || c.NumParents() > 1 {
		return nil
	}
	a, b, err := w.sides(c)
	if err != nil {
		return err
	}
	paths := s.paths
	if names, ok := s.followed[c.Hash]; ok {
		paths = names
	}
	list := changes(a, b, paths)
	if len(list) > 0 && !s.oneline {
		w.printf("\n")
	}
	return w.shown(a, b, list, s)
}

// signed prints who made a commit, and when.
func (w *work) signed(c *object.Commit, s style) {
	a, m := c.Author, c.Committer
	switch s.pretty {
	case "short":
		w.printf("Author: %s <%s>\n\n", a.Name, a.Email)
	case "full":
		w.printf("Author: %s <%s>\nCommit: %s <%s>\n\n", a.Name, a.Email, m.Name, m.Email)
	case "fuller":
		w.printf("Author:     %s <%s>\nAuthorDate: %s\nCommit:     %s <%s>\nCommitDate: %s\n\n", a.Name, a.Email, when(a.When, s.dates), m.Name, m.Email, when(m.When, s.dates))
	case "raw":
		w.printf("tree %s\n", c.TreeHash)
		for _, p := range c.ParentHashes {
			w.printf("parent %s\n", p)
		}
		w.printf("author %s <%s> %s\ncommitter %s <%s> %s\n\n", a.Name, a.Email, when(a.When, "raw"), m.Name, m.Email, when(m.When, "raw"))
	default:
		w.printf("Author: %s <%s>\nDate:   %s\n\n", a.Name, a.Email, when(a.When, s.dates))
	}
}

// shown prints changes in the ways that were asked for.
func (w *work) shown(a, b side, list []change, s style) error {
	if !s.apart {
		var err error
		if list, err = w.renamed(a, b, list); err != nil {
			return err
		}
	}
	switch {
	case s.names:
		for _, c := range list {
			w.printf("%s\n", quoted(c.name))
		}
		return nil
	case s.status:
		for _, c := range list {
			if c.old != "" {
				w.printf("R%03d\t%s\t%s\n", c.score, quoted(c.old), quoted(c.name))
				continue
			}
			w.printf("%c\t%s\n", letter(c), quoted(c.name))
		}
		return nil
	}
	if s.stat || s.numstat {
		counts, err := w.counts(a, b, list)
		if err != nil {
			return err
		}
		if s.numstat {
			for _, n := range counts {
				if n.binary {
					w.printf("-\t-\t%s\n", n.shown)
				} else {
					w.printf("%d\t%d\t%s\n", n.add, n.del, n.shown)
				}
			}
		} else if s.total && len(counts) > 0 {
			w.printf("%s\n", summary(counts))
		} else {
			w.statistic(counts)
		}
		if s.patch {
			w.printf("\n")
		}
	}
	if s.comings {
		w.comings(list)
	}
	if s.patch {
		return w.patch(a, b, list, s.context)
	}
	return nil
}

func when(t time.Time, style string) string {
	switch style {
	case "iso", "iso8601":
		return t.Format("2006-01-02 15:04:05 -0700")
	case "iso-strict", "iso8601-strict":
		return t.Format(time.RFC3339)
	case "short":
		return t.Format("2006-01-02")
	case "unix":
		return strconv.FormatInt(t.Unix(), 10)
	case "raw":
		return strconv.FormatInt(t.Unix(), 10) + t.Format(" -0700")
	case "rfc":
		return t.Format("Mon, 2 Jan 2006 15:04:05 -0700")
	}
	return t.Format(dateFormat)
}

// ago says how long something is over, as git does.
func ago(d time.Duration) string {
	s := int64(d / time.Second)
	say := func(n int64, what string) string {
		if n == 1 {
			return "1 " + what + " ago"
		}
		return strconv.FormatInt(n, 10) + " " + what + "s ago"
	}
	minutes, hours, days := (s+30)/60, ((s+30)/60+30)/60, (((s+30)/60+30)/60+12)/24
	switch {
	case s < 0:
		return "in the future"
	case s < 90:
		return say(s, "second")
	case minutes < 90:
		return say(minutes, "minute")
	case hours < 36:
		return say(hours, "hour")
	case days < 14:
		return say(days, "day")
	case days < 70:
		return say((days+3)/7, "week")
	case days < 365:
		return say((days+15)/30, "month")
	case days < 1825:
		months := (days*12*2 + 365) / (365 * 2)
		years := say(months/12, "year")
		if months%12 == 0 {
			return years
		}
		return strings.TrimSuffix(years, " ago") + ", " + say(months%12, "month")
	}
	return say((days+183)/365, "year")
}

// expand fills a format in.
func expand(f string, c *object.Commit, names []string, dates string, now time.Time) string {
	var b strings.Builder
	person := func(p object.Signature, k byte) string {
		switch k {
		case 'n':
			return p.Name
		case 'e':
			return p.Email
		case 'd':
			return when(p.When, dates)
		case 'i':
			return when(p.When, "iso")
		case 'I':
			return when(p.When, "iso-strict")
		case 's':
			return when(p.When, "short")
		case 't':
			return when(p.When, "unix")
		case 'D':
			return when(p.When, "rfc")
		case 'r':
			return ago(now.Sub(p.When))
		case 'l':
			local, _, _ := strings.Cut(p.Email, "@")
			return local
		}
		return ""
	}
	parents := func(short int) string {
		var l []string
		for _, h := range c.ParentHashes {
			l = append(l, h.String()[:short])
		}
		return strings.Join(l, " ")
	}
	for i := 0; i < len(f); i++ {
		if f[i] != '%' || i+1 >= len(f) {
			b.WriteByte(f[i])
			continue
		}
		i++
		switch k := f[i]; k {
		case 'H':
			b.WriteString(c.Hash.String())
		case 'h':
			b.WriteString(short(c.Hash))
		case 'T':
			b.WriteString(c.TreeHash.String())
		case 't':
			b.WriteString(short(c.TreeHash))
		case 'P':
			b.WriteString(parents(40))
		case 'p':
			b.WriteString(parents(7))
		case 's':
			b.WriteString(subject(c))
		case 'b':
			_, body, _ := strings.Cut(c.Message, "\n\n")
			b.WriteString(body)
		case 'B':
			b.WriteString(c.Message)
		case 'n':
			b.WriteByte('\n')
		case '%':
			b.WriteByte('%')
		case 'd':
			if len(names) > 0 {
				b.WriteString(" (" + strings.Join(names, ", ") + ")")
			}
		case 'D':
			b.WriteString(strings.Join(names, ", "))
		case 'a', 'c':
			if i+1 < len(f) {
				i++
				p := c.Author
				if k == 'c' {
					p = c.Committer
				}
				b.WriteString(person(p, f[i]))
			}
		case 'x':
			if i+2 < len(f) {
				if n, err := strconv.ParseUint(f[i+1:i+3], 16, 8); err == nil {
					b.WriteByte(byte(n))
					i += 2
					continue
				}
			}
			b.WriteString("%x")
		case 'C':
			for _, colour := range []string{"reset", "red", "green", "blue", "yellow"} {
				if strings.HasPrefix(f[i+1:], colour) {
					i += len(colour)
				}
			}
			if strings.HasPrefix(f[i+1:], "(") {
				if end := strings.IndexByte(f[i:], ')'); end > 0 {
					i += end
				}
			}
		default:
			b.WriteByte('%')
			b.WriteByte(k)
		}
	}
	return b.String()
}
