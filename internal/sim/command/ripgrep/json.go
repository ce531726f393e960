package ripgrep

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// A jsonText is text, or bytes where it is not UTF-8.
type jsonText struct {
	Text  *string `json:"text,omitempty"`
	Bytes *string `json:"bytes,omitempty"`
}

func textOf(b []byte) jsonText {
	if utf8.Valid(b) {
		s := string(b)
		return jsonText{Text: &s}
	}
	s := base64.StdEncoding.EncodeToString(b)
	return jsonText{Bytes: &s}
}

type jsonMatch struct {
	Match       jsonText  `json:"match"`
	Replacement *jsonText `json:"replacement,omitempty"`
	Start       int       `json:"start"`
	End         int       `json:"end"`
}

type jsonLines struct {
	Path       jsonText    `json:"path"`
	Lines      jsonText    `json:"lines"`
	LineNumber *int64      `json:"line_number"`
	Offset     int         `json:"absolute_offset"`
	Submatches []jsonMatch `json:"submatches"`
}

type jsonTime struct {
	Secs  int    `json:"secs"`
	Nanos int    `json:"nanos"`
	Human string `json:"human"`
}

type jsonStats struct {
	Elapsed   jsonTime `json:"elapsed"`
	Searches  int64    `json:"searches"`
	WithMatch int64    `json:"searches_with_match"`
	Searched  int64    `json:"bytes_searched"`
	Printed   int64    `json:"bytes_printed"`
	Lines     int64    `json:"matched_lines"`
	Matches   int64    `json:"matches"`
}

type jsonEnd struct {
	Path   jsonText  `json:"path"`
	Binary *int      `json:"binary_offset"`
	Stats  jsonStats `json:"stats"`
}

type jsonSummary struct {
	Elapsed jsonTime  `json:"elapsed_total"`
	Stats   jsonStats `json:"stats"`
}

// A jsonMessage is one line of the output.
type jsonMessage struct {
	Type string `json:"type"`
	Data any    `json:"data"`
}

func (s *stats) json() jsonStats {
	return jsonStats{Elapsed: jsonTime{Human: "0.000000s"}, Searches: s.searches, WithMatch: s.withMatch, Searched: s.searched, Printed: s.printed, Lines: s.lines, Matches: s.matches}
}

func (f *finder) message(kind string, data any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(jsonMessage{kind, data}); err != nil {
		f.broken(err)
		return
	}
	f.own.printed += int64(b.Len())
	f.out.Bytes(b.Bytes())
}

func (f *finder) jsonBlock(from, to int) {
	if f.pending > 0 {
		f.jsonContext(f.last, from)
	}
	if !f.begun {
		f.begun = true
		f.message("begin", struct {
			Path jsonText `json:"path"`
		}{textOf([]byte(f.name))})
	}
	at := from
	for range f.o.before {
		if at <= f.last {
			break
		}
		at = bytes.LastIndexByte(f.text[f.last:at-1], f.eol) + 1 + f.last
	}
	f.pending = f.o.before
	f.jsonContext(at, from)
	list := []jsonMatch{}
	paid := 0
	if !f.o.invert {
		f.each(from, to, func(start, end int) bool {
			m := jsonMatch{Match: textOf(f.text[start:end]), Start: start - from, End: end - from}
			if f.o.replace != nil {
				with := f.expand(nil, start, end)
				f.charge(&paid, quoted(with))
				text := textOf(with)
				f.t.Shrink(kernel.Cost(with))
				m.Replacement = &text
			}
			f.charge(&paid, 64+quoted(f.text[start:end]))
			list = append(list, m)
			return true
		})
	}
	f.jsonLines("match", from, to, list)
	f.t.Shrink(paid)
	f.last, f.pending = to, f.o.after
}

// jsonContext tells of lines of context, as many as are due.
func (f *finder) jsonContext(from, to int) {
	for at := from; f.pending > 0 && at < to; f.pending-- {
		end := f.lineEnd(at)
		f.jsonLines("context", at, end, []jsonMatch{})
		at = end
		f.last = end
	}
}

// charge counts what becomes n bytes of a message: what it is made of, and the copies that the encoder has of it.
func (f *finder) charge(paid *int, n int) {
	f.t.Grow(4*n + 64)
	*paid += 4*n + 64
}

// quoted is how long a text becomes in JSON.
func quoted(text []byte) int {
	n := len(text)
	for _, c := range text {
		if c < ' ' || c == '"' || c == '\\' {
			n += 5
		}
	}
	return n
}

func (f *finder) jsonLines(kind string, from, to int, list []jsonMatch) {
	paid := 0
	f.charge(&paid, quoted(f.text[from:to]))
	defer func() { f.t.Shrink(paid) }()
	l := jsonLines{Path: textOf([]byte(f.name)), Lines: textOf(f.text[from:to]), Offset: from, Submatches: list}
	if f.o.numbered >= 0 {
		f.line += int64(bytes.Count(f.text[f.lined:from], []byte{f.eol}))
		f.lined = from
		n := f.line + 1
		l.LineNumber = &n
	}
	f.message(kind, l)
}

func (f *finder) jsonEnd() {
	if !f.begun {
		return
	}
	if f.pending > 0 {
		f.jsonContext(f.last, len(f.text))
	}
	e := jsonEnd{Path: textOf([]byte(f.name))}
	if f.nul >= 0 {
		e.Binary = &f.nul
	}
	e.Stats = f.own.json()
	f.message("end", e)
}

func (f *finder) summary() {
	f.message("summary", jsonSummary{Elapsed: jsonTime{Human: "0.000000s"}, Stats: f.total.json()})
}
