package ripgrep

import (
	"github.com/paddock-sandbox/paddock/internal/sim/command"
)

// stats are what --stats and --json tell. Times are not measured: they would
// be another with each run.
type stats struct {
	matches, lines, withMatch, searches, printed, searched int64
}

func (s *stats) add(x stats) {
	s.matches += x.matches
	s.lines += x.lines
	s.withMatch += x.withMatch
	s.searches += x.searches
	s.printed += x.printed
	s.searched += x.searched
}

func (s *stats) print(w *command.Writer) {
	w.Printf("\n%d matches\n%d matched lines\n%d files contained matches\n%d files searched\n%d bytes printed\n%d bytes searched\n0.000000 seconds spent searching\n0.000000 seconds\n",
		s.matches, s.lines, s.withMatch, s.searches, s.printed, s.searched)
}
