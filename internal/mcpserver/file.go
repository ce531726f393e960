package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of files.
const (
	usualLines  = 1000
	mostText    = 32 << 10 // bytes of a file's text in one answer
	mostSkipped = 64 << 20 // bytes that are read to find a line
	mostEdited  = 4 << 20
	mostEntries = 300
	sniffed     = 512
)

type readIn struct {
	Sandbox string `json:"sandbox"`
	Path    string `json:"path"`
	Offset  int64  `json:"offset"`
	Limit   int64  `json:"limit"`
}

type readOut struct {
	Path string `json:"path"`
	Kind string `json:"kind"` // text, binary, image or directory
	Text string `json:"text"`
	Size int64  `json:"size"`
	Next int64  `json:"next,omitempty"` // line to go on at
}

func read(ctx context.Context, c *call, in readIn) (readOut, error) {
	if in.Offset < 0 || in.Limit < 0 {
		return readOut{}, fmt.Errorf("offset %d, limit %d: neither is negative: %w", in.Offset, in.Limit, paddock.Invalid)
	}
	b, err := c.open(ctx, in.Sandbox)
	if err != nil {
		return readOut{}, err
	}
	if text, ok := strings.CutPrefix(in.Path, "output:"); ok && c.s.o.Single {
		return c.readOutput(ctx, b, text, in)
	}
	name, err := b.inside(in.Path)
	if err != nil {
		return readOut{}, err
	}
	info, err := b.FS().Stat(ctx, name)
	if err != nil {
		return readOut{}, noFile(name, err)
	}
	if info.Mode.IsDir() {
		return c.listDir(ctx, b, name)
	}
	file, err := b.FS().Open(ctx, name, paddock.OpenOptions{})
	if err != nil {
		return readOut{}, noFile(name, err)
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, 64<<10)
	head, err := r.Peek(8 << 10)
	if err != nil && !errors.Is(err, io.EOF) {
		return readOut{}, err
	}
	out := readOut{Path: oneLine(name), Kind: "text", Size: info.Size}
	if kind := http.DetectContentType(head[:min(len(head), sniffed)]); slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, kind) {
		return c.image(r, out, kind)
	}
	if binary(head) {
		out.Kind = "binary"
		c.text = fmt.Sprintf("%s is no text (%d bytes); sandbox_run can look into it, as with `file` or `xxd`.", out.Path, out.Size)
		return out, nil
	}
	return out, c.lines(r, &out, in)
}

func noFile(name string, err error) error {
	if errors.Is(err, paddock.NotFound) {
		return fmt.Errorf("there is no file %s: %w", oneLine(name), paddock.NotFound)
	}
	return err
}

// readOutput reads output of a process as if it was a file, for clients without sandbox_process.
func (c *call) readOutput(ctx context.Context, b *box, number string, in readIn) (readOut, error) {
	pid, err := strconv.Atoi(number)
	if err != nil || pid <= 0 {
		return readOut{}, fmt.Errorf("output:%s: write output:NUMBER: %w", clip(number, 40), paddock.Invalid)
	}
	p, err := c.output(ctx, b, paddock.PID(pid), processIn{Offset: &in.Offset, Limit: min(in.Limit, mostPiece)})
	if err != nil {
		return readOut{}, err
	}
	out := readOut{Path: in.Path, Kind: "text", Text: p.Output, Size: p.Total}
	if p.Next < p.Total {
		out.Next = p.Next
	}
	return out, nil
}

// image sends an image as one.
func (c *call) image(r io.Reader, out readOut, kind string) (readOut, error) {
	out.Kind = "image"
	data, err := io.ReadAll(io.LimitReader(r, longImage+1))
	if err != nil {
		return out, err
	}
	if len(data) > longImage {
		c.text = fmt.Sprintf("%s is an image of %d bytes, of which at most %d are sent; sandbox_run can make it smaller.", out.Path, out.Size, longImage)
		return out, nil
	}
	c.text = fmt.Sprintf("%s (%s, %d bytes)", out.Path, kind, len(data))
	c.content = []mcp.Content{&mcp.ImageContent{Data: data, MIMEType: kind}}
	return out, nil
}

// lines reads some lines, and says where to go on.
func (c *call) lines(r *bufio.Reader, out *readOut, in readIn) error {
	first, most := max(in.Offset, 1), in.Limit
	if most == 0 {
		most = usualLines
	}
	var text bytes.Buffer
	number, passed := int64(1), int64(0)
	cutLine := false
	for ; number < first+most; number++ {
		line, whole, err := takeLine(r, mostText-text.Len(), number < first)
		passed += int64(len(line))
		if len(line) == 0 && errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if number < first {
			if passed > mostSkipped {
				return fmt.Errorf("line %d is behind the first %d bytes; sandbox_run can cut it out, as with sed -n: %w", first, mostSkipped, paddock.Invalid)
			}
			continue
		}
		if !whole && text.Len() > 0 { // it is for the next call
			break
		}
		text.Write(line)
		if !whole {
			cutLine = true
			number++
			break
		}
	}
	out.Text = plain(text.Bytes())
	_, err := r.Peek(1)
	if end := errors.Is(err, io.EOF) && !cutLine && text.Len() > 0; !end && text.Len() > 0 {
		out.Next = number
	}
	c.text = out.Text
	var note string
	switch {
	case text.Len() == 0 && first > 1:
		note = fmt.Sprintf("[there is no line %d]", first)
	case text.Len() == 0:
		note = "[the file is empty]"
	case cutLine:
		note = fmt.Sprintf("\n[line %d is longer than %d bytes, and cut here; go on at offset %d]", number-1, mostText, out.Next)
	case out.Next > 0:
		note = fmt.Sprintf("[lines %d to %d; go on at offset %d]", first, out.Next-1, out.Next)
	}
	c.text += note
	return nil
}

