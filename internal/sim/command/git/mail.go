package git

import (
	"fmt"
	"net/mail"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
)

func (w *work) formatPatch(args []string) error {
	args = numbered(args)
	o, err := w.options(args, "--stdout -k -N --no-numbered --numbered --signoff -s --cover-letter --no-signature --root -q --quiet", "-o --output-directory -n --max-count --subject-prefix --start-number -v")
	if err != nil {
		return err
	}
	revs := slices.Clone(o.rest)
	most := o.flags["-n"] + o.flags["--max-count"]
	if len(revs) == 1 && !strings.Contains(revs[0], "..") && most == "" && !o.has("--root") {
		revs[0] += "..HEAD"
	}
	starts, stops, paths, err := w.revisions(&options{flags: map[string]string{}, rest: revs, paths: o.paths, dash: true})
	if err != nil {
		return err
	}
	q := &options{flags: map[string]string{"--no-merges": ""}}
	if most != "" {
		q.flags["-n"] = most
	}
	list, err := w.selected(starts, stops, style{paths: paths}, q)
	if err != nil {
		return err
	}
	slices.Reverse(list)
	prefix := "PATCH"
	if v, ok := o.flags["--subject-prefix"]; ok {
		prefix = v
	}
	for i, c := range list {
		tag := "[" + prefix + "] "
		if len(list) > 1 && !o.has("-N", "--no-numbered") {
			tag = fmt.Sprintf("[%s %*d/%d] ", prefix, len(strconv.Itoa(len(list))), i+1, len(list))
		}
		if o.has("-k") {
			tag = ""
		}
		var b strings.Builder
		w.capture = &b
		err := w.letter(c, tag, o)
		w.capture = nil
		if err != nil {
			return err
		}
		if o.has("--stdout") {
			if i > 0 {
				w.printf("\n")
			}
			w.printf("%s", b.String())
			continue
		}
		name := path.Join(o.flags["-o"]+o.flags["--output-directory"], fmt.Sprintf("%04d-%s.patch", i+1, slug(subject(c))))
		if dir := path.Dir(name); dir != "." {
			if err := w.t.View.MkdirAll(dir, 0o777); err != nil {
				return fail("could not create directory '%s': %s", dir, message(err))
			}
		}
		w.printf("%s\n", name)
		if err := w.t.View.WriteFile(name, []byte(b.String()+"\n"), 0o666); err != nil {
			return fail("cannot write '%s': %s", name, message(err))
		}
	}
	return nil
}

// slug is a subject as part of a file's name.
func slug(s string) string {
	var b strings.Builder
	gap := false
	for i := range len(s) {
		c := s[i]
		if wordByte(c) || c == '.' {
			if gap && b.Len() > 0 {
				b.WriteByte('-')
			}
			gap = false
			if c != '.' || !strings.HasSuffix(b.String(), ".") {
				b.WriteByte(c)
			}
		} else {
			gap = true
		}
	}
	out := b.String()
	return strings.TrimRight(out[:min(len(out), 52)], ".-")
}

// letter writes a commit as a mail.
func (w *work) letter(c *object.Commit, tag string, o *options) error {
	_, body, _ := strings.Cut(strings.TrimLeft(c.Message, "\n"), "\n\n")
	w.printf("From %s Mon Sep 17 00:00:00 2001\nFrom: %s <%s>\nDate: %s\nSubject: %s%s\n\n", c.Hash, c.Author.Name, c.Author.Email, c.Author.When.Format("Mon, 2 Jan 2006 15:04:05 -0700"), tag, subject(c))
	if body = strings.TrimRight(body, "\n"); body != "" {
		w.printf("%s\n", body)
	}
	if o.has("-s", "--signoff") {
		s, err := w.signature("COMMITTER")
		if err != nil {
			return err
		}
		w.printf("\nSigned-off-by: %s <%s>\n", s.Name, s.Email)
	}
	a, b, err := w.sides(c)
	if err != nil {
		return err
	}
	list, err := w.renamed(a, b, changes(a, b, nil))
	if err != nil {
		return err
	}
	w.printf("---\n")
	counts, err := w.counts(a, b, list)
	if err != nil {
		return err
	}
	w.narrow = 72
	w.statistic(counts)
	w.narrow = 0
	w.comings(slices.DeleteFunc(slices.Clone(list), func(c change) bool { return c.from != nil && c.to != nil && c.old == "" && c.from.mode == c.to.mode }))
	w.printf("\n")
	if err := w.patch(a, b, list, 3); err != nil {
		return err
	}
	w.printf("-- \n%s\n", strings.TrimPrefix(version, "git version "))
	return nil
}

