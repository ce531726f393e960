package server

import "net/http"

// A Held is how many bytes of all clients the server holds, and may hold.
type Held struct {
	What      string // "output", "body", "input", "file"
	Used, Max int64
}

// Held tells of every budget.
func (s *Server) Held() []Held {
	return []Held{s.output.held("output"), s.bodies.held("body"), s.inputHeld.held("input"), s.files.held("file")}
}

func (b *budget) held(what string) Held {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Held{what, b.used, b.max}
}

// Route gives the pattern of the route that a request takes, empty if none does.
func (s *Server) Route(r *http.Request) string {
	_, pattern := s.mux.Handler(r)
	return pattern
}
