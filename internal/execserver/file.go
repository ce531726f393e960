package execserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// fileParams are those of all methods about files.
type fileParams struct {
	Path        string `json:"path"`
	Source      string `json:"sourcePath"`
	Destination string `json:"destinationPath"`
	Data        []byte `json:"dataBase64"`
	Recursive   *bool  `json:"recursive"`
	Force       *bool  `json:"force"`
	HandleID    string `json:"handleId"`
	Offset      int64  `json:"offset"`
	Len         int64  `json:"len"`
	Sandbox     *wish  `json:"sandbox"`
}

// file begins a request about files.
func (s *server) file(m message) (later, error) {
	methods := map[string]func(context.Context, fileParams) (any, error){
		"fs/readFile": s.readFile, "fs/writeFile": s.writeFile, "fs/createDirectory": s.createDirectory,
		"fs/getMetadata": s.getMetadata, "fs/canonicalize": s.canonicalize, "fs/readDirectory": s.readDirectory,
		"fs/remove": s.remove, "fs/copy": s.copyFile, "fs/open": s.open, "fs/readBlock": s.readBlock, "fs/close": s.closeFile,
	}
	do, ok := methods[m.Method]
	if !ok {
		return nil, problem{unknownMethod, "the method is not known here"}
	}
	return decoded(m.Params, func(p fileParams) (later, error) {
		if err := p.Sandbox.check(); err != nil {
			return nil, err
		}
		for _, at := range []*string{&p.Path, &p.Source, &p.Destination} {
			if *at == "" {
				continue
			}
			name, err := filePath(*at)
			if err != nil {
				return nil, err
			}
			*at = name
		}
		return aboutFiles(func(ctx context.Context) (any, error) { return do(ctx, p) }), nil
	})
}

// hold takes a place for a file that is held whole.
func (s *server) hold(ctx context.Context) (release func(), err error) {
	select {
	case s.whole <- struct{}{}:
		return func() { <-s.whole }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("other files are being read: %w", paddock.Unavailable)
	}
}

// A fileResult is a file that is held whole until it is sent.
type fileResult struct {
	Data []byte `json:"dataBase64"`
	sent func()
}

func (s *server) readFile(ctx context.Context, p fileParams) (any, error) {
	release, err := s.hold(ctx)
	if err != nil {
		return nil, err
	}
	data, err := s.readAll(ctx, p.Path, paddock.OpenOptions{}, maxFile)
	if err != nil {
		release()
		return nil, err
	}
	if data == nil {
		data = []byte{} // an empty file is an empty text
	}
	return fileResult{data, release}, nil
}

// readAll reads a file of a bounded size. A reader that does not answer ends with ctx.
func (s *server) readAll(ctx context.Context, name string, o paddock.OpenOptions, most int64) ([]byte, error) {
	name, info, err := resolve(ctx, s.fs, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode.IsRegular() {
		return nil, fmt.Errorf("it is not a regular file: %w", paddock.Invalid)
	}
	r, err := s.fs.Open(ctx, name, o)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = r.Close() })
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(r, most+1))
	if stop() {
		err = errors.Join(err, r.Close())
	}
	switch {
	case err != nil:
		return nil, err
	case n > most:
		return nil, fmt.Errorf("the file is above %d MiB: %w", most>>20, paddock.Invalid)
	}
	return b.Bytes(), nil
}

func (s *server) writeFile(ctx context.Context, p fileParams) (any, error) {
	release, err := s.hold(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return struct{}{}, s.put(ctx, p.Path, bytes.NewReader(p.Data))
}

func (s *server) put(ctx context.Context, name string, from io.Reader) error {
	w, err := s.fs.Create(ctx, name, paddock.CreateOptions{})
	if err != nil {
		return err
	}
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { _ = w.Close(); close(closed) })
	_, err = io.Copy(w, from)
	if stop() {
		return errors.Join(err, w.Close())
	}
	<-closed
	return fmt.Errorf("write the file: %w: %w", context.Cause(ctx), paddock.Unavailable)
}

func (s *server) createDirectory(ctx context.Context, p fileParams) (any, error) {
	return struct{}{}, s.fs.Mkdir(ctx, p.Path, paddock.MkdirOptions{Parents: p.Recursive == nil || *p.Recursive})
}

func (s *server) getMetadata(ctx context.Context, p fileParams) (any, error) {
	first, err := s.fs.Stat(ctx, p.Path)
	if err != nil {
		return nil, err
	}
	link, info := first.Mode&fs.ModeSymlink != 0, first
	if link {
		if _, info, err = resolve(ctx, s.fs, p.Path); err != nil {
			return nil, err
		}
	}
	return map[string]any{
		"isDirectory": info.Mode.IsDir(), "isFile": info.Mode.IsRegular(), "isSymlink": link,
		"size": max(info.Size, 0), "createdAtMs": 0, "modifiedAtMs": info.ModTime.UnixMilli(),
	}, nil
}

