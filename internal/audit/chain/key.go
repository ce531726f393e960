package chain

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// KeyName is the name of the file of a user's key in the directory given to [MakeKey]: PKCS #8, in PEM.
const KeyName = "key.pem"

// maxKey bounds a file of a key, in bytes.
const maxKey = 4096

const (
	privateBlock = "PRIVATE KEY"
	publicBlock  = "PUBLIC KEY"
	prefix       = "sha256:" // of a fingerprint
)

// A Key signs heads.
type Key struct {
	private ed25519.PrivateKey
	public  ed25519.PublicKey
}

func (k *Key) sign(message []byte) []byte { return ed25519.Sign(k.private, message) }

// Fingerprint returns the fingerprint of the key; see [Fingerprint].
func (k *Key) Fingerprint() string { return Fingerprint(k.public) }

// Signer returns the private key, to sign texts other than heads. Each such text must begin with words of its own, so
// that it cannot be taken for a head.
func (k *Key) Signer() ed25519.PrivateKey { return k.private }

// Public returns the public key, with which others verify.
func (k *Key) Public() ed25519.PublicKey { return k.public }

// Fingerprint identifies a public key: "sha256:" and the SHA-256 of its SubjectPublicKeyInfo in DER, in hexadecimal.
func Fingerprint(key ed25519.PublicKey) string {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "" // no such key
	}
	hash := sha256.Sum256(der)
	return prefix + hex.EncodeToString(hash[:])
}

// IsFingerprint reports whether text has the form of a fingerprint.
func IsFingerprint(text string) bool {
	digits, ok := strings.CutPrefix(text, prefix)
	return ok && len(digits) == 2*sha256.Size && strings.Trim(digits, "0123456789abcdef") == ""
}

// PublicPEM encodes a public key in PEM.
func PublicPEM(key ed25519.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode the public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: publicBlock, Bytes: der}), nil
}

// ParsePublic decodes the output of PublicPEM.
func ParsePublic(data []byte) (ed25519.PublicKey, error) {
	b, _ := pem.Decode(data)
	if b == nil || b.Type != publicBlock {
		return nil, fmt.Errorf("it is no public key in PEM: %w", paddock.Invalid)
	}
	key, err := x509.ParsePKIXPublicKey(b.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	public, ok := key.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("it is no key of Ed25519: %w", paddock.Invalid)
	}
	return public, nil
}

// MakeKey returns the key in dir, and creates directory and key if they are missing. Two processes that start at once
// get the same key.
func MakeKey(dir string) (*Key, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Unavailable)
	}
	root, err := openOwn(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	k, err := readKey(root)
	if !errors.Is(err, paddock.NotFound) {
		return k, err
	}
	if err := writeKey(root); err != nil {
		return nil, fmt.Errorf("make a key in %s: %w", dir, err)
	}
	return readKey(root)
}

// ReadKey returns the key in dir. If there is none, the error is [paddock.NotFound].
func ReadKey(dir string) (*Key, error) {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no key in %s: %w", dir, paddock.NotFound)
	}
	root, err := openOwn(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return readKey(root)
}

// openOwn opens a directory that nobody but the caller may write to, and that
// nobody else could have put in its place.
func openOwn(dir string) (*os.Root, error) {
	above, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Unavailable)
	}
	real := filepath.Join(above, filepath.Base(dir))
	st, err := os.Lstat(real)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Unavailable)
	}
	if !st.IsDir() || !own(st, 0o022) {
		return nil, fmt.Errorf("%s is not a directory that only the calling user may write to: %w", dir, paddock.Denied)
	}
	for above != filepath.Dir(above) {
		up, err := os.Lstat(above)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, paddock.Unavailable)
		}
		if !safe(up) {
			return nil, fmt.Errorf("%s is in %s, where others could put something in its place: %w", dir, above, paddock.Denied)
		}
		above = filepath.Dir(above)
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Unavailable)
	}
	if now, err := root.Stat("."); err != nil || !os.SameFile(st, now) {
		root.Close()
		return nil, fmt.Errorf("%s was replaced meanwhile: %w", dir, paddock.Conflict)
	}
	return root, nil
}

// readKey reads the file itself, and nothing that a link leads to.
func readKey(root *os.Root) (*Key, error) {
	name := filepath.Join(root.Name(), KeyName)
	st, err := root.Lstat(KeyName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no key in %s: %w", root.Name(), paddock.NotFound)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", err, paddock.Denied)
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no plain file: %w", name, paddock.Denied)
	case !own(st, 0o077):
		return nil, fmt.Errorf("%s is not the calling user's own, or others may read it (mode %#o): %w", name, st.Mode().Perm(), paddock.Denied)
	}
	f, err := root.Open(KeyName)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(st, now) {
		return nil, fmt.Errorf("%s was replaced meanwhile: %w", name, paddock.Conflict)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKey))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Unavailable)
	}
	k, err := parseKey(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return k, nil
}

func parseKey(data []byte) (*Key, error) {
	b, _ := pem.Decode(data)
	if b == nil || b.Type != privateBlock {
		return nil, fmt.Errorf("it is no private key in PEM: %w", paddock.Invalid)
	}
	key, err := x509.ParsePKCS8PrivateKey(b.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("it is no key of Ed25519: %w", paddock.Invalid)
	}
	public, ok := private.Public().(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("it is no key of Ed25519: %w", paddock.Invalid)
	}
	return &Key{private: private, public: public}, nil
}

// writeKey makes a key under another name and links it to its own: it is there as
// a whole or not at all, and never in place of one that is there.
func writeKey(root *os.Root) (err error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	name := ".key-" + rand.Text()
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	defer func() { err = errors.Join(err, root.Remove(name)) }()
	_, err = f.Write(pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: der}))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Exhausted)
	}
	if err := root.Link(name, KeyName); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	return nil
}
