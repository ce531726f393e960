package attestation

import "os"

// extent returns from where to where a file has bytes that are not in a hole, at or behind at. It is after at, or ends
// with the file. Where a file system knows no holes, it is all that is left.
func extent(f *os.File, at, size int64) (from, to int64) {
	const seekData, seekHole = 3, 4
	from, err := f.Seek(at, seekData)
	if err != nil {
		if end, err := f.Seek(at, seekHole); err == nil && end == at { // there are no more bytes
			return size, size
		}
		return at, size
	}
	if from = min(max(from, at), size); from == size {
		return size, size
	}
	if to, err = f.Seek(from, seekHole); err != nil || to <= from {
		return from, size
	}
	return from, min(to, size)
}
