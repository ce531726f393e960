package mcpserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
)

// shellLanguage is the language of commands.
const shellLanguage = "shell"

// languages are those of cells.
func languages() []string { return []string{"python", "javascript", "typescript", "r", "java"} }

// Bounds of the images of one result.
const (
	mostImages = 8
	longImage  = 2 << 20
)

// cell runs code in the context of its language, which keeps its state from call to call.
func (c *call) cell(ctx context.Context, b *box, in runIn, timeout time.Duration) (runOut, error) {
	if !slices.Contains(languages(), in.Language) {
		return runOut{}, fmt.Errorf("language %q: it is %s or %s: %w", clip(in.Language, 80), shellLanguage, strings.Join(languages(), ", "), paddock.Invalid)
	}
	step := b.lastStep(ctx)
	t := &transcript{out: &ends{first: firstOutput, last: lastOutput}, errs: &ends{first: firstOutput / 2, last: lastOutput / 2}}
	stop := c.progress(ctx, t.out, t.errs)
	err := c.driver.Interpret(ctx, b.ID(), client.Cell{Code: in.Command, Language: in.Language, Timeout: timeout}, t.event)
	stop()
	switch {
	case ctx.Err() != nil:
		return runOut{}, fmt.Errorf("run: %w", paddock.Canceled)
	case errors.Is(err, paddock.Timeout):
		t.failed = fmt.Sprintf("it ran for %s and was interrupted", timeout)
	case err != nil:
		return runOut{}, err
	}
	r := runOut{Cause: string(paddock.Exited)}
	if t.failed != "" {
		r.Cause, r.Reason = "error", t.failed
	}
	var cut [2]int64
	r.Stdout, cut[0] = t.out.text()
	r.Stderr, cut[1] = t.errs.text()
	r.Cut = cut[0] + cut[1]
	if err := c.aftermath(ctx, b, step, &r); err != nil {
		return runOut{}, err
	}
	var text strings.Builder
	text.WriteString(r.Stdout)
	endLine(&text)
	if r.Stderr != "" {
		text.WriteString("[stderr]\n" + r.Stderr)
		endLine(&text)
	}
	if r.Reason != "" {
		fmt.Fprintf(&text, "[%s: %s]\n", r.Cause, r.Reason)
	}
	if r.Cut > 0 {
		text.WriteString("[to see the rest, print less at once, or write it to a file and file_read that]\n")
	}
	if t.left > 0 {
		fmt.Fprintf(&text, "[%d images are left out: at most %d of %d bytes are sent]\n", t.left, mostImages, longImage)
	}
	tellLists(&text, &r)
	if text.Len() == 0 && len(t.images) == 0 {
		text.WriteString("[no output]")
	}
	c.text, c.content = text.String(), t.images
	return r, nil
}

// A transcript is what a cell told.
type transcript struct {
	out, errs *ends
	images    []mcp.Content
	left      int // images that are not sent
	failed    string
}

func (t *transcript) event(e client.CellEvent) error {
	switch e.Type {
	case "stdout":
		_, _ = t.out.Write([]byte(e.Text)) // which keeps what fits
	case "stderr":
		_, _ = t.errs.Write([]byte(e.Text))
	case "result":
		if e.Result != nil {
			t.result(*e.Result)
		}
	case "error":
		if e.Error != nil {
			t.failed = oneLine(strings.TrimPrefix(e.Error.Name+": "+e.Error.Value, ": "))
			_, _ = t.errs.Write([]byte(e.Error.Traceback))
		}
	}
	return nil
}

// result takes the image of a value, or else its text.
func (t *transcript) result(r client.CellResult) {
	for _, kind := range []string{"image/png", "image/jpeg"} {
		var text string
		if json.Unmarshal(r.Data[kind], &text) != nil || text == "" {
			continue
		}
		data, err := base64.StdEncoding.DecodeString(strings.Map(func(c rune) rune {
			if c == '\n' || c == '\r' {
				return -1
			}
			return c
		}, text))
		if err != nil {
			continue
		}
		if len(data) > longImage || len(t.images) == mostImages {
			t.left++
			return
		}
		t.images = append(t.images, &mcp.ImageContent{Data: data, MIMEType: kind})
		return
	}
	for _, kind := range []string{"text/markdown", "text/plain", "text/html", "application/json", "image/svg+xml"} {
		raw, ok := r.Data[kind]
		if !ok {
			continue
		}
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		_, _ = t.out.Write([]byte(text + "\n"))
		return
	}
}
