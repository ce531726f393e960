package archtest_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// documentsBelow gives the documents of a directory of the module and below it, sorted.
func documentsBelow(t *testing.T, dir string) []string {
	t.Helper()
	top := root(t)
	var names []string
	err := filepath.WalkDir(filepath.Join(top, dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", ".tmp", "testdata", "node_modules"}, d.Name()) {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			name, err := filepath.Rel(top, path)
			names = append(names, filepath.ToSlash(name))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// prose gives the lines of a document with their numbers, without its blocks of code and without what programs write
// between marks.
func prose(text string) map[int]string {
	lines := map[int]string{}
	code, generated := false, false
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		if strings.HasPrefix(line, "<!-- ") && strings.Contains(line, ": begin") {
			generated = true
		}
		if strings.HasPrefix(line, "<!-- ") && strings.Contains(line, ": end") {
			generated = false
		}
		if generated {
			continue
		}
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
			continue
		}
		if !code {
			lines[number] = line
		}
	}
	return lines
}

const (
	widest        = 120 // characters of a line that is not in a table or a block of code
	longestReadme = 150 // lines
	whyIndex      = "docs/why/README.md"
)

func TestALineOfADocumentFitsAScreen(t *testing.T) {
	for _, name := range documentsBelow(t, ".") {
		for number, line := range prose(read(t, name)) {
			if strings.HasPrefix(line, "|") || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "#") {
				continue
			}
			// Only the text of a link is seen, and its address cannot be broken.
			if utf8.RuneCountInString(linkText.ReplaceAllString(line, "$1")) > widest {
				t.Errorf("%s:%d has more than %d characters", name, number, widest)
			}
		}
	}
}

func TestTheReadmeIsShort(t *testing.T) {
	if n := strings.Count(read(t, "README.md"), "\n"); n > longestReadme {
		t.Errorf("README.md has %d lines, more than %d: move something to docs", n, longestReadme)
	}
}

var (
	makes      = regexp.MustCompile(`(?m)^make ([a-z]+)`)
	makeTarget = regexp.MustCompile(`(?m)^([a-z]+):.*## `)
)

func TestTheMakefileHasWhatDocumentsMake(t *testing.T) {
	targets := map[string]bool{}
	for _, m := range makeTarget.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[m[1]] = true
	}
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "AGENTS.md"} {
		for _, m := range makes.FindAllStringSubmatch(read(t, name), -1) {
			if !targets[m[1]] {
				t.Errorf("%s runs make %s, which make help does not list", name, m[1])
			}
		}
	}
}

var (
	link     = regexp.MustCompile(`\]\(([^)#: ]*)(?:#([^)]*))?\)`)
	heading  = regexp.MustCompile(`^#{1,6} (.*)$`)
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// anchor gives the name by which a link leads to a heading.
func anchor(text string) string {
	text = linkText.ReplaceAllString(text, "$1")
	return strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(text)), ""), " ", "-")
}

// headings gives the headings of a document, by anchor.
func headings(text string) map[string]string {
	all := map[string]string{}
	for _, line := range prose(text) {
		if m := heading.FindStringSubmatch(line); m != nil {
			all[anchor(m[1])] = m[1]
		}
	}
	return all
}

func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	top := root(t)
	for _, name := range documentsBelow(t, ".") {
		for number, line := range prose(read(t, name)) {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				target := name
				if m[1] != "" {
					target = filepath.ToSlash(filepath.Join(filepath.Dir(name), m[1]))
				}
				if _, err := os.Stat(filepath.Join(top, target)); err != nil {
					t.Errorf("%s:%d: a link to nothing: %s", name, number, m[1])
					continue
				}
				if m[2] == "" {
					continue
				}
				if _, ok := headings(read(t, target))[m[2]]; !ok {
					t.Errorf("%s:%d: %s has no heading %q", name, number, target, m[2])
				}
			}
		}
	}
}

