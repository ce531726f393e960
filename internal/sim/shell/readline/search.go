package readline

import "strings"

// search looks through the history backwards for what is typed. The line
// becomes what was found; the key that ended the search is the caller's.
func (e *Editor) search() (key, error) {
	query := []byte{}
	line, at, entry := string(e.line), e.at, e.entry
	found, where := line, len(e.history)
	look := func(from int) bool {
		for i := min(from, len(e.history)-1); i >= 0; i-- {
			if strings.Contains(e.history[i], string(query)) {
				found, where = e.history[i], i
				return true
			}
		}
		return false
	}
	failed := false
	for {
		name := "(reverse-i-search)`"
		if failed {
			name = "(failed reverse-i-search)`"
		}
		e.paint(name+string(query)+"': ", found, max(0, strings.Index(found, string(query))))
		k, err := e.key()
		if err != nil {
			return none, err
		}
		switch {
		case k == ctrl('R'):
			failed = len(query) == 0 || !look(where-1)
		case (k == ctrl('H') || k == 127) && len(query) > 0:
			query = query[:len(query)-1]
			failed = len(query) > 0 && !look(len(e.history)-1)
		case k == ctrl('G'):
			e.line, e.at, e.entry = append(e.line[:0], line...), at, entry
			e.refresh()
			return none, nil
		case k >= ' ' && k < 256 && k != 127 && len(query) < 4096:
			query = append(query, byte(k))
			failed = !look(min(where, len(e.history)-1))
		case k == none:
		default:
			e.entry = where
			e.set(found)
			e.at = max(0, strings.Index(found, string(query)))
			e.refresh()
			return k, nil
		}
	}
}
