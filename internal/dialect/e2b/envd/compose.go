package envd

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/jsonbody"
)

// Bounds of a request to concatenate files.
const (
	maxCompose = 4 << 20 // bytes
	maxSources = 10_000

	// maxComposeCost bounds the memory of the decoded request beside its text. That of the
	// most names is half of it.
	maxComposeCost = 1 << 20
)

type composition struct {
	Sources     []string `json:"source_paths"`
	Destination string   `json:"destination"`
	Username    string   `json:"username"`
}

// compose handles POST /files/compose. It concatenates several files into one and removes
// them. The destination keeps its old content until the new file is complete.
func (b *Box) compose(w http.ResponseWriter, r *http.Request) {
	one, err := b.composed(w, r)
	if err != nil {
		b.failed(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, one)
}

// size returns the memory that a composition takes beside its copy buffer, in bytes, about.
func (c *composition) size() int64 {
	n := len(c.Destination) + len(c.Username)
	for _, name := range c.Sources {
		n += len(name) + 16 // the header of a string
	}
	return int64(n)
}

// readComposition reads and checks the body. It counts what it holds of it, see counted.
func readComposition(w http.ResponseWriter, r *http.Request) (composition, error) {
	var c composition
	body, ok := heldOf(r.Context())
	if !ok {
		return c, errors.New("the body is not counted")
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCompose))
	switch {
	case errors.Is(err, errHeld):
		return c, full()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return c, refuse(http.StatusRequestTimeout, connect.CodeDeadlineExceeded, "the rest of the body did not arrive in time")
	case err != nil:
		return c, invalid(fmt.Sprintf("invalid request body: %v", err))
	}
	cost := jsonbody.Cost(data)
	if cost > maxComposeCost {
		return c, invalid(fmt.Sprintf("invalid request body: it has more values than a list of %d names", maxSources))
	}
	if err := body.decoded(int64(len(data)) + cost); err != nil {
		return c, full()
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, invalid(fmt.Sprintf("invalid request body: %v", jsonbody.Explain(err)))
	}
	switch {
	case len(c.Sources) == 0:
		return c, invalid("source_paths must not be empty")
	case len(c.Sources) > maxSources:
		return c, invalid(fmt.Sprintf("source_paths has more than %d names", maxSources))
	case c.Destination == "":
		return c, invalid("destination is required")
	}
	if err := body.decoded(c.size() + chunk); err != nil {
		return c, full()
	}
	return c, nil
}

// full returns errHeld as the answer of a request that is no call.
func full() error {
	return refuse(http.StatusTooManyRequests, connect.CodeResourceExhausted, errHeld.Error())
}

func (b *Box) composed(w http.ResponseWriter, r *http.Request) (written, error) {
	c, err := readComposition(w, r)
	if err != nil {
		return written{}, err
	}
	r, err = b.ofUser(r, c.Username)
	if err != nil {
		return written{}, err
	}
	ctx := r.Context()
	to, err := b.resolve(ctx, c.Destination)
	if err != nil {
		return written{}, err
	}
	sources, err := b.sources(ctx, c.Sources, to)
	if err != nil {
		return written{}, err
	}
	if err := b.join(ctx, sources, to); err != nil {
		return written{}, err
	}
	b.metadata.remove(b.target(ctx, to))
	for _, name := range sources {
		if err := b.files(ctx).Remove(ctx, name, false); err != nil { // ignored, as by E2B's agent
			b.o.Log.WarnContext(ctx, "a file that became part of another stays", "sandbox", b.o.SandboxID, "error", err)
		}
	}
	return written{Path: clean(to), Name: clean(path.Base(to)), Type: "file"}, nil
}

// sources checks the files to concatenate. None of them may be the destination under
// another name, because the sources are removed at the end.
func (b *Box) sources(ctx context.Context, names []string, to string) ([]string, error) {
	list := make([]string, 0, len(names))
	end := b.key(ctx, to)
	for _, text := range names {
		name, err := b.resolve(ctx, text)
		if err != nil {
			return nil, err
		}
		info, err := b.behind(ctx, name)
		switch {
		case name == to:
			return nil, invalid(fmt.Sprintf("source path %q cannot be the same as destination", text))
		case err != nil && paddock.KindOf(err) == paddock.NotFound:
			b.alive(ctx, err)
			return nil, missing(fmt.Sprintf("source file not found: %s", clean(text)))
		case err != nil:
			return nil, err
		case !info.Mode.IsRegular():
			return nil, invalid(fmt.Sprintf("source path is not a regular file: %s", clean(text)))
		case b.key(ctx, name) == end, b.target(ctx, name) == end:
			return nil, invalid(fmt.Sprintf("source path %q cannot be the same as destination", text))
		}
		list = append(list, name)
	}
	return list, nil
}

// join concatenates files into a temporary file and renames it.
func (b *Box) join(ctx context.Context, sources []string, to string) error {
	files := b.files(ctx)
	temporary := to + ".compose." + rand.Text()
	w, err := files.Create(ctx, temporary, paddock.CreateOptions{Parents: true, Exclusive: true})
	if err != nil {
		return err
	}
	buf := make([]byte, chunk)
	for _, name := range sources {
		if err == nil {
			err = b.copyTo(ctx, w, name, buf)
		}
	}
	if closed := w.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = files.Rename(ctx, temporary, to)
	}
	if err != nil {
		_ = files.Remove(context.WithoutCancel(ctx), temporary, true) // return the first error
	}
	return err
}

func (b *Box) copyTo(ctx context.Context, w io.Writer, name string, buf []byte) error {
	r, err := b.files(ctx).Open(ctx, name, paddock.OpenOptions{})
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, buf)
	return err
}