func (w *work) am(args []string) error {
	o, err := w.options(args, "-3 --3way -q --quiet -s --signoff -k --abort --continue --skip --quit --keep-cr --ignore-whitespace", "-p --directory")
	if err != nil {
		return err
	}
	if o.has("--abort", "--continue", "--skip", "--quit") {
		return fail("Resolve operation not in progress, we are not resuming.")
	}
	files := o.rest
	if len(files) == 0 {
		files = []string{"-"}
	}
	for _, f := range files {
		b, err := command.ReadAll(w.t, f)
		if err != nil {
			return fail("could not open '%s' for reading: %s", f, message(err))
		}
		for _, m := range letters(string(b)) {
			if err := w.amOne(m, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// letters takes a mailbox apart.
func letters(text string) []string {
	var out []string
	for text != "" {
		i := strings.Index(text, "\nFrom ")
		for i >= 0 && !strings.Contains(text[i+6:min(len(text), i+80)], " 2001\n") {
			j := strings.Index(text[i+1:], "\nFrom ")
			if j < 0 {
				i = -1
				break
			}
			i += 1 + j
		}
		if i < 0 {
			return append(out, text)
		}
		out, text = append(out, text[:i+1]), text[i+1:]
	}
	return out
}

func (w *work) amOne(text string, o *options) error {
	if strings.HasPrefix(text, "From ") {
		_, text, _ = strings.Cut(text, "\n")
	}
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return fail("Patch format detection failed.")
	}
	from, err := mail.ParseAddress(m.Header.Get("From"))
	if err != nil {
		return fail("invalid ident line: %s", m.Header.Get("From"))
	}
	title := strings.TrimSpace(m.Header.Get("Subject"))
	for strings.HasPrefix(title, "[") && !o.has("-k") {
		_, rest, ok := strings.Cut(title, "]")
		if !ok {
			break
		}
		title = strings.TrimSpace(rest)
	}
	_, body, _ := strings.Cut(text, "\n\n")
	words, patch, _ := strings.Cut("\n"+body, "\n---\n")
	if i := strings.LastIndex(patch, "\n-- \n"); i >= 0 {
		patch = patch[:i+1]
	}
	author := &object.Signature{Name: from.Name, Email: from.Address, When: w.t.K.Now().UTC()}
	if when, err := time.Parse("Mon, 2 Jan 2006 15:04:05 -0700", m.Header.Get("Date")); err == nil {
		author.When = when
	}
	if !o.has("-q", "--quiet") {
		w.printf("Applying: %s\n", title)
	}
	list, err := w.readPatch(patch, 1)
	if err != nil {
		return err
	}
	if err := w.applyAll(list, true, false, false); err != nil {
		var f *fatal
		if asFatal(err, &f) {
			return &fatal{f.text + "\nPatch failed at 0001 " + title + "\nThe patch was not applied, and nothing was changed: fix it and run git am again.", 128}
		}
		return err
	}
	committer, err := w.signature("COMMITTER")
	if err != nil {
		return err
	}
	after, err := w.indexSide()
	if err != nil {
		return err
	}
	d := &draft{text: tidy(title + "\n\n" + words), author: author, committer: committer, after: after}
	if o.has("-s", "--signoff") {
		d.text += "\nSigned-off-by: " + committer.Name + " <" + committer.Email + ">\n"
	}
	if h := w.head(); h != nil {
		d.parents = []plumbing.Hash{h.Hash}
	}
	_, err = w.write(d, "am: "+title)
	return err
}

// numbered writes -3 as -n 3.
func numbered(args []string) []string {
	out := make([]string, 0, len(args)+1)
	for _, a := range args {
		if n, ok := strings.CutPrefix(a, "-"); ok {
			if _, err := strconv.ParseUint(n, 10, 31); err == nil {
				out = append(out, "-n", n)
				continue
			}
		}
		out = append(out, a)
	}
	return out
}
