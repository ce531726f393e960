package daytona

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
)

// Bounds of files.
const (
	maxPath    = 4096
	maxEntries = 100_000 // of one answer
	maxDepth   = 1000
	maxText    = 8 << 20 // of a file that is searched or changed
	maxMatches = 10_000
	maxLine    = 4 << 10 // of a match
	maxLinks   = 16
)

// env returns the sandbox's variables and a command's own. A sandbox that goes on from a memory has them only so.
func (r record) env(own map[string]string) map[string]string {
	all := maps.Clone(r.Env)
	if all == nil {
		return own
	}
	maps.Copy(all, own)
	return all
}

// absolute returns a path inside: a relative one is below the sandbox's directory, ~ its home.
func (r record) absolute(name string) string {
	switch {
	case name == "":
		return r.Dir
	case name == "~" || strings.HasPrefix(name, "~/"):
		return path.Join(r.Home, name[1:])
	case strings.HasPrefix(name, "/"):
		return name
	}
	return path.Join(r.Dir, name)
}

// fileError gives an error about a file the code by which clients choose their exception.
func fileError(name string, err error) error {
	text := dialect.Printable(name)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, paddock.NotFound):
		return coded(404, codeFileNotFound, paddock.NotFound, "file not found: %s", text)
	case errors.Is(err, paddock.Denied):
		return coded(403, codeFileDenied, paddock.Denied, "permission denied: %s: %v", text, err)
	case errors.Is(err, paddock.Invalid):
		return coded(400, codeFilePath, paddock.Invalid, "invalid path: %s: %v", text, err)
	case errors.Is(err, paddock.Exists), errors.Is(err, paddock.Conflict):
		return refuse(http.StatusConflict, paddock.Conflict, "%s: %v", text, err)
	}
	return err
}

// at opens the sandbox, and returns the path that a parameter of the query names.
func (c *call) at(parameter string, needed bool) (paddock.Sandbox, record, string, error) {
	sb, rec, err := c.opened(true)
	if err != nil {
		return nil, rec, "", err
	}
	name := c.URL.Query().Get(parameter)
	if needed && name == "" || len(name) > maxPath || strings.ContainsRune(name, 0) {
		return nil, rec, "", coded(400, codeFilePath, paddock.Invalid, "%s is a path of up to %d bytes", parameter, maxPath)
	}
	return sb, rec, rec.absolute(name), nil
}

// A toldFile describes a file.
type toldFile struct {
	Name        string `json:"name"`
	Path        string `json:"path"`
	Size        int64  `json:"size"`
	Mode        string `json:"mode"`
	ModTime     string `json:"modTime"`
	ModifiedAt  string `json:"modifiedAt"`
	IsDir       bool   `json:"isDir"`
	Permissions string `json:"permissions"`
	Owner       string `json:"owner"`
	Group       string `json:"group"`
}

func tellFile(st paddock.FileInfo) toldFile {
	owner := func(name string, n int) string {
		if name != "" {
			return name
		}
		return strconv.Itoa(n)
	}
	return toldFile{
		Name: path.Base(st.Name), Path: st.Name, Size: st.Size, Mode: st.Mode.String(), IsDir: st.Mode.IsDir(), Permissions: fmt.Sprintf("%04o", st.Mode.Perm()),
		ModTime: st.ModTime.UTC().String(), ModifiedAt: st.ModTime.UTC().Format(time.RFC3339Nano), Owner: owner(st.User, st.UID), Group: owner(st.Group, st.GID),
	}
}

func (c *call) listFiles() error {
	sb, _, name, err := c.at("path", false)
	if err != nil {
		return err
	}
	all := []toldFile{}
	for st, err := range sb.FS().List(c.ctx, name, 1) {
		if err != nil {
			return fileError(name, err)
		}
		if len(all) == maxEntries {
			return refuse(413, paddock.Exhausted, "%s has more than %d entries", dialect.Printable(name), maxEntries)
		}
		all = append(all, tellFile(st))
	}
	return c.json(http.StatusOK, all)
}

func (c *call) fileInfo() error {
	sb, _, name, err := c.at("path", true)
	if err != nil {
		return err
	}
	st, err := sb.FS().Stat(c.ctx, name)
	if err != nil {
		return fileError(name, err)
	}
	return c.json(http.StatusOK, tellFile(st))
}

func (c *call) removeFile() error {
	sb, _, name, err := c.at("path", true)
	if err != nil {
		return err
	}
	all := c.URL.Query().Get("recursive") == "true"
	st, err := sb.FS().Stat(c.ctx, name)
	if err != nil {
		return fileError(name, err)
	}
	if st.Mode.IsDir() && !all {
		return invalid("%s is a directory: recursive=true removes it with what is in it", dialect.Printable(name))
	}
	if err := sb.FS().Remove(c.ctx, name, all); err != nil {
		return fileError(name, err)
	}
	return c.nothing(http.StatusNoContent)
}