// takeLine reads a line with its end. If it is longer than most bytes, it gives the beginning, and whole is false; a line
// that is only passed is read to its end, and its length is told by at most one piece.
func takeLine(r *bufio.Reader, most int, pass bool) (line []byte, whole bool, err error) {
	for {
		piece, err := r.ReadSlice('\n')
		if pass {
			line = append(line[:0], piece...)
		} else {
			line = append(line, piece...)
		}
		switch {
		case !pass && len(line) > most:
			return line[:max(most, 0)], false, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		}
		return line, true, err
	}
}

// listDir lists a directory.
func (c *call) listDir(ctx context.Context, b *box, name string) (readOut, error) {
	out := readOut{Path: oneLine(name), Kind: "directory"}
	var names []string
	more := false
	for info, err := range b.FS().List(ctx, name, 1) {
		if err != nil {
			return readOut{}, noFile(name, err)
		}
		if len(names) == mostEntries {
			more = true
			break
		}
		entry := oneLine(path.Base(info.Name))
		switch {
		case info.Mode.IsDir():
			entry += "/"
		case info.Link != "":
			entry += " -> " + clip(oneLine(info.Link), 200)
		default:
			entry += fmt.Sprintf(" (%d bytes)", info.Size)
		}
		names = append(names, entry)
	}
	slices.Sort(names)
	out.Text = strings.Join(names, "\n")
	if more {
		out.Text += fmt.Sprintf("\n[there are more than %d; sandbox_run can list them]", mostEntries)
	}
	c.text = out.Text
	if c.text == "" {
		c.text = "[the directory is empty]"
	}
	return out, nil
}

type writeIn struct {
	Sandbox string  `json:"sandbox"`
	Path    string  `json:"path"`
	Content string  `json:"content"`
	Old     *string `json:"old"`
	All     bool    `json:"all"`
	Append  bool    `json:"append"`
}

type writeOut struct {
	Path     string `json:"path"`
	Bytes    int    `json:"bytes"`
	Replaced int    `json:"replaced,omitempty"`
}

func write(ctx context.Context, c *call, in writeIn) (writeOut, error) {
	b, err := c.open(ctx, in.Sandbox)
	if err != nil {
		return writeOut{}, err
	}
	name, err := b.inside(in.Path)
	if err != nil {
		return writeOut{}, err
	}
	out := writeOut{Path: oneLine(name)}
	content := in.Content
	if in.Old != nil {
		if in.Append {
			return out, fmt.Errorf("old and append exclude each other: %w", paddock.Invalid)
		}
		if content, out.Replaced, err = b.edited(ctx, name, *in.Old, in.Content, in.All); err != nil {
			return out, err
		}
	}
	out.Bytes = len(content)
	w, err := b.FS().Create(ctx, name, paddock.CreateOptions{Append: in.Append, Parents: true})
	if err != nil {
		return out, err
	}
	if _, err := io.WriteString(w, content); err != nil {
		return out, errors.Join(err, w.Close())
	}
	if err := w.Close(); err != nil {
		return out, err
	}
	switch {
	case in.Old != nil:
		c.text = fmt.Sprintf("%s is edited: %d replaced.", out.Path, out.Replaced)
	case in.Append:
		c.text = fmt.Sprintf("%d bytes are added to %s.", out.Bytes, out.Path)
	default:
		c.text = fmt.Sprintf("%s has %d bytes.", out.Path, out.Bytes)
	}
	return out, nil
}

// edited gives a file with a text replaced, which it must have once, or with all at least once.
func (b *box) edited(ctx context.Context, name, from, to string, all bool) (string, int, error) {
	if from == "" {
		return "", 0, fmt.Errorf("old is empty: leave it out to write the whole file: %w", paddock.Invalid)
	}
	file, err := b.FS().Open(ctx, name, paddock.OpenOptions{})
	if err != nil {
		return "", 0, noFile(name, err)
	}
	data, err := io.ReadAll(io.LimitReader(file, mostEdited+1))
	if err := errors.Join(err, file.Close()); err != nil {
		return "", 0, err
	}
	if len(data) > mostEdited {
		return "", 0, fmt.Errorf("%s is longer than %d bytes; edit it by sandbox_run: %w", oneLine(name), mostEdited, paddock.Invalid)
	}
	switch n := strings.Count(string(data), from); {
	case n == 0:
		return "", 0, fmt.Errorf("%s does not have the text of old; read it again, white space counts: %w", oneLine(name), paddock.Conflict)
	case n > 1 && !all:
		return "", 0, fmt.Errorf("%s has the text of old %d times; give more around it, or all: true: %w", oneLine(name), n, paddock.Conflict)
	default:
		return strings.ReplaceAll(string(data), from, to), n, nil
	}
}
