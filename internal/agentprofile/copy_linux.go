package agentprofile

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Bounds of what is copied, and of what is compared, for each path that a profile names.
const (
	maxFile  = 4 << 20
	maxAll   = 64 << 20
	maxFiles = 5000
	maxNames = 8000 // of files and directories
	maxNotes = 100
	maxDepth = 16
	maxText  = 1 << 20 // bytes of the names of files
)

// A file is a regular file of a tree, with a path relative to the home.
type file struct {
	name string
	data []byte // nil if it was compared
	sum  sha256sum
	exec bool
}

type sha256sum = [sha256.Size]byte

// A gathering reads regular files below an open directory. It follows no link.
type gathering struct {
	top   int
	sums  bool // digests are wanted, and no data: a sandbox can make many large files that take no room
	bytes int
	text  int // bytes of the names of files
	names int // that were read in directories
	files []file
	notes []string // what was left out, and why
	more  int      // notes that were too many
	cut   string   // why not all could be read; empty is that it was
}

// note keeps that something was left out.
func (g *gathering) note(name, why string) {
	if len(g.notes) >= maxNotes {
		g.more++
		return
	}
	g.notes = append(g.notes, fmt.Sprintf("~/%s %s", name, why))
}

// short keeps that not all could be read, so that what is missing may be there.
func (g *gathering) short(name, why string) {
	g.note(name, why)
	if g.cut == "" {
		g.cut = fmt.Sprintf("~/%s %s", name, why)
	}
}

// add reads the file or directory at a path. A path where nothing is adds nothing.
func (g *gathering) add(name string, depth int) {
	if len(g.files) >= maxFiles || g.bytes >= maxAll || g.text >= maxText {
		g.short(name, "and more: there are too many files")
		return
	}
	fd, err := sys.OpenBeneath(g.top, name, syscall.O_RDONLY, 0)
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTDIR):
		return
	case errors.Is(err, syscall.ELOOP):
		g.note(name, "is a link, or behind one")
		return
	case errors.Is(err, syscall.ENXIO):
		g.note(name, "is no file")
		return
	case err != nil:
		g.short(name, "cannot be read: "+err.Error())
		return
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		g.short(name, "cannot be read: "+err.Error())
	case st.IsDir():
		g.dir(f, name, depth)
	case !st.Mode().IsRegular():
		g.note(name, "is no file")
	default:
		g.file(f, name, st.Mode().Perm()&0o100 != 0)
	}
}

// dir reads a directory, and what is in it.
func (g *gathering) dir(f *os.File, name string, depth int) {
	if depth == maxDepth {
		g.short(name, "is too deep")
		return
	}
	room := maxNames - g.names
	names, err := f.Readdirnames(room + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		g.short(name, "cannot be read: "+err.Error())
	}
	if g.names += len(names); len(names) > room {
		g.short(name, "and more: there are too many names")
		return
	}
	slices.Sort(names)
	for _, n := range names {
		if !withheld(n) {
			g.add(path.Join(name, n), depth+1)
		}
	}
}

// file reads a regular file.
func (g *gathering) file(f *os.File, name string, exec bool) {
	var data bytes.Buffer
	hash := sha256.New()
	into := io.Writer(hash)
	if !g.sums {
		into = io.MultiWriter(hash, &data)
	}
	n, err := io.Copy(into, io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		g.short(name, "cannot be read: "+err.Error())
	case n > maxFile:
		g.short(name, fmt.Sprintf("is larger than %d MiB", maxFile>>20))
	default:
		g.bytes += int(n)
		g.text += len(name)
		g.files = append(g.files, file{name, data.Bytes(), sha256sum(hash.Sum(nil)), exec})
	}
}

// told lists the notes. One is for those that were too many.
func (g *gathering) told() []string {
	if g.more > 0 {
		return append(slices.Clone(g.notes), fmt.Sprintf("%d more names", g.more))
	}
	return g.notes
}

// withheld reports whether a name in a copied directory is of credentials or of what is fetched again.
func withheld(name string) bool {
	return slices.Contains([]string{".git", "node_modules", ".env", ".credentials.json", "auth.json", "oauth_creds.json", ".netrc", ".DS_Store"}, name)
}