// mode reads permission bits in octal.
func mode(text string, usual fs.FileMode) (fs.FileMode, error) {
	if text == "" {
		return usual, nil
	}
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n > 0o7777 {
		return 0, invalid("mode: %q is not an octal number up to 7777", dialect.Printable(text))
	}
	return fs.FileMode(n & 0o777), nil
}

func (c *call) makeFolder() error {
	sb, _, name, err := c.at("path", true)
	if err != nil {
		return err
	}
	m, err := mode(c.URL.Query().Get("mode"), 0o755)
	if err != nil {
		return err
	}
	if err := sb.FS().Mkdir(c.ctx, name, paddock.MkdirOptions{Mode: m, Parents: true}); err != nil {
		return fileError(name, err)
	}
	return c.nothing(http.StatusCreated)
}

func (c *call) moveFile() error {
	sb, rec, from, err := c.at("source", true)
	if err != nil {
		return err
	}
	to := c.URL.Query().Get("destination")
	if to == "" || len(to) > maxPath {
		return coded(400, codeFilePath, paddock.Invalid, "destination is a path of up to %d bytes", maxPath)
	}
	if err := sb.FS().Rename(c.ctx, from, rec.absolute(to)); err != nil {
		return fileError(from, err)
	}
	return c.nothing(http.StatusOK)
}

func (c *call) setPermissions() error {
	sb, _, name, err := c.at("path", true)
	if err != nil {
		return err
	}
	q := c.URL.Query()
	if text := q.Get("mode"); text != "" {
		m, err := mode(text, 0)
		if err != nil {
			return err
		}
		if err := sb.FS().Chmod(c.ctx, name, m); err != nil {
			return fileError(name, err)
		}
	}
	if who := q.Get("owner") + ":" + q.Get("group"); who != ":" {
		out := &capture{place: c.place}
		exit, err := c.run(sb, paddock.Cmd{Args: []string{"chown", "--", strings.TrimSuffix(who, ":"), name}, Output: paddock.Output{Stdout: out, Stderr: out}}, "")
		if err != nil {
			return err
		}
		if exit.Code != 0 {
			return coded(403, codeFileDenied, paddock.Denied, "%s", strings.TrimSpace(out.String()))
		}
	}
	return c.nothing(http.StatusOK)
}

// walk calls f with each entry below a path.
func (c *call) walk(sb paddock.Sandbox, top string, f func(paddock.FileInfo) error) error {
	n := 0
	for st, err := range sb.FS().List(c.ctx, top, maxDepth) {
		if err != nil {
			return fileError(top, err)
		}
		if n++; n > maxEntries {
			return refuse(413, paddock.Exhausted, "below %s are more than %d files", dialect.Printable(top), maxEntries)
		}
		if err := f(st); err != nil {
			return err
		}
	}
	return nil
}

// searchFiles handles GET …/files/search: names by a pattern of a shell.
func (c *call) searchFiles() error {
	sb, _, top, err := c.at("path", false)
	if err != nil {
		return err
	}
	pattern := c.URL.Query().Get("pattern")
	if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
		return invalid("pattern: %q is not a pattern such as *.py", dialect.Printable(pattern))
	}
	found := []string{}
	err = c.walk(sb, top, func(st paddock.FileInfo) error {
		if ok, _ := path.Match(pattern, path.Base(st.Name)); ok {
			found = append(found, st.Name)
			return c.place.Hold(int64(len(st.Name)))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"files": found})
}

// text reads a file that is text; false if it is not, or too large.
func (c *call) text(sb paddock.Sandbox, name string) ([]byte, bool, error) {
	r, err := sb.FS().Open(c.ctx, name, paddock.OpenOptions{Length: maxText + 1})
	if err != nil {
		return nil, false, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxText+1))
	if err != nil || len(data) > maxText || bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 {
		return nil, false, err
	}
	return data, true, nil
}

// A match is a line that has a text.
type match struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Content string `json:"content"`
}

// findInFiles handles GET …/files/find: lines that have a text.
func (c *call) findInFiles() error {
	sb, _, top, err := c.at("path", false)
	if err != nil {
		return err
	}
	want := []byte(c.URL.Query().Get("pattern"))
	if len(want) == 0 {
		return invalid("pattern is required")
	}
	found := []match{}
	look := func(st paddock.FileInfo) error {
		if !st.Mode.IsRegular() || st.Size > maxText {
			return nil
		}
		data, ok, err := c.text(sb, st.Name)
		if !ok || errors.Is(err, paddock.Denied) || errors.Is(err, paddock.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		n := 0
		for line := range bytes.Lines(data) {
			if n++; !bytes.Contains(line, want) {
				continue
			}
			if len(found) == maxMatches {
				return refuse(413, paddock.Exhausted, "more than %d lines match", maxMatches)
			}
			line = bytes.TrimRight(line, "\r\n")
			found = append(found, match{st.Name, n, strings.ToValidUTF8(string(line[:min(len(line), maxLine)]), "\ufffd")})
			if err := c.place.Hold(int64(len(st.Name) + min(len(line), maxLine))); err != nil {
				return err
			}
		}
		return nil
	}
	st, err := sb.FS().Stat(c.ctx, top)
	switch {
	case err != nil:
		err = fileError(top, err)
	case st.Mode.IsRegular():
		err = look(st)
	default:
		err = c.walk(sb, top, look)
	}
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, found)
}

