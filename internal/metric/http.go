package metric

import (
	"bufio"
	"net"
	"net/http"
	"strconv"
	"time"

	"context"

	"github.com/paddock-sandbox/paddock"
)

// other is the route of what no route takes, and the tier of what asks none.
const other = "other"

// Around counts the requests that h answers. route gives the pattern of a request,
// from a list that is the program's own; what it gives as empty is "other".
func (s *Set) Around(route func(*http.Request) string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pattern := route(r)
		if pattern == "" {
			pattern = other
		}
		n := &note{tier: make(chan paddock.Tier, 1)}
		c := &coded{ResponseWriter: w}
		open := s.open.WithLabelValues(pattern)
		open.Inc()
		began := time.Now()
		defer func() { // also where the handler gives the connection up
			open.Dec()
			s.took.WithLabelValues(pattern).Observe(time.Since(began).Seconds())
			s.requests.WithLabelValues(pattern, c.label(), n.label()).Inc()
		}()
		h.ServeHTTP(c, r.WithContext(context.WithValue(r.Context(), noteKey{}, n)))
	})
}

func (n *note) label() string {
	select {
	case tier := <-n.tier:
		return string(tier)
	default:
		return other
	}
}

// A coded writer remembers the code of the answer.
type coded struct {
	http.ResponseWriter
	code int
}

func (c *coded) WriteHeader(code int) {
	if c.code < 200 {
		c.code = code
	}
	c.ResponseWriter.WriteHeader(code)
}

func (c *coded) Write(p []byte) (int, error) {
	if c.code == 0 {
		c.code = http.StatusOK
	}
	return c.ResponseWriter.Write(p)
}

// Hijack notes that the connection is another protocol's now.
func (c *coded) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(c.ResponseWriter).Hijack()
	if err == nil {
		c.code = http.StatusSwitchingProtocols
	}
	return conn, rw, err
}

// Unwrap is for http.ResponseController.
func (c *coded) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// label is the code in three digits; one that no handler of ours gives is "other", and
// a connection that was cut without an answer "none".
func (c *coded) label() string {
	switch {
	case c.code == 0:
		return "none"
	case c.code < 100 || c.code > 599:
		return other
	}
	return strconv.Itoa(c.code)
}
