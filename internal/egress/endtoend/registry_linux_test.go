package endtoend

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"golang.org/x/crypto/ssh"
	"golang.org/x/net/websocket"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// newHead reads from a connection that begins with text.
func newHead(c net.Conn) *bufio.Reader { return bufio.NewReader(c) }

// furnish adds the servers for package managers, git and others.
func (w *world) furnish(t *testing.T) {
	t.Helper()
	w.wheels(t)
	w.npm(t)
	w.debs()
	w.git(t)
	w.mux.Handle("/socket", websocket.Server{Handler: hear})
	w.mux.Handle(sayProcedure, connect.NewBidiStreamHandler(sayProcedure, say))
}

// hear echoes each message.
func hear(c *websocket.Conn) {
	var message string
	for websocket.Message.Receive(c, &message) == nil {
		if websocket.Message.Send(c, message) != nil {
			return
		}
	}
}

// sayProcedure is the procedure of the world's gRPC server.
const sayProcedure = "/trial.Trial/Say"

// say echoes each message immediately, and ends with a trailer.
func say(_ context.Context, s *connect.BidiStream[wrapperspb.StringValue, wrapperspb.StringValue]) error {
	s.ResponseHeader().Set(marker, "server")
	for {
		m, err := s.Receive()
		if errors.Is(err, io.EOF) {
			s.ResponseTrailer().Set("Said", "all")
			return nil
		} else if err != nil {
			return err
		}
		if err := s.Send(wrapperspb.String("you said " + m.GetValue())); err != nil {
			return err
		}
	}
}

// wheels serves a package index of Python with one package.
func (w *world) wheels(t *testing.T) {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	const info = "trialpkg-1.0.dist-info/"
	files := []struct{ name, text string }{
		{"trialpkg.py", "print('the package runs')\n"},
		{info + "METADATA", "Metadata-Version: 2.1\nName: trialpkg\nVersion: 1.0\n"},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: trial\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "RECORD", "trialpkg.py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n"},
	}
	for _, f := range files {
		out, err := z.Create(f.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(out, f.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	const file = "/wheels/trialpkg-1.0-py3-none-any.whl"
	w.page("/simple/trialpkg/", "text/html", []byte(`<!DOCTYPE html><html><body><a href="`+file+`">trialpkg-1.0-py3-none-any.whl</a></body></html>`))
	w.page(file, "application/zip", b.Bytes())
}

// page serves one body.
func (w *world) page(path, kind string, body []byte) {
	w.mux.HandleFunc(path, func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			http.NotFound(out, r)
			return
		}
		out.Header().Set("Content-Type", kind)
		_, _ = out.Write(body)
	})
}

// npm serves a registry of Node.js with one package.
func (w *world) npm(t *testing.T) {
	t.Helper()
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	a := tar.NewWriter(g)
	for name, text := range map[string]string{
		"package/package.json": `{"name": "trialpkg", "version": "1.0.0", "main": "index.js"}`,
		"package/index.js":     "console.log('the package runs')\n",
	} {
		if err := a.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(a, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(a.Close(), g.Close()); err != nil {
		t.Fatal(err)
	}
	const file = "/trialpkg/-/trialpkg-1.0.0.tgz"
	w.page(file, "application/octet-stream", b.Bytes())
	w.mux.HandleFunc("/trialpkg", func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(out).Encode(map[string]any{
			"name": "trialpkg", "dist-tags": map[string]string{"latest": "1.0.0"},
			"versions": map[string]any{"1.0.0": map[string]any{
				"name": "trialpkg", "version": "1.0.0",
				"dist": map[string]string{"tarball": "https://" + r.Host + file, "shasum": fmt.Sprintf("%x", sha1.Sum(b.Bytes()))},
			}},
		})
	})
}

// debs serves a flat Debian repository with one package, which is never unpacked and so
// need not be valid.
func (w *world) debs() {
	deb := []byte("not really a package\n")
	list := fmt.Appendf(nil, "Package: trialpkg\nVersion: 1.0\nArchitecture: all\nMaintainer: trial\nDescription: trial\nFilename: ./trialpkg_1.0_all.deb\nSize: %d\nSHA256: %x\n\n", len(deb), sha256.Sum256(deb))
	release := fmt.Appendf(nil, "Date: Thu, 01 Jan 2026 00:00:00 UTC\nSuite: trial\nSHA256:\n %x %d Packages\n", sha256.Sum256(list), len(list))
	w.mux.HandleFunc("/debs/", http.NotFound) // there is no signature
	w.page("/debs/Release", "text/plain", release)
	w.page("/debs/Packages", "text/plain", list)
	w.page("/debs/trialpkg_1.0_all.deb", "application/octet-stream", deb)
}

// git serves a repository over the web and over ssh.
func (w *world) git(t *testing.T) {
	t.Helper()
	root := t.TempDir()
	repo := filepath.Join(root, "repo.git")
	for _, args := range [][]string{
		{"init", "-q", "--bare", "-b", "main", repo},
		{"init", "-q", "-b", "main", filepath.Join(root, "work")},
		{"-C", filepath.Join(root, "work"), "-c", "user.name=trial", "-c", "user.email=trial@trial.test", "commit", "-q", "--allow-empty", "-m", "the first commit"},
		{"-C", filepath.Join(root, "work"), "push", "-q", repo, "main"},
		{"-C", repo, "config", "http.receivepack", "true"},
	} {
		w.hostGit(t, args...)
	}
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	w.mux.Handle("/git/", &cgi.Handler{Path: program, Args: []string{"http-backend"}, Root: "/git", Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}, Stderr: io.Discard})
	w.ssh(t, repo)
}

func (w *world) hostGit(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

// ssh starts a server that serves one repository to clients with the key in id.
func (w *world) ssh(t *testing.T, repo string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	w.put(t, "id", pem.EncodeToMemory(block))
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		if bytes.Equal(k.Marshal(), signer.PublicKey().Marshal()) {
			return &ssh.Permissions{}, nil
		}
		return nil, errors.New("another key")
	}}
	config.AddHostKey(signer)
	l, port := w.listen(t)
	w.SSH = port
	connections(t, l, func(c net.Conn) {
		_, channels, requests, err := ssh.NewServerConn(c, config)
		if err != nil {
			return
		}
		go ssh.DiscardRequests(requests) // until the connection is over
		for ch := range channels {
			if ch.ChannelType() != "session" {
				_ = ch.Reject(ssh.UnknownChannelType, "only sessions")
				continue
			}
			session(ch, repo)
		}
	})
}

// session runs git's side of a fetch.
func session(ch ssh.NewChannel, repo string) {
	c, requests, err := ch.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	for r := range requests {
		if r.Type != "exec" {
			_ = r.Reply(r.Type == "env", nil)
			continue
		}
		_ = r.Reply(true, nil)
		status := uint32(1)
		if len(r.Payload) > 4 && strings.HasPrefix(string(r.Payload[4:]), "git-upload-pack ") {
			cmd := exec.Command("git", "upload-pack", repo)
			cmd.Env = append(os.Environ(), "GIT_PROTOCOL=version=2", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
			cmd.Stdout, cmd.Stderr = c, c.Stderr()
			in, err := cmd.StdinPipe()
			if err == nil && cmd.Start() == nil {
				go func() { // ends with the channel
					_, _ = io.Copy(in, c)
					in.Close()
				}()
				if cmd.Wait() == nil {
					status = 0
				}
			}
		}
		_, _ = c.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, status))
		return
	}
}
