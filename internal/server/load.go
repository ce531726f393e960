package server

import "net/http"

// A Held is the number of bytes of one kind that the server holds for all clients, and its
// maximum. The floors of callers can exceed the maximum.
type Held struct {
	What      string // "output", "body", "input", "file", "answer", "ahead"
	Used, Max int64
}

// Held returns the state of every budget.
func (s *Server) Held() []Held {
	return []Held{
		s.output.held("output"), s.bodies.held("body"), s.inputHeld.held("input"), s.files.held("file"), s.answers.held("answer"),
		s.sentAhead.held("ahead"),
	}
}

func (b *budget) held(what string) Held {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Held{what, b.used, b.max}
}

// Route returns the pattern of the route of a request, or "" if it has none.
func (s *Server) Route(r *http.Request) string {
	_, pattern := s.mux.Handler(r)
	return pattern
}
