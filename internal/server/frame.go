package server

import (
	"net/http"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// frames writes a stream of frames.
type frames struct {
	q   *request
	buf []byte
}

func (q *request) frames() *frames {
	q.w.Header().Set("Content-Type", api.FrameType)
	q.w.WriteHeader(http.StatusOK)
	return &frames{q: q}
}

func (f *frames) send() error {
	f.q.deadline(stall)
	if _, err := f.q.w.Write(f.buf); err != nil {
		return err
	}
	return f.q.flush()
}

func (f *frames) frame(k api.Kind, payload []byte) error {
	f.buf = api.AppendFrame(f.buf[:0], k, payload)
	return f.send()
}

func (f *frames) json(k api.Kind, v any) (err error) {
	if f.buf, err = api.AppendJSON(f.buf[:0], k, v); err != nil {
		return err
	}
	return f.send()
}

// output sends output, with a deadline for each write.
func (f *frames) output(list []output) error {
	f.buf = f.buf[:0]
	for i, o := range list {
		k := api.Stdout
		if o.stderr {
			k = api.Stderr
		}
		f.buf = api.AppendFrame(f.buf, k, o.data)
		if len(f.buf) >= 2*piece || i == len(list)-1 {
			if err := f.send(); err != nil {
				return err
			}
			f.buf = f.buf[:0]
		}
	}
	return nil
}

func (f *frames) begin(b api.Begun) error { return f.json(api.Begin, b) }

func (f *frames) alive() error { return f.frame(api.Alive, nil) }

// end sends the last frame: the exit, or the error that hides it.
func (f *frames) end(exit paddock.Exit, err error) error {
	if err != nil {
		return f.json(api.Fail, api.FromError(err))
	}
	return f.json(api.End, exit)
}
