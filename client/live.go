package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/paddock-sandbox/paddock"
)

// post starts a request with a body in JSON and a streaming answer.
func (d *Driver) post(ctx context.Context, path string, body any) (*http.Response, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode as JSON: %w: %w", err, paddock.Invalid)
	}
	req, err := d.request(ctx, "POST", path, nil)
	if err != nil {
		return nil, err
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", streams)
	return d.do(req)
}

// decode decodes the payload of a frame.
func decode(payload []byte, v any) error {
	if err := json.Unmarshal(payload, v); err != nil {
		return fmt.Errorf("decode a frame from the server: %w: %w", err, paddock.Internal)
	}
	return nil
}

// add registers a followed process, so that Close detaches it.
func (d *Driver) add(p *process) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.live == nil {
		d.live = map[*process]struct{}{}
	}
	d.live[p] = struct{}{}
}

func (d *Driver) remove(p *process) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.live, p)
}

// leave detaches all processes. They continue without this client.
func (d *Driver) leave() {
	d.mu.Lock()
	list := make([]*process, 0, len(d.live))
	for p := range d.live {
		list = append(list, p)
	}
	d.mu.Unlock()
	for _, p := range list {
		p.forget()
	}
}

// run starts a goroutine that Close waits for. It reports false if the driver is closed.
func (d *Driver) run(f func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.wg.Go(f)
	return true
}
