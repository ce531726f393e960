package certificate

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// lookEvery is how often files are looked at, at most.
const lookEvery = time.Second

// Files are a certificate and its key, in PEM, which are read again when they
// change. Make them with [OpenFiles].
type Files struct {
	cert, key string
	log       *slog.Logger
	now       func() time.Time

	have atomic.Pointer[read]
	busy sync.Mutex // held while somebody looks: who only wants a certificate does not wait for it
}

// A read is what the files were when they were last looked at.
type read struct {
	pair   *tls.Certificate
	stamps [2]stamp
	looked time.Time
}

type stamp struct {
	size int64
	time time.Time
}

// OpenFiles reads both. The log is told of a change, and of one that is none.
func OpenFiles(cert, key string, log *slog.Logger) (*Files, error) {
	f := &Files{cert: cert, key: key, log: log, now: time.Now}
	stamps, err := f.stat()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	f.have.Store(&read{&pair, stamps, f.now()})
	return f, nil
}

func (f *Files) stat() (stamps [2]stamp, err error) {
	for i, name := range []string{f.cert, f.key} {
		info, err := os.Stat(name)
		if err != nil {
			return stamps, err
		}
		stamps[i] = stamp{info.Size(), info.ModTime()}
	}
	return stamps, nil
}

// Get is for tls.Config. What cannot be read does not take the place of what was: the two
// files change one after the other.
func (f *Files) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if f.now().Sub(f.have.Load().looked) >= lookEvery && f.busy.TryLock() {
		f.look(false)
		f.busy.Unlock()
	}
	return f.have.Load().pair, nil
}

// Look reads the files at once, changed or not.
func (f *Files) Look() {
	f.busy.Lock()
	defer f.busy.Unlock()
	f.look(true)
}

// look reads the files if they changed or it is told to, with busy held.
func (f *Files) look(told bool) {
	have := f.have.Load()
	next := &read{have.pair, have.stamps, f.now()}
	stamps, err := f.stat()
	if err == nil && (told || stamps != have.stamps) {
		next.stamps = stamps // it is not tried again before they change once more
		var pair tls.Certificate
		if pair, err = tls.LoadX509KeyPair(f.cert, f.key); err == nil {
			next.pair = &pair
			f.log.Info("the certificate was read anew", "file", f.cert)
		}
	}
	if err != nil {
		f.log.Warn("the certificate cannot be read, and the one of before stays", "file", f.cert, "error", err.Error())
	}
	f.have.Store(next)
}