// fill makes the files of a new state. Words stand for others in the files of the profile. The notes say what was not copied.
func fill(dir, home string, p *Profile, words map[string]string) (notes []string, err error) {
	given := map[string]file{}
	if notes, err = gather(home, p.State.Copy, given); err != nil {
		return nil, err
	}
	for _, f := range p.First {
		if err := first(given, f, words); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{baseName, homeName} {
		if err := write(filepath.Join(dir, name), given); err != nil {
			return nil, err
		}
	}
	return notes, nil
}

// write writes files below a directory.
func write(dir string, files map[string]file) error {
	top, err := openDir(dir)
	if err != nil {
		return err
	}
	defer sys.Close(top)
	for _, at := range slices.Sorted(maps.Keys(files)) {
		if err := put(top, at, files[at].data, modeOf(files[at])); err != nil {
			return err
		}
	}
	return nil
}

func modeOf(f file) uint32 {
	if f.exec {
		return 0o700
	}
	return 0o600
}

// gather reads what a new state gets from the host.
func gather(home string, list []Copy, into map[string]file) (notes []string, err error) {
	if home == "" {
		return nil, nil
	}
	top, err := openDir(home)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer sys.Close(top)
	for _, c := range list {
		g := gathering{top: top}
		g.add(c.From[2:], 0)
		notes = append(notes, g.told()...)
		for _, f := range g.files {
			if len(c.Keys) > 0 {
				var why string
				if f.data, why = onlyKeys(f.data, c.Keys); why != "" {
					notes = append(notes, fmt.Sprintf("~/%s %s", f.name, why))
					continue
				}
			}
			f.name = path.Join(c.Target()[2:], strings.TrimPrefix(f.name, c.From[2:]))
			into[f.name] = f
		}
	}
	return notes, nil
}

// onlyKeys returns a JSON object with some of its keys.
func onlyKeys(data []byte, keys []string) (text []byte, why string) {
	members, err := parseObject(data)
	if err != nil {
		return nil, "is no JSON object"
	}
	members = slices.DeleteFunc(members, func(m member) bool { return !slices.Contains(keys, m.key) })
	return formatObject(members), ""
}

// first adds keys to a file.
func first(given map[string]file, f First, words map[string]string) error {
	var add, have map[string]any
	if err := json.Unmarshal([]byte(f.JSON), &add); err != nil {
		return err
	}
	name := f.File[2:]
	if old, ok := given[name]; ok {
		if !json.Valid(old.data) {
			return nil // the user's own text, which the agent then judges
		}
		if err := json.Unmarshal(old.data, &have); err != nil {
			return fmt.Errorf("~/%s: %w", name, err)
		}
	}
	if have == nil {
		have = map[string]any{}
	}
	merge(have, filledObject(add, words))
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(have); err != nil {
		return err
	}
	given[name] = file{name: name, data: text.Bytes()}
	return nil
}

// replaced puts words in the place of others. No word comes into what is put in.
func replaced(text string, words map[string]string) string {
	var pairs []string
	for _, w := range slices.Sorted(maps.Keys(words)) {
		pairs = append(pairs, w, words[w])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// filled puts words in the place of others into keys and texts.
func filled(v any, words map[string]string) any {
	switch v := v.(type) {
	case string:
		return replaced(v, words)
	case []any:
		for i := range v {
			v[i] = filled(v[i], words)
		}
		return v
	case map[string]any:
		return filledObject(v, words)
	}
	return v
}

func filledObject(object map[string]any, words map[string]string) map[string]any {
	sum := map[string]any{}
	for k, x := range object {
		sum[replaced(k, words)] = filled(x, words)
	}
	return sum
}

// merge adds what is missing.
func merge(have, add map[string]any) {
	for k, v := range add {
		old, there := have[k]
		below, isObject := old.(map[string]any)
		more, too := v.(map[string]any)
		switch {
		case !there:
			have[k] = v
		case isObject && too:
			merge(below, more)
		}
	}
}

// A member is a key of a JSON object with its value.
type member struct {
	key   string
	value json.RawMessage
}

// parseObject returns the members of a JSON object in their order.
func parseObject(data []byte) ([]member, error) {
	if !json.Valid(data) {
		return nil, errors.New("it is no JSON")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("it is no JSON object")
	}
	var list []member
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, ok := t.(string)
		if !ok {
			return nil, errors.New("it is no JSON object")
		}
		m := member{key: key}
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, func(other member) bool { return other.key == key }) {
			return nil, fmt.Errorf("the key %q is there twice", key)
		}
		list = append(list, m)
	}
	return list, nil
}

// formatObject writes a JSON object as agents do.
func formatObject(list []member) []byte {
	var b, out bytes.Buffer
	b.WriteByte('{')
	for i, m := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(m.key)
		if err != nil {
			continue // a string always is
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	if err := json.Indent(&out, b.Bytes(), "", "  "); err != nil {
		return b.Bytes() // its parts were parsed
	}
	out.WriteByte('\n')
	return out.Bytes()
}