// replaceInFiles handles POST …/files/replace: a text by another, in each of the files.
func (c *call) replaceInFiles() error {
	var q struct {
		Files    []string `json:"files"`
		Pattern  string   `json:"pattern"`
		NewValue string   `json:"newValue"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	if q.Pattern == "" {
		return invalid("pattern is required")
	}
	sb, rec, err := c.opened(true)
	if err != nil {
		return err
	}
	type result struct {
		File    string `json:"file"`
		Success bool   `json:"success"`
		Error   string `json:"error,omitempty"`
	}
	all := []result{}
	for _, name := range q.Files {
		r := result{File: name, Success: true}
		if err := c.replace(sb, rec.absolute(name), q.Pattern, q.NewValue); err != nil {
			r.Success, r.Error = false, err.Error()
		}
		all = append(all, r)
	}
	return c.json(http.StatusOK, all)
}

func (c *call) replace(sb paddock.Sandbox, name, old, now string) error {
	data, ok, err := c.text(sb, name)
	if err != nil {
		return fileError(name, err)
	}
	if !ok {
		return fmt.Errorf("it is no text, or larger than %d bytes: %w", maxText, paddock.Invalid)
	}
	if n := bytes.Count(data, []byte(old)); len(data)+n*(len(now)-len(old)) > maxText {
		return fmt.Errorf("it would be larger than %d bytes: %w", maxText, paddock.Exhausted)
	}
	return c.write(sb, name, bytes.NewReader(bytes.ReplaceAll(data, []byte(old), []byte(now))))
}

// target follows the links of a name, as a program that opens it would, so that what is written beside the file that it
// leads to replaces that file.
func (c *call) target(sb paddock.Sandbox, name string) (string, fs.FileMode, error) {
	for range maxLinks {
		st, err := sb.FS().Stat(c.ctx, name)
		switch {
		case errors.Is(err, paddock.NotFound):
			return name, 0o644, nil
		case err != nil:
			return "", 0, err
		case st.Mode.IsDir():
			return "", 0, fmt.Errorf("it is a directory: %w", paddock.Invalid)
		case st.Mode.Type() != fs.ModeSymlink:
			return name, st.Mode.Perm(), nil
		case strings.HasPrefix(st.Link, "/"):
			name = st.Link
		default:
			name = path.Join(path.Dir(name), st.Link)
		}
	}
	return "", 0, fmt.Errorf("it has too many links: %w", paddock.Invalid)
}

// write writes a file: as a whole, or not at all. Missing directories are made.
func (c *call) write(sb paddock.Sandbox, name string, from io.Reader) error {
	name, m, err := c.target(sb, name)
	if err != nil {
		return fileError(name, err)
	}
	beside := path.Join(path.Dir(name), ".paddock-upload-"+string(newID()))
	w, err := sb.FS().Create(c.ctx, beside, paddock.CreateOptions{Mode: m, Exclusive: true, Parents: true})
	if err != nil {
		return fileError(name, err)
	}
	buf, done, err := c.h.o.Buffer(c.caller.Tenant)
	if err == nil {
		_, err = io.CopyBuffer(onlyWriter{w}, onlyReader{from}, buf)
		done()
	}
	if err = errors.Join(err, w.Close()); err == nil {
		err = sb.FS().Rename(c.ctx, beside, name)
	}
	if err != nil {
		_ = sb.FS().Remove(context.WithoutCancel(c.ctx), beside, true) // the first error counts
		return fileError(name, err)
	}
	return nil
}

// Wrappers, so that a copy takes the counted buffer.
type (
	onlyWriter struct{ io.Writer }
	onlyReader struct{ io.Reader }
)

func (c *call) workDir() error { return c.dir(func(r record) string { return r.Dir }) }
func (c *call) homeDir() error { return c.dir(func(r record) string { return r.Home }) }

func (c *call) dir(of func(record) string) error {
	_, rec, err := c.opened(false)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]string{"dir": of(rec)})
}

func (c *call) version() error {
	if _, _, err := c.opened(false); err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]string{"version": Version})
}

// metrics handles GET …/system/metrics.
func (c *call) metrics() error {
	sb, rec, err := c.opened(false)
	if err != nil {
		return err
	}
	st, err := sb.Status(c.ctx)
	if err != nil {
		return err
	}
	now := c.h.now()
	return c.json(http.StatusOK, map[string]any{
		"timestamp": now.Format(time.RFC3339), "timestampUnix": now.Unix(), "cpuCount": c.answerOf(rec, "").CPU,
		"memUsed": st.Usage.Memory, "memTotal": st.Limits.Memory, "diskTotal": st.Limits.Disk, // how much of the disk is used is not known
	})
}