// The index is made from the pages' headings. PADDOCK_UPDATE=1 writes it.
func TestTheIndexOfReasonsHasEveryQuestion(t *testing.T) {
	var b strings.Builder
	for _, name := range documentsBelow(t, "docs/why") {
		if name == whyIndex {
			continue
		}
		page := filepath.Base(name)
		lines := prose(read(t, name))
		for _, number := range slices.Sorted(maps.Keys(lines)) {
			line := lines[number]
			m := heading.FindStringSubmatch(line)
			switch {
			case m == nil:
			case strings.HasPrefix(line, "# "):
				fmt.Fprintf(&b, "\n## [%s](%s)\n\n", m[1], page)
			default:
				if !strings.HasSuffix(m[1], "?") {
					t.Errorf("%s:%d: %q is not a question", name, number, m[1])
				}
				fmt.Fprintf(&b, "- [%s](%s#%s)\n", m[1], page, anchor(m[1]))
			}
		}
	}
	splice(t, whyIndex, "questions", b.String()+"\n")
}

// splice compares what stands in a document between the marks of a name with what belongs there. With PADDOCK_UPDATE=1
// it writes it.
func splice(t *testing.T, document, name, want string) {
	t.Helper()
	begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->"
	before, rest, ok := strings.Cut(read(t, document), begin)
	have, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for %s", document, name)
	}
	if have == want {
		return
	}
	if os.Getenv("PADDOCK_UPDATE") == "1" {
		err := os.WriteFile(filepath.Join(root(t), document), []byte(before+begin+want+end+after), 0o644)
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s is stale between the marks %q; write it anew: make documents", document, name)
}

// The tree is made from the packages' comments. PADDOCK_UPDATE=1 writes it.
func TestTheTreeNamesEveryPackage(t *testing.T) {
	packages := list(t)
	var b strings.Builder
	b.WriteString("\n```text\n")
	var shown []string
	own := packages.own()
	slices.SortFunc(own, func(a, b string) int { return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/")) })
	for _, name := range own {
		if name == "." {
			branch(&b, 0, "*.go", packages.get(name).Doc)
			continue
		}
		parts := strings.Split(name, "/")
		for depth, part := range parts {
			path := strings.Join(parts[:depth+1], "/")
			if slices.Contains(shown, path) {
				continue
			}
			shown = append(shown, path)
			doc := ""
			if p := packages.get(path); p != nil {
				doc = p.Doc
			}
			branch(&b, depth, part+"/", doc)
		}
	}
	b.WriteString("```\n\n")
	splice(t, "docs/ARCHITECTURE.md", "tree", b.String())
}

// said is what begins a package's comment and says nothing that its place in the tree does not.
var said = regexp.MustCompile(`^(?:Package|Command) \S+ (?:is )?`)

// branch writes one line of the tree, or several where the words do not fit.
func branch(b *strings.Builder, depth int, name, doc string) {
	const column = 30
	line := strings.Repeat("  ", depth) + name
	for _, word := range strings.Fields(strings.TrimSuffix(said.ReplaceAllString(doc, ""), ".")) {
		switch {
		case len(line) < column:
			line += strings.Repeat(" ", column-len(line))
		case len(line)+1+len(word) > widest:
			b.WriteString(line + "\n")
			line = strings.Repeat(" ", column)
		default:
			line += " "
		}
		line += word
	}
	b.WriteString(line + "\n")
}

// The layers' table of AGENTS.md names packages as `path`, or `path/…` for all below it, too.
var layerName = regexp.MustCompile("`([^`]+)`")

func TestTheLayersNameEveryPackage(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "AGENTS.md"), "\n## Layers\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var names []string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 || !strings.HasPrefix(line, "| ") {
			continue
		}
		for _, m := range layerName.FindAllStringSubmatch(cells[2], -1) {
			names = append(names, m[1])
		}
	}
	own := list(t).own()
	covers := func(name, p string) bool {
		all, below := strings.CutSuffix(name, "/…")
		return p == name || below && within(p, all)
	}
	for _, p := range own {
		if p != "." && !slices.ContainsFunc(names, func(name string) bool { return covers(name, p) }) {
			t.Errorf("the layers of AGENTS.md do not name %s", p)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(own, func(p string) bool { return covers(name, p) }) {
			t.Errorf("the layers of AGENTS.md name %s, which is no package", name)
		}
	}
}