func (s *server) canonicalize(ctx context.Context, p fileParams) (any, error) {
	name, _, err := resolve(ctx, s.fs, p.Path)
	if err != nil {
		return nil, err
	}
	return map[string]string{"path": fileURI(name)}, nil
}

// resolve follows links as the box's kernel does, by what the box says of each part. The result is a name for the box,
// which looks at it again.
func resolve(ctx context.Context, files paddock.FS, name string) (string, paddock.FileInfo, error) {
	const most = 40
	links, at := 0, "/"
	rest := strings.Split(path.Clean(name), "/")
	info, err := files.Stat(ctx, "/")
	for err == nil && len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			info, err = files.Stat(ctx, at)
			continue
		}
		next := path.Join(at, part)
		if info, err = files.Stat(ctx, next); err != nil {
			break
		}
		if info.Mode&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if links++; links > most || len(info.Link) > 4096 || len(rest) > 4096 {
			return "", info, fmt.Errorf("too many links: %w", paddock.Invalid)
		}
		if path.IsAbs(info.Link) {
			at = "/"
		}
		rest = append(strings.Split(info.Link, "/"), rest...)
	}
	return at, info, err
}

func (s *server) readDirectory(ctx context.Context, p fileParams) (any, error) {
	type entry struct {
		Name string `json:"fileName"`
		Dir  bool   `json:"isDirectory"`
		File bool   `json:"isFile"`
	}
	list := []entry{}
	name, _, err := resolve(ctx, s.fs, p.Path)
	if err != nil {
		return nil, err
	}
	for info, err := range s.fs.List(ctx, name, 1) {
		if err != nil {
			return nil, err
		}
		if len(list) == maxEntries {
			return nil, fmt.Errorf("the directory has more than %d entries: %w", maxEntries, paddock.Invalid)
		}
		e := entry{path.Base(info.Name), info.Mode.IsDir(), info.Mode.IsRegular()}
		if info.Mode&fs.ModeSymlink != 0 {
			if _, to, err := resolve(ctx, s.fs, info.Name); err == nil { // else it leads nowhere
				e.Dir, e.File = to.Mode.IsDir(), to.Mode.IsRegular()
			}
		}
		list = append(list, e)
	}
	return map[string]any{"entries": list}, nil
}

func (s *server) remove(ctx context.Context, p fileParams) (any, error) {
	force := p.Force == nil || *p.Force
	if _, err := s.fs.Stat(ctx, p.Path); err != nil {
		if force && errors.Is(err, paddock.NotFound) {
			return struct{}{}, nil
		}
		return nil, err
	}
	return struct{}{}, s.fs.Remove(ctx, p.Path, p.Recursive == nil || *p.Recursive)
}

// copyFile copies a file. Codex copies no directories for its tools.
func (s *server) copyFile(ctx context.Context, p fileParams) (any, error) {
	name, info, err := resolve(ctx, s.fs, p.Source)
	if err != nil {
		return nil, err
	}
	if !info.Mode.IsRegular() {
		return nil, problem{invalidRequest, "only files are copied: use cp -a in a command"}
	}
	r, err := s.fs.Open(ctx, name, paddock.OpenOptions{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	defer context.AfterFunc(ctx, func() { _ = r.Close() })()
	return struct{}{}, s.put(ctx, p.Destination, r)
}

// open notes the path of a file. Nothing is held open: each block looks it up again, in the box.
func (s *server) open(ctx context.Context, p fileParams) (any, error) {
	name, info, err := resolve(ctx, s.fs, p.Path)
	if err != nil {
		return nil, err
	}
	if !info.Mode.IsRegular() {
		return nil, fmt.Errorf("it is not a regular file: %w", paddock.Invalid)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.handles[p.HandleID]; ok || p.HandleID == "" || len(p.HandleID) > 256 {
		return nil, problem{invalidParams, "handleId is empty, too long or taken"}
	}
	if len(s.handles) >= maxHandles {
		return nil, problem{invalidRequest, "too many files are open"}
	}
	s.handles[p.HandleID] = name
	return map[string]string{"handleId": p.HandleID}, nil
}

func (s *server) readBlock(ctx context.Context, p fileParams) (any, error) {
	s.mu.Lock()
	name, ok := s.handles[p.HandleID]
	s.mu.Unlock()
	if !ok || p.Offset < 0 || p.Len <= 0 || p.Len > maxBlock {
		return nil, problem{invalidParams, "there is no such file, or the part of it is none of 1 to 1048576 bytes"}
	}
	data, err := s.readAll(ctx, name, paddock.OpenOptions{Offset: p.Offset, Length: p.Len}, p.Len)
	if err != nil {
		return nil, err
	}
	return map[string]any{"chunk": data, "eof": int64(len(data)) < p.Len}, nil
}

func (s *server) closeFile(_ context.Context, p fileParams) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.handles, p.HandleID)
	return struct{}{}, nil
}
