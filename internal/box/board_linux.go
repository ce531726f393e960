package box

import (
	"errors"
	"os"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A statusBoard is a word in memory by which a keeper tells users of its sandbox whether
// the sandbox runs. Asking the keeper before each command and file would take two process
// switches and a packet; reading the board takes neither. The board shows only what the
// keeper would have answered. If it does not show that the sandbox runs, the caller must
// ask the keeper. A keeper that was killed leaves its board unchanged, but its sandbox dies
// with it, and then the agent does not answer.
type statusBoard struct{ words *sys.Counters }

const (
	boardWord = 0 // index of the word
	boardGoes = 1 // the sandbox runs; for other values ask the keeper
)

// newBoard makes a keeper's board, and the file by which others read it.
func newBoard() (statusBoard, *os.File, error) {
	reader, f, err := sys.NewCounters("board")
	if err != nil {
		return statusBoard{}, nil, err
	}
	writer, err := sys.OpenCounters(int(f.Fd()))
	if err := errors.Join(err, reader.Close()); err != nil {
		return statusBoard{}, nil, errors.Join(err, f.Close())
	}
	return statusBoard{writer}, f, nil
}

// readBoard opens a keeper's board by the file that the keeper sent.
func readBoard(f *os.File) (*statusBoard, error) {
	words, err := sys.ReadCounters(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	return &statusBoard{words}, nil
}

// close releases a board of readBoard.
func (b *statusBoard) close() {
	if b != nil {
		_ = b.words.Close() // it is not used any more
	}
}

// show is called by the keeper.
func (b statusBoard) show(st Standing, err error) {
	word := uint64(0)
	if err == nil && st.State == paddock.Ready {
		word = boardGoes
	}
	b.words.Set(boardWord, word)
}

// goes reports whether the keeper shows that its sandbox runs. It returns false without a
// board.
func (b *statusBoard) goes() bool { return b != nil && b.words.Load(boardWord) == boardGoes }
