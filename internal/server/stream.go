package server

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// streamType chooses the content type of a stream by the request's Accept header. own is
// the type for a request without the header. A request that accepts everything, or no type
// that there is, gets text events: curl, browsers and generated clients can read those.
func (q *request) streamType(own string) string {
	headers := q.Header.Values("Accept")
	if len(headers) == 0 {
		return own
	}
	best, weight := api.EventType, 0.0
	for _, part := range strings.Split(strings.Join(headers, ","), ",") {
		kind, parameters, err := mime.ParseMediaType(part)
		if err != nil || (kind != own && kind != api.LineType && kind != api.EventType) {
			continue
		}
		w := 1.0
		if text, ok := parameters["q"]; ok {
			if w, err = strconv.ParseFloat(text, 64); err != nil {
				continue
			}
		}
		if w > weight {
			best, weight = kind, w
		}
	}
	return best
}

// lines writes a stream of JSON values: a line for each, or a text event.
type lines struct {
	q       *request
	events  bool
	counted bool // the values count elsewhere
}

func (q *request) lines() lines { return q.linesAs(q.streamType(api.LineType)) }

func (q *request) linesAs(kind string) lines {
	q.w.Header().Set("Content-Type", kind)
	q.w.WriteHeader(http.StatusOK)
	return lines{q: q, events: kind == api.EventType}
}

// put writes a value without flushing it.
func (l lines) put(v any) error { return l.putAt("", v) }

// putAt writes a value that has an id as a text event.
func (l lines) putAt(id string, v any) error {
	data, err := api.Encode(v)
	if err != nil {
		return err
	}
	if l.events {
		head := "data: "
		if id != "" {
			head = "id: " + id + "\ndata: "
		}
		data = append([]byte(head), append(data, '\n')...)
	}
	if len(data) > small && !l.counted {
		if err := l.q.out.hold(int64(len(data))); err != nil {
			return err
		}
		defer l.q.out.done()
	}
	l.q.deadline(stall)
	_, err = l.q.w.Write(append(data, '\n'))
	return err
}

// send writes a value and flushes it.
func (l lines) send(v any) error {
	if err := l.put(v); err != nil {
		return err
	}
	return l.q.flush()
}

// end writes the last line: the stream is complete, or the error.
func (l lines) end(err error) error {
	if err == nil {
		return l.send(api.Line{End: true})
	}
	e := api.FromError(err)
	e.Request = l.q.id
	return l.send(api.Line{Error: &e})
}

// An outputWriter writes what a process prints, up to its end.
type outputWriter interface {
	begin(b api.Begun) error
	output(list []output) error
	alive() error
	end(exit paddock.Exit, err error) error
}

// outputWriter begins the answer, in the form that the client accepts.
func (q *request) outputWriter() outputWriter {
	if kind := q.streamType(api.FrameType); kind != api.FrameType {
		out := q.linesAs(kind)
		out.counted = true // as output
		return &texts{lines: out}
	}
	return q.frames()
}

// texts writes output as JSON. A character whose bytes come in two pieces is written with
// the second one, because a string of JSON cannot hold a part of it.
type texts struct {
	lines

	next   int64  // offset of the first byte that is not written
	rest   []byte // beginning of a character
	stderr bool   // rest is of standard error
}

func (t *texts) begin(b api.Begun) error {
	t.next = b.Offset
	return t.send(api.Output{Begin: &b})
}

func (t *texts) output(list []output) error {
	for _, o := range list {
		if o.stderr != t.stderr {
			if err := t.flushRest(); err != nil {
				return err
			}
		}
		t.stderr = o.stderr
		data := slices.Concat(t.rest, o.data)
		n := len(data) - partial(data)
		t.rest = append([]byte(nil), data[n:]...)
		if err := t.text(data[:n]); err != nil {
			return err
		}
	}
	return t.q.flush()
}

// textPart bounds the output in one line. In JSON a byte may take six, and a line stays in memory until
// its client has read it.
const textPart = 4 << 10

// text writes output of the current kind.
func (t *texts) text(data []byte) error {
	for len(data) > 0 {
		part := data[:min(len(data), textPart)]
		if len(part) < len(data) {
			part = part[:len(part)-partial(part)]
		}
		data = data[len(part):]
		t.next += int64(len(part))
		text, o := api.Bytes(part), api.Output{Next: t.next}
		if t.stderr {
			o.Stderr = &text
		} else {
			o.Stdout = &text
		}
		if err := t.putAt(strconv.FormatInt(t.next, 10), o); err != nil {
			return err
		}
	}
	return nil
}

// flushRest writes the beginning of a character that will not be completed.
func (t *texts) flushRest() error {
	rest := t.rest
	t.rest = nil
	return t.text(rest)
}

// partial returns the number of bytes at the end of data that begin a character and do not
// complete it.
func partial(data []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		if end := data[len(data)-n:]; utf8.RuneStart(end[0]) {
			if utf8.FullRune(end) {
				return 0
			}
			return n
		}
	}
	return 0
}

func (t *texts) alive() error {
	if err := t.flushRest(); err != nil {
		return err
	}
	return t.send(api.Output{Alive: true})
}

func (t *texts) end(exit paddock.Exit, err error) error {
	if err := t.flushRest(); err != nil {
		return err
	}
	if err != nil {
		e := api.FromError(err)
		e.Request = t.q.id
		return t.send(api.Output{Error: &e})
	}
	return t.send(api.Output{Exit: &exit})
}
