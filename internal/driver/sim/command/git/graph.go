package git

import (
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

func (w *work) graph(list []*object.Commit, s style, marks map[plumbing.Hash][]string) error {
	return fail("log --graph is not supported in this sandbox")
}
