package python

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/tetratelabs/wazero"
	ours "github.com/tetratelabs/wazero/experimental/sys"
)

// libraryFile holds what the interpreter imports: its own library is a zip file
// inside itself, which it would unpack by itself each time, slowly.
const libraryFile = "python-3.12.0.library"

// archive is the program that writes the library as a zip file without
// compression, with what is run first in compiled form.
const archive = `import importlib.util, io, marshal, sys, zipfile
out = io.BytesIO()
with zipfile.ZipFile("/usr/local/lib/python312.zip") as old, zipfile.ZipFile(out, "w") as new:
    for i in old.infolist():
        if i.filename.endswith(".pyc"):
            new.writestr(i.filename, old.read(i))
    code = compile(sys.argv[2], "<paddock>", "exec")
    new.writestr(sys.argv[1], importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code))
sys.stdout.buffer.write(out.getvalue())
`

// compiledFirst names the compiled form of what is run first by this program.
func compiledFirst() string {
	sum := sha256.Sum256([]byte(first))
	return "sitecustomize-" + hex.EncodeToString(sum[:8])
}

// extract has the interpreter write its library.
func extract(ctx context.Context, r wazero.Runtime, m wazero.CompiledModule) ([]byte, error) {
	var out, complaint bytes.Buffer
	c := wazero.NewModuleConfig().WithName("").WithArgs("python3", "-I", "-S", "-c", archive, compiledFirst(), first).WithStdout(&out).WithStderr(&complaint)
	module, err := r.InstantiateModule(ctx, m, c)
	if module != nil {
		_ = module.Close(ctx) // it has ended
	}
	if err != nil {
		return nil, fmt.Errorf("extract the library: %w: %s", err, &complaint)
	}
	return out.Bytes(), nil
}

// An entry is a file of the interpreter's own, or a directory of them.
type entry struct {
	ino      uint64
	dir      bool
	children []ours.Dirent
	at       io.ReaderAt
	size     int64
}

// entries lists the interpreter's own files by name: what it runs first, and
// its library if that was installed.
func entries(dir string) (map[string]*entry, error) {
	all := map[string]*entry{place: {ino: 1, dir: true}}
	add := func(name string, e *entry) {
		for {
			e.ino = uint64(len(all) + 1)
			all[name] = e
			parent, known := all[path.Dir(name)]
			if !known {
				parent = &entry{dir: true}
			}
			kind := fs.FileMode(0)
			if e.dir {
				kind = fs.ModeDir
			}
			parent.children = append(parent.children, ours.Dirent{Ino: e.ino, Name: path.Base(name), Type: kind})
			if known {
				return
			}
			name, e = path.Dir(name), parent
		}
	}
	f, err := openLibrary(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	begin := false
	if err == nil {
		st, err := f.Stat()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("the library: %w", err), f.Close())
		}
		z, err := zip.NewReader(f, st.Size())
		if err != nil {
			return nil, errors.Join(fmt.Errorf("read the library: %w", err), f.Close())
		}
		for _, i := range z.File {
			off, err := i.DataOffset()
			if err != nil || i.Method != zip.Store || !fs.ValidPath(i.Name) {
				return nil, errors.Join(fmt.Errorf("read the library: %s: %w", i.Name, fs.ErrInvalid), err, f.Close())
			}
			size := int64(i.UncompressedSize64)
			e := &entry{at: io.NewSectionReader(f, off, size), size: size}
			switch {
			case i.Name == compiledFirst():
				begin = true
				add(place+"/sitecustomize.pyc", e)
			case !strings.HasPrefix(i.Name, "sitecustomize"):
				add(place+"/"+i.Name, e)
			}
		}
	}
	if !begin {
		add(place+"/sitecustomize.py", &entry{at: strings.NewReader(first), size: int64(len(first))})
	}
	return all, nil
}

// openLibrary opens the library, which stays open as long as the interpreter.
func openLibrary(dir string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the directory: %w", err)
	}
	defer root.Close()
	f, err := root.Open(libraryFile)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || !private(st) {
		return nil, errors.Join(errors.New("the library's file could be somebody else's"), err, f.Close())
	}
	return f, nil
}
