package boxinit

import (
	"bytes"
	"encoding/json"
	"io"
	"os"

	"github.com/paddock-sandbox/paddock"
)

// LedgerSize is the size of a ledger, in bytes. What does not fit is not in it.
const LedgerSize = 64 << 10

// A ledger is a file in memory by which the owner still knows what was refused in a box after
// the box ended, however that happened. Each refusal is a line. The rest is zeros. Counts are
// those of the first time.
type ledger struct {
	file *os.File // nil for a box without one
	end  int64
}

// add appends a refusal.
func (l *ledger) add(r paddock.Refusal) {
	if l.file == nil {
		return
	}
	data, err := json.Marshal(r)
	if err != nil || l.end+int64(len(data))+1 > LedgerSize {
		return
	}
	if _, err := l.file.WriteAt(append(data, '\n'), l.end); err == nil {
		l.end += int64(len(data)) + 1
	}
}

// ReadLedger returns the refusals in a ledger, oldest first. The box wrote it, so everything is
// checked and capped. Where it makes no sense, the rest is left out.
func ReadLedger(r io.Reader) []paddock.Refusal {
	const longest = 4096
	data, _ := io.ReadAll(io.LimitReader(r, LedgerSize)) // as far as it can be read
	data, _, _ = bytes.Cut(data, []byte{0})
	var list []paddock.Refusal
	for line := range bytes.Lines(data) {
		var it paddock.Refusal
		if !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &it) != nil {
			break
		}
		it.What, it.Rule, it.Remedy = Words(it.What, longest), Words(it.Rule, longest), Words(it.Remedy, longest)
		it.Target, it.Count = it.Target[:min(len(it.Target), longest)], max(it.Count, 1)
		list = append(list, it)
	}
	return Fit(list, LedgerSize) // short lines may stand for longer ones
}

// Fit returns the beginning of a list whose JSON has at most size bytes.
func Fit(list []paddock.Refusal, size int) []paddock.Refusal {
	for i, it := range list {
		data, err := json.Marshal(it)
		if size -= len(data) + 1; err != nil || size < 1 { // the comma, and the brackets
			return list[:i]
		}
	}
	return list
}
