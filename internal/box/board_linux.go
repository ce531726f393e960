package box

import (
	"errors"
	"os"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// A board is a word in memory that a keeper shares with whoever uses its sandbox:
// whether that goes. To ask the keeper before each command and file takes two
// switches of processes and a packet; this takes a look. What it shows is what the
// keeper would have answered, no more: where it does not show that the sandbox goes,
// the keeper is asked. A keeper that was killed leaves its board as it was, and takes
// its sandbox along, whose agent then does not answer.
type statusBoard struct{ words *kernel.Counters }

const (
	boardWord = 0 // of the words
	boardGoes = 1 // else the keeper is to be asked
)

// newBoard makes the keeper's, and the file by which others read it.
func newBoard() (statusBoard, *os.File, error) {
	reader, f, err := kernel.NewCounters("board")
	if err != nil {
		return statusBoard{}, nil, err
	}
	writer, err := kernel.OpenCounters(int(f.Fd()))
	if err := errors.Join(err, reader.Close()); err != nil {
		return statusBoard{}, nil, errors.Join(err, f.Close())
	}
	return statusBoard{writer}, f, nil
}

// readBoard gives that of a keeper, which sent the file.
func readBoard(f *os.File) (*statusBoard, error) {
	words, err := kernel.ReadCounters(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	return &statusBoard{words}, nil
}

// close lets go of what readBoard gave.
func (b *statusBoard) close() {
	if b != nil {
		_ = b.words.Close() // it is of no use any more
	}
}

// show is the keeper's.
func (b statusBoard) show(st Standing, err error) {
	word := uint64(0)
	if err == nil && st.State == paddock.Ready {
		word = boardGoes
	}
	b.words.Set(boardWord, word)
}

// goes tells whether the keeper shows that its sandbox does; without a board nobody
// does.
func (b *statusBoard) goes() bool { return b != nil && b.words.Load(boardWord) == boardGoes }
