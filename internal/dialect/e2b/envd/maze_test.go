package envd

import (
	"context"
	"hash/fnv"
	"io/fs"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// A maze is a sandbox whose names are links, files and directories as they come.
type maze struct {
	nothing
	links []string
}

func (m maze) FS() paddock.FS { return mazeFiles{links: m.links} }

type mazeFiles struct {
	noFiles
	links []string
}

func (m mazeFiles) Stat(_ context.Context, name string) (paddock.FileInfo, error) {
	if !strings.HasPrefix(name, "/") {
		panic("a relative name: " + name)
	}
	if name == "/" {
		return paddock.FileInfo{Name: name, Mode: fs.ModeDir}, nil
	}
	h := fnv.New32()
	_, _ = h.Write([]byte(name)) // it never fails
	switch n := int(h.Sum32() % 5); n {
	case 0, 1, 2:
		return paddock.FileInfo{Name: name, Mode: fs.ModeSymlink, Link: m.links[n]}, nil
	case 3:
		return paddock.FileInfo{Name: name, Mode: fs.ModeDir}, nil
	}
	return paddock.FileInfo{}, paddock.NotFound
}
