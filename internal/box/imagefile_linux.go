package box

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/erofs/go-erofs"

	"github.com/paddock-sandbox/paddock"
)

// An imageFile is the file system of an image in one file. The store of images made it, so its structure is no
// stranger's; what is in it is.
type imageFile struct {
	file  *os.File
	fs    fs.ReadLinkFS
	stats map[string]stat // by path
}

// inFile reports whether the file tree of a root is in a file.
func inFile(root paddock.Root) bool {
	if root.Kind != paddock.RootImage {
		return false
	}
	st, err := os.Lstat(root.Path)
	return err == nil && st.Mode().IsRegular()
}

func openImageFile(path string) (*imageFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open an image: %w", err)
	}
	fsys, err := erofs.Open(f)
	if err == nil {
		if links, ok := fsys.(fs.ReadLinkFS); ok {
			return &imageFile{file: f, fs: links, stats: map[string]stat{}}, nil
		}
		err = paddock.Internal
	}
	_ = f.Close() // it was only read
	return nil, fmt.Errorf("the file system of an image, %s: %w: %w", path, err, paddock.Internal)
}

// A stat is what was found at a name.
type stat struct {
	info fs.FileInfo
	err  error
}

// lstat remembers what it found, because each look goes down from the top of the file system.
func (i *imageFile) lstat(at string) (fs.FileInfo, error) {
	if s, ok := i.stats[at]; ok {
		return s.info, s.err
	}
	info, err := i.fs.Lstat(entryName(at))
	i.stats[at] = stat{info, err}
	return info, err
}

// entryName converts an absolute path to a name of package fs.
func entryName(path string) string {
	if path == "/" {
		return "."
	}
	return strings.TrimPrefix(path, "/")
}
