package boxinit

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/nameserver"
	"github.com/paddock-sandbox/paddock/internal/protect"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A broker makes the changes to files that the guest may not make itself.
//
// Landlock removes from all processes in the box the right to change anything below the
// broker's trees. They can only ask: each system call that could change a file is reported
// to the broker. It copies the arguments, opens the directory in question, finds out where
// that directory really is, decides by name, and then makes the call itself relative to the
// open directory. So it does not matter how the guest changes its memory, its descriptors
// or the tree meanwhile. If a call does not concern a tree, the kernel continues it
// unchanged. If the guest then changes it to concern a tree after all, Landlock refuses it.
type broker struct {
	trees    []tree
	root     string         // prefix of every path, if that is not the guest's own root
	hosts    []string       // where host files are mounted
	named    []string       // those of hosts that the caller named
	hostNet  bool           // abstract sockets are those of the host
	alone    bool           // there is no way out, not even one with rules
	landlock bool           // it stands around commands, and can stand around a thread
	netlinks int            // with so many sockets, of all kinds, there is no further netlink socket
	streams  int            // the same for sockets of TCP
	filters  int            // system-call filters of each command from its beginning
	deny     []string       // paths that may be neither made nor changed
	tops     map[inode]bool // directories of the host's mounts, whose mode and owner stay; see keepTops
	writable []string       // private directories that the guest changes without the broker
	noFile   func()         // called when a command has no descriptor left; may be nil
	view     *view          // what is shown of the machine; nil shows it as it is
	witness  *witness       // is told of changes; may be nil
	slow     chan struct{}
	waiting  chan struct{} // one element for each call that waits for a lock or for a reader of a FIFO
	fail     func(error)   // reports why there is no broker any more, and ends the box

	// sealed is set once a guest kernel runs. Then no reported call is continued. Every
	// call concerns a tree, and the broker makes it, because Landlock would not refuse a
	// call that was changed after the decision.
	sealed atomic.Bool

	// turn is held from a judgement to the end of the call that was judged. Each process of a guest
	// kernel has a listener of its own, and two changes together may be what neither may be alone.
	turn    sync.Mutex
	known   map[inode]*repository // those whose configurations were judged; guarded by turn
	samples map[inode]bool        // samples of hooks that were made in this box; guarded by turn
	pending map[string]*pending   // by path; guarded by turn
	landed  map[string]bool       // files that lead to a repository and were written by this broker; guarded by turn
	ways    map[string]ways       // by directory: what its repository says; guarded by turn

	// unseen is set once a program listens on a socket that the broker cannot take.
	unseen bool // guarded by turn

	mu      sync.Mutex
	sockets []mountSocket               // guarded by mu
	refused map[string]*paddock.Refusal // guarded by mu
	order   []string                    // guarded by mu
	ledger  ledger                      // guarded by mu
}

// A tree is a directory (or a single file) whose changes the broker decides.
type tree struct {
	number    int // in Config.Trees
	path      string
	protected *protect.Set // nil protects nothing: a private directory
	above     string       // the host path of the mount, where a protected name may begin
	cache     bool         // of build tools, which sandboxes alone write
	top       *os.File     // of what is reported, the tree itself; nil if nothing is
}

const (
	linkMax     = 40
	refusalsMax = 1000
	slowMax     = 8   // waiting calls, such as connects
	waitingMax  = 256 // calls that wait for a lock, or for a reader of a FIFO
)

func newBroker(c *Config) (*broker, error) {
	set, err := protect.New(c.Protect, c.Unprotect)
	if err != nil {
		return nil, err
	}
	b := &broker{hosts: c.Hosts, named: c.Named, hostNet: c.HostNet, alone: !c.HostNet && !c.Link, landlock: c.Landlock, netlinks: c.Netlinks, streams: c.Streams, deny: c.Deny, slow: make(chan struct{}, slowMax), waiting: make(chan struct{}, waitingMax),
		refused: map[string]*paddock.Refusal{}, known: map[inode]*repository{}, samples: map[inode]bool{}, pending: map[string]*pending{}, landed: map[string]bool{}, ways: map[string]ways{}, tops: map[inode]bool{}}
	if c.GuestKernel != nil {
		b.root = Root
	}
	for i, t := range c.Trees {
		bt := tree{number: i, path: t.Path}
		switch {
		case t.Protected && t.Cache:
			bt.protected, bt.cache = protect.Versioned(), true
		case t.Protected:
			bt.protected = set
			// The caller mounted the protected place itself by name.
			if _, hit := set.Match(strings.Trim(t.Source, "/")); hit != protect.Protected {
				bt.above = strings.Trim(t.Source, "/") + "/"
			}
		}
		b.trees = append(b.trees, bt)
	}
	for _, w := range c.Writable {
		switch t := b.treeOf(w); {
		case t == nil:
			b.writable = append(b.writable, w)
		case !t.private() && t.path != w: // such as a home below a directory of the host: what is there is not the host's
			b.trees = append(b.trees, tree{number: -1, path: w})
		}
	}
	return b, nil
}

// serve starts to answer the system calls that a filter reports on listener.
func (b *broker) serve(listener *os.File) error {
	f, p, err := sys.NewPoller(listener)
	if err != nil {
		return err
	}
	fd, err := sys.Descriptor(f)
	if err != nil {
		return err
	}
	go func() { // ends with the box
		defer runtime.KeepAlive(f)
		b.run(fd, p)
	}()
	return nil
}

// run answers system calls until no process is left that could make one.
//
// Then the box ends, because its commands would wait forever for answers.
func (b *broker) run(listener int, poller *sys.Poller) {
	defer b.caught()
	for {
		if err := poller.Wait(); err != nil {
			b.fail(fmt.Errorf("wait for a call: %w", err))
			return
		}
		var n sys.Notif
		switch err := n.Receive(listener); {
		case err == nil:
			b.answer(listener, n)
		case errors.Is(err, syscall.ENOENT):
			// The caller died before we looked.
		default:
			b.fail(fmt.Errorf("receive a call: %w", err))
			return
		}
	}
}

// caught ends the box with a message if the goroutine that defers it has panicked.
func (b *broker) caught() {
	if cause := recover(); cause != nil {
		b.fail(fmt.Errorf("it panicked: %v", cause))
	}
}

// A reply is the result of a call.
type reply struct {
	goOn bool // the kernel continues the call
	err  syscall.Errno
	num  int  // returned to the caller, if there is no error
	late bool // the call is answered later
	fd   int  // given to the caller, if open is set
	open bool
	keep bool // the descriptor stays open across exec
}

var (
	goOn = reply{goOn: true}
	done = reply{}
)

func fails(err error) reply {
	var e syscall.Errno
	if errors.As(err, &e) && e != 0 {
		return reply{err: e}
	}
	return reply{err: syscall.EACCES}
}

func result(err error) reply {
	if err != nil {
		return fails(err)
	}
	return done
}

func (b *broker) answer(listener int, n sys.Notif) {
	c := &call{broker: b, listener: listener, id: n.ID, tid: int(n.PID), args: n.Args}
	if c.tid == 0 { // a process that this namespace cannot see is not ours
		c.send(reply{err: syscall.EPERM})
		return
	}
	do := handlers()[uint32(n.NR)]
	if do == nil {
		c.send(reply{err: syscall.ENOSYS})
		return
	}
	if isConnect(n.NR) {
		// It may wait for its peer, so it gets its own goroutine.
		go func() {
			defer b.caught()
			b.slow <- struct{}{}
			defer func() { <-b.slow }()
			c.send(do(c))
		}()
		return
	}
	b.turn.Lock()
	defer b.turn.Unlock()
	c.send(do(c))
}

func (c *call) send(r reply) {
	// The answer has no receiver if the caller was killed.
	switch {
	case r.late:
	case r.open:
		if err := sys.NotifGive(c.listener, c.id, r.fd, !r.keep); err != nil && !errors.Is(err, syscall.ENOENT) {
			if errors.Is(err, syscall.EMFILE) && c.noFile != nil {
				c.noFile()
			}
			_ = sys.NotifAnswer(c.listener, c.id, 0, syscall.EMFILE)
		}
		sys.Close(r.fd)
	case r.goOn && c.sealed.Load():
		_ = sys.NotifAnswer(c.listener, c.id, 0, syscall.EPERM)
	case r.goOn:
		_ = sys.NotifContinue(c.listener, c.id)
	default:
		_ = sys.NotifAnswer(c.listener, c.id, int64(r.num), r.err)
	}
}

// A call is one system call of the guest. All of its content is hostile.
type call struct {
	*broker
	listener int
	id       uint64
	tid      int
	args     [6]uint64
}

// fd returns argument i as a directory descriptor.
func (c *call) fd(i int) int { return int(int32(uint32(c.args[i]))) }

// A place is a name in an open directory.
type place struct {
	dir   int
	base  string
	full  string // its present path
	slash bool   // the guest's path ends in a slash
	tree  *tree  // nil: not in a tree
	held  []int  // see claim
}

func (p *place) close() {
	p.release()
	sys.Close(p.dir)
}

// release ends what claim has locked.
func (p *place) release() {
	for _, fd := range p.held {
		sys.Close(fd)
	}
	p.held = nil
}

// there reports whether the name exists.
func (p *place) there() bool {
	_, err := sys.StatAt(p.dir, p.base)
	return !errors.Is(err, syscall.ENOENT)
}

// plain reports whether the name is that of a regular file.
func (p *place) plain() bool {
	st, err := sys.StatAt(p.dir, p.base)
	return err == nil && isPlain(st)
}

func isPlain(st sys.FileStat) bool { return st.Mode&sys.TypeMask == sys.TypeRegular }

var errGoOn = errors.New("not the broker's")

// find resolves a path argument to a place in one of the trees. It returns errGoOn for
// everything else, including what the kernel refuses by itself.
func (c *call) find(dirfd int, addr uint64, follow bool) (*place, error) {
	// If the memory of a process cannot be read (because its program may only be executed), the
	// kernel and Landlock decide, as for every invalid call.
	path, err := sys.ReadString(c.tid, addr, pathMax)
	if err != nil {
		return nil, errGoOn
	}
	start, path, err := c.start(dirfd, path)
	if err != nil {
		return nil, errGoOn
	}
	defer closeUnless(start, sys.AtCWD)
	// Only now it is certain that tid was the caller's, and not that of a later thread with
	// the same number.
	if !sys.NotifValid(c.listener, c.id) {
		return nil, errGoOn
	}
	return c.resolve(start, path, follow)
}

// start returns the directory from which a path of the guest is walked, and the path from there. Close it with
// closeUnless, but for sys.AtCWD.
//
// Programs that follow no link keep a directory open, and name what is in it by /proc/self/fd. That is the same as a
// path relative to the descriptor, which no link of the guest can change.
func (c *call) start(dirfd int, path string) (int, string, error) {
	if n, rest, ok := throughDescriptor(path); ok {
		fd, err := c.selfDescriptor(n)
		return fd, rest, err
	}
	if strings.HasPrefix(path, "/") {
		return sys.AtCWD, path, nil
	}
	fd, err := sys.DirOf(c.tid, dirfd)
	return fd, path, err
}

// throughDescriptor divides a path below /proc/self/fd/N.
func throughDescriptor(path string) (n int, rest string, ok bool) {
	name, ok := strings.CutPrefix(path, "/proc/self/fd/")
	if !ok {
		return 0, "", false
	}
	number, rest, _ := strings.Cut(name, "/")
	// The kernel takes a number only as it writes it.
	if n, err := strconv.Atoi(number); err == nil && n >= 0 && strconv.Itoa(n) == number {
		rest = strings.TrimLeft(rest, "/")
		return n, rest, rest != ""
	}
	return 0, "", false
}

// resolve walks path from the open directory start. With follow it also follows a link at
// the last name.
func (c *call) resolve(start int, path string, follow bool) (*place, error) {
	at := start
	for range linkMax {
		slash := strings.HasSuffix(path, "/")
		dirPart, base := split(path)
		if base == "" || base == "." || base == ".." {
			closeUnless(at, start)
			return nil, errGoOn
		}
		dir, err := sys.ResolveDir(at, dirPart)
		if errors.Is(err, syscall.ENOENT) {
			if err = c.missing(at, dirPart); err == nil {
				continue // it was made in between
			}
		} else if err != nil {
			err = errGoOn // the kernel reports the error; Landlock handles a magic link
		}
		closeUnless(at, start)
		if err != nil {
			return nil, err
		}
		if follow {
			if target, err := sys.ReadLinkAt(dir, base); err == nil {
				if target == "" {
					sys.Close(dir)
					return nil, errGoOn
				}
				at, path = dir, target
				if strings.HasPrefix(target, "/") {
					sys.Close(dir)
					at = start // unused, because the path is absolute
				}
				continue
			}
		}
		full, err := c.pathIn(dir, base)
		if err != nil {
			sys.Close(dir)
			return nil, errGoOn
		}
		p := &place{dir: dir, base: base, full: full, slash: slash, tree: c.treeOf(full)}
		if p.tree == nil {
			p.close()
			return nil, errGoOn
		}
		if err := c.tellable(p); err != nil {
			p.close()
			return nil, err
		}
		return p, nil
	}
	closeUnless(at, start)
	return nil, syscall.ELOOP
}

// missing decides about a path that was not there: ENOENT if a name of it is missing in a tree, and no error if it is there
// by now. The kernel must not be the one that looks again: it may find what another thread has made in between, and
// Landlock would deny to change it. What is behind a link or in no tree is the kernel's all the same.
func (c *call) missing(at int, path string) error {
	for {
		up, name := split(path)
		if name == "" || up == path {
			return errGoOn
		}
		dir, err := sys.ResolveDir(at, up)
		if errors.Is(err, syscall.ENOENT) {
			path = up
			continue
		}
		if err != nil {
			return errGoOn
		}
		defer sys.Close(dir)
		full, err := c.pathIn(dir, name)
		if err != nil || c.treeOf(full) == nil {
			return errGoOn
		}
		st, err := sys.StatAt(dir, name)
		switch {
		case errors.Is(err, syscall.ENOENT):
			return syscall.ENOENT
		case err != nil || st.Mode&sys.TypeMask != sys.TypeDir:
			return errGoOn
		}
		return nil
	}
}

func closeUnless(fd, keep int) {
	if fd != keep {
		sys.Close(fd)
	}
}

// split cuts off the last name of a path. The directory part of a name alone is ".".
func split(path string) (dir, base string) {
	path = strings.TrimRight(path, "/")
	i := strings.LastIndexByte(path, '/')
	switch {
	case i < 0:
		return ".", path
	case i == 0:
		return "/", path[1:]
	default:
		return path[:i], path[i+1:]
	}
}

func (b *broker) pathIn(dir int, base string) (string, error) {
	path, err := b.where(dir)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(path, "/") || strings.HasSuffix(path, " (deleted)") {
		return "", syscall.ENOENT
	}
	if path == "/" {
		return "/" + base, nil
	}
	return path + "/" + base, nil
}

// where returns the present path of an open file.
//
// The host's kernel reports the path in the mounts through which the file was opened.
// Processes of a guest kernel had to make their own mount namespaces. One that was taken
// over could show a protected directory at another path. So the file at that path from here
// must be the same file. A file that has no name any more is nowhere, so it passes.
func (b *broker) where(fd int) (string, error) {
	path, err := sys.PathOf(fd)
	if err != nil || b.root == "" { // commands on the host's kernel make no mounts
		return path, err
	}
	is, err := sys.StatAt(fd, "")
	if err != nil {
		return "", err
	}
	at, err := sys.ResolvePlain(path)
	if err != nil {
		// A real name may end like that, too; only a file without names is nowhere.
		nameless := is.Links == 0 && is.Mode&syscall.S_IFMT != syscall.S_IFDIR
		if nameless && errors.Is(err, syscall.ENOENT) && strings.HasSuffix(path, " (deleted)") {
			return path, nil
		}
		return "", syscall.EACCES
	}
	defer sys.Close(at)
	if st, err := sys.StatAt(at, ""); err != nil || st.Dev != is.Dev || st.Ino != is.Ino {
		return "", syscall.EACCES
	}
	return path, nil
}

// treeOf returns the innermost tree that contains path.
func (b *broker) treeOf(path string) *tree {
	var best *tree
	for i := range b.trees {
		if t := &b.trees[i]; below(path, t.path) && (best == nil || len(t.path) > len(best.path)) {
			best = t
		}
	}
	return best
}

func below(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// judge returns the rule that protects a path, and how. dir is the open directory of its last name;
// nowhere if there is none.
func (b *broker) judge(t *tree, full string, dir int) (string, protect.Hit) {
	for _, d := range b.deny {
		if below(full, d) {
			return "deny " + d, protect.Protected
		}
		if below(d, full) {
			return "deny " + d, protect.Prefix
		}
	}
	for _, h := range b.hosts {
		if h != full && below(h, full) {
			return "the mount " + h, protect.Prefix
		}
	}
	if t.protected == nil || full == t.path {
		return "", protect.Miss
	}
	rel := t.rel(full)
	rule, hit := t.named(rel)
	if hit == protect.Miss || hit == protect.Prefix {
		// Another sandbox may exchange directories of the path. It cannot change what is above an open
		// directory, as far as names there count. But a guest kernel that was taken over could show it
		// elsewhere.
		for _, at := range []int{nowhere, dir} {
			if r, h := t.bare(rel, at); h != protect.Miss {
				return r, h
			}
			if r := t.becoming(rel, at); r != "" {
				return r, protect.Protected
			}
			if dir == nowhere {
				break
			}
		}
	}
	return rule, hit
}

// nowhere stands for the directory of a path that is not open.
const nowhere = -1

// rel returns a path in the tree without that of the tree, which is empty for the tree's own.
func (t *tree) rel(full string) string {
	if full == t.path {
		return ""
	}
	return strings.TrimPrefix(full, strings.TrimSuffix(t.path, "/")+"/")
}

// named judges by names alone.
func (t *tree) named(rel string) (string, protect.Hit) {
	rule, hit := t.protected.Match(rel)
	if hit == protect.Miss && t.above != "" {
		rule, hit = t.protected.Match(t.above + rel)
	}
	return rule, hit
}

// bare judges a path in a bare repository of git, which is protected as ".git" is. The broker makes one
// change after another, and claims the directory against other brokers, so the names are there as it
// finds them. It looks from at, the open directory of the path's last name, or along the path if that is
// nowhere.
func (t *tree) bare(rel string, at int) (string, protect.Hit) {
	path, rest := t.path, rel
	for rest != "" {
		first, next, _ := strings.Cut(rest, "/")
		if rule, hit := t.bareBelow(entries{path, at, strings.Count(rest, "/")}, first, rest); hit != protect.Miss {
			return rule, hit
		}
		path, rest = path+"/"+first, next
	}
	return "", protect.Miss
}

// bareBelow judges rest, which begins with first, in a directory that may be a repository.
func (t *tree) bareBelow(e entries, first, rest string) (string, protect.Hit) {
	if !t.protected.BelowGit(first) {
		return "", protect.Miss
	}
	look, end := e.look()
	defer end()
	if isBare(look, "", mayExist) {
		if rule, hit := t.protected.Match(".git/" + rest); hit != protect.Miss {
			return rule, hit
		}
	}
	return "", protect.Miss
}

// becoming returns the rule that protects the last of the names that would make a directory a bare
// repository, if the directory has a name that git would then obey. at is as for bare. Where names alone
// protect what is in the directory, nothing that git obeys can be there unjudged.
func (t *tree) becoming(rel string, at int) string {
	up, last := "", rel
	if i := strings.LastIndexByte(rel, '/'); i >= 0 {
		up, last = rel[:i+1], rel[i+1:]
	}
	if !protect.IsBarePart(last) {
		return ""
	}
	look, end := entries{strings.TrimSuffix(t.path+"/"+up, "/"), at, 0}.look()
	defer end()
	if !isBare(look, last, mayExist) || isBare(look, "", exists) {
		return ""
	}
	if _, hit := t.named(up + "config"); hit == protect.Protected {
		return ""
	}
	for _, name := range t.protected.GitNames() {
		if !protect.Same(name, last) && !mayExist(look(name)) {
			continue
		}
		if rule, hit := t.protected.Match(".git/" + name); hit != protect.Miss {
			return rule
		}
	}
	return ""
}

// entries looks for names in a directory: at path, or so many levels above the open directory dir.
type entries struct {
	path string
	dir  int
	up   int
}

// look returns a function that looks for a name. Call end when it is not needed any more.
func (e entries) look() (look func(name string) error, end func()) {
	if e.dir == nowhere {
		return func(name string) error {
			_, err := sys.StatAt(sys.AtCWD, e.path+"/"+name)
			return err
		}, func() {}
	}
	fd, err := sys.OpenDirAt(e.dir, strings.Repeat("../", e.up)+".")
	if err != nil {
		return func(string) error { return err }, func() {}
	}
	return func(name string) error {
		_, err := sys.StatAt(fd, name)
		return err
	}, func() { sys.Close(fd) }
}

// isBare reports whether git takes a directory for a bare repository, or would if the directory
// also had an entry of this name. there judges what look finds about the other entries.
func isBare(look func(name string) error, also string, there func(error) bool) bool {
	return slices.ContainsFunc(protect.BareParts(), func(parts []string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool {
			return !protect.Same(part, also) && !there(look(part))
		})
	})
}

// claim waits until no other broker makes a name in a directory that would be a bare repository with that
// and the name of this place. Each alone may be allowed. Brokers of several sandboxes may have the same
// directory, so they lock it, from the judgement to the end of the call: until the place is closed. A
// guest that holds the lock only keeps such names from being made.
func (b *broker) claim(p *place) error {
	t := p.tree
	if t.protected == nil {
		return nil
	}
	for rest := t.rel(p.full); rest != ""; _, rest, _ = strings.Cut(rest, "/") {
		first, next, _ := strings.Cut(rest, "/")
		counts := next == "" && protect.IsBarePart(first)
		if !counts && t.protected.BelowGit(first) {
			_, hit := t.protected.Match(".git/" + rest)
			counts = hit != protect.Miss
		}
		if counts {
			fd, err := sys.OpenAt(p.dir, strings.Repeat("../", strings.Count(rest, "/"))+".", syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
			if err != nil {
				return err // a guest may have taken the right to read it
			}
			p.held = append(p.held, fd)
			if err := lockSoon(fd); err != nil {
				return err // what is held already ends with the place
			}
		}
	}
	return nil
}

// lockSoon locks a directory, unless its file system has no locks.
func lockSoon(fd int) error {
	const most = 200 // a broker holds it for much less than a millisecond
	for range most {
		if err := sys.Lock(fd, syscall.LOCK_EX); !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil // also where a file system has no locks, as some of networks
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // flock that waits cannot be given up
	}
	return syscall.EBUSY
}

// may decides an operation by name. A path that is only a beginning of a protected one
// permits operations that can only make, use or remove an empty directory.
func (b *broker) may(op, full string, t *tree, directory bool) bool {
	return b.mayIn(op, full, t, nowhere, directory)
}

// mayAt decides an operation on a place.
func (b *broker) mayAt(op string, p *place, directory bool) bool {
	return b.mayIn(op, p.full, p.tree, p.dir, directory)
}

func (b *broker) mayIn(op, full string, t *tree, dir int, directory bool) bool {
	rule, hit := b.judge(t, full, dir)
	if permits(op, full, hit, directory) {
		return true
	}
	b.refuse(op, full, rule)
	return false
}

func permits(op, full string, hit protect.Hit, directory bool) bool {
	switch {
	case hit == protect.Miss, hit == protect.Prefix && directory:
		return true
	case hit == protect.Root && directory && (op != "make" || present(full)):
		return true // it was made by the host, or the kernel reports that it exists
	}
	return false
}

// mayMake is may for a call that makes a name. It may make a directory a repository.
func (c *call) mayMake(op string, p *place, directory bool) bool {
	rule, hit := c.judge(p.tree, p.full, p.dir)
	if permits(op, p.full, hit, directory) {
		return true
	}
	if rel := p.rel(); hit == protect.Protected && !protect.Same("commondir", p.base) && p.tree.protected != nil && (p.tree.becoming(rel, nowhere) == rule || p.tree.becoming(rel, p.dir) == rule) {
		if _, h := p.tree.named(rel); permits(op, p.full, h, directory) {
			broken, err := c.settle(p)
			if err == nil {
				return true
			}
			c.refuseContent(op, p.full, broken, err)
			return false
		}
	}
	c.refuse(op, p.full, rule)
	return false
}

// rel returns the part of a place's path below its tree.
func (p *place) rel() string { return p.tree.rel(p.full) }

// inModules reports whether a place is below .git/modules, where every directory may be a repository.
func (p *place) inModules() bool {
	t := p.tree
	return t.protected != nil && (t.protected.InModules(p.rel()) || t.above != "" && t.protected.InModules(t.above+p.rel()))
}

// inGit reports whether a place is in a directory .git, where no link may be. git of the host would write through it.
func (p *place) inGit() bool {
	t := p.tree
	return t.protected != nil && (t.protected.InGit(p.rel()) || t.above != "" && t.protected.InGit(t.above+p.rel()))
}

// mayEnter reports whether what is at a place may come to be at another: in a directory .git there is no link, and in a
// directory from elsewhere there could be one.
func (p *place) mayEnter(to *place) bool {
	if !to.inGit() {
		return true
	}
	st, err := sys.StatAt(p.dir, p.base)
	switch st.Mode & sys.TypeMask {
	case sys.TypeLink:
		return false
	case sys.TypeDir:
		return p.inGit()
	}
	return err == nil
}

// present reports whether something is at a path.
func present(path string) bool {
	_, err := sys.StatAt(sys.AtCWD, path)
	return exists(err)
}

// exists judges the error of looking for something.
func exists(err error) bool { return err == nil }

// mayExist is exists, but reports true also if that cannot be looked up. The guest may take away the
// right to search a directory above, or make a path too long, and undo it later.
func mayExist(err error) bool {
	return !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ENOTDIR)
}

// linkInGit is the rule about links in directories .git.
const linkInGit = "links in a repository of git"

func (b *broker) refuse(op, target, rule string) { b.refuseFor(op, target, rule, "") }

// refuseFor refuses with a reason that the rule alone does not tell.
func (b *broker) refuseFor(op, target, rule, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.root != "" {
		target, rule = strings.TrimPrefix(target, b.root), strings.Replace(rule, " "+b.root+"/", " /", 1)
	}
	key := op + "\x00" + target
	if why != "" || op == "watch" { // a mount may have several reasons
		key += "\x00" + rule
	}
	if r := b.refused[key]; r != nil {
		r.Count++
		r.Time = time.Now()
		return
	}
	if len(b.order) >= refusalsMax {
		delete(b.refused, b.order[0])
		b.order = b.order[1:]
	}
	name, _, _ := strings.Cut(rule, ":")
	remedy := "if this is meant, allow it with --unprotect " + strconv.Quote(name) + " or files.unprotect in the policy"
	if !protect.Builtin(name) { // of the policy itself
		remedy = "if this is meant, take " + strconv.Quote(name) + " from files.protect in the policy"
	}
	switch {
	case why != "":
		remedy = strings.ToValidUTF8(why, "\ufffd") + "; set it on the host, or " + strings.TrimPrefix(remedy, "if this is meant, ")
	case rule == linkInGit:
		remedy = "git of the host would write where the link leads; make it outside of .git"
	case rule == nameserver.NoNetwork:
		remedy = "--allow " + target
	case rule == foreignSocket:
		remedy = "sockets of host programs are not reachable from inside; use one in a directory of the sandbox's own (the home, /tmp; with an open root /dev/shm) or in a mount that may be written"
	case op == "socket":
		remedy = "close sockets that are not needed; gvisor and microvm have no such bound"
	case strings.HasPrefix(rule, "at most "):
		remedy = "have fewer commands wait at a time; gvisor and microvm have no such bound"
	case rule == watchesFull:
		remedy = "watch fewer directories (leave out node_modules and the like), or have the tool poll"
	case rule == watchesDenied:
		remedy = "have the administrator raise fs.inotify.max_user_watches and max_user_instances, or have the tool poll"
	case rule == watchesEnded:
		remedy = "start the sandbox again, or have the tool poll"
	case strings.HasPrefix(rule, watchesFailed):
		remedy = "have the tool poll"
	case op == "lock":
		remedy = "lock a file that may be written; a directory of the host may be with --write or --workspace"
	case op == "watch":
		remedy = "if this is meant, name the directory with --read"
	case rule == topRule:
		remedy = "change it on the host; a sandbox may only take rights of the group and of others away"
	case strings.HasPrefix(rule, "deny "):
		remedy = "the policy denies it, or it is a part of Paddock itself"
	case strings.HasPrefix(rule, "the mount "):
		remedy = "a directory that holds a mount stays where it is"
	case strings.HasPrefix(rule, "programs "):
		remedy = "take the bit away on the host first"
	}
	b.refused[key] = &paddock.Refusal{Time: time.Now(), What: op, Target: target, Rule: rule, Remedy: remedy, Count: 1}
	b.order = append(b.order, key)
	b.ledger.add(*b.refused[key])
}

// record writes a refusal that is not the broker's own into the ledger.
func (b *broker) record(r paddock.Refusal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.add(r)
}

// ours reports whether a path belongs to the box itself: it is in a private place, and not
// in a file tree of the host that is mounted there.
func (b *broker) ours(path string) bool {
	longest, own := 0, false
	for _, w := range b.writable {
		if below(path, w) && len(w) > longest {
			longest, own = len(w), true
		}
	}
	for _, t := range b.trees {
		if below(path, t.path) && len(t.path) >= longest {
			longest, own = len(t.path), t.protected == nil
		}
	}
	for _, h := range b.hosts {
		if below(path, h) && len(h) >= longest {
			longest, own = len(h), false
		}
	}
	return own
}

// changes reports whether the guest may change files at a path: the box's own files, and the host's
// in a writable mount.
func (b *broker) changes(path string) bool {
	if b.ours(path) {
		return true
	}
	t := b.treeOf(path)
	return t != nil && !slices.ContainsFunc(b.hosts, func(h string) bool { return below(path, h) && len(h) > len(t.path) })
}

// Refusals lists refused operations, oldest first.
func (b *broker) Refusals() []paddock.Refusal {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]paddock.Refusal, 0, len(b.order))
	for _, key := range b.order {
		list = append(list, *b.refused[key])
	}
	return list
}

// placeAt returns a name in a directory of the agent's.
func (b *broker) placeAt(op string, dir *os.File, base string) (*place, error) {
	at := int(dir.Fd())
	full, err := b.pathIn(at, base)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", op, base, paddock.NotFound)
	}
	p := &place{dir: at, base: base, full: full, tree: b.treeOf(full)}
	if err := b.tellable(p); errors.Is(err, syscall.ENAMETOOLONG) {
		return nil, fmt.Errorf("%s %q: its path is longer than %d bytes: %w", op, base, pathMax, paddock.Invalid)
	} else if err != nil {
		return nil, fmt.Errorf("%s %q: the host cannot look there, so it cannot be recorded: %w: %w", op, base, err, paddock.Denied)
	}
	return p, nil
}

// claimFor claims a place, and tells a failure in the words of the agent.
func (b *broker) claimFor(op string, p *place) error {
	if err := b.claim(p); err != nil {
		p.release()
		return fmt.Errorf("%s %q: another sandbox makes such a name there: %w: %w", op, p.full, err, paddock.Conflict)
	}
	return nil
}

// Check implements guest.Guard, for changes that the agent makes for the host.
func (b *broker) Check(op string, dir *os.File, base string) (done func(), err error) {
	p, err := b.placeAt(op, dir, base)
	if err != nil || p.tree == nil {
		return nil, err
	}
	b.turn.Lock()
	defer b.turn.Unlock()
	if op != "remove" && op != "chmod" {
		if err := b.claimFor(op, p); err != nil {
			return nil, err
		}
	}
	directory := op == "make" || op == "chmod"
	if !b.mayAt(op, p, directory) {
		p.release()
		return nil, b.denied(op, p)
	}
	if op == "chmod" && b.topAt(p) { // the mode that it would get is not known here
		p.release()
		b.refuse(op, p.full, topRule)
		return nil, fmt.Errorf("%s %q: %s stay as they are: %w", op, p.full, topRule, paddock.Denied)
	}
	if rule := (&call{broker: b}).obeyed(op, p); rule != "" {
		p.release()
		b.refuse(op, p.full, rule)
		return nil, fmt.Errorf("%s %q: %s: %w", op, p.full, rule, paddock.Denied)
	}
	if err := b.beforeAgent(op, p); err != nil {
		p.release()
		return nil, fmt.Errorf("%s %q: it cannot be recorded: %w", op, p.full, err)
	}
	if len(p.held) == 0 {
		return nil, nil
	}
	return p.release, nil
}

// beforeAgent reports what the agent is about to do for the host.
func (b *broker) beforeAgent(op string, p *place) error {
	switch {
	case !p.there():
		b.made(p)
		return nil
	case op == "remove":
		return b.before(ChangeRemoved, p)
	case op == "chmod" && !p.plain():
		return b.before(ChangeMode, p)
	case op == "chmod": // to what is not known here
		return b.before(ChangeContent, p)
	case op == "write":
		return b.before(ChangeContent, p)
	}
	return nil // it fails, because something is there
}

// denied is the error of a change that a rule about names refuses.
func (b *broker) denied(op string, p *place) error {
	rule, _ := b.judge(p.tree, p.full, p.dir)
	return fmt.Errorf("%s %q: protected name %s: %w", op, p.full, rule, paddock.Denied)
}

// Rename implements guest.Guard. What a command may rename, the host may rename by the agent.
func (b *broker) Rename(dir *os.File, base string, newDir *os.File, newBase string) error {
	const op = "rename"
	from, err := b.placeAt(op, dir, base)
	if err != nil {
		return err
	}
	to, err := b.placeAt(op, newDir, newBase)
	if err != nil {
		return err
	}
	switch {
	case from.tree == nil && to.tree == nil:
		return sys.RenameAt(from.dir, from.base, to.dir, to.base)
	case from.tree == nil || to.tree == nil:
		return syscall.EXDEV
	}
	b.turn.Lock()
	defer b.turn.Unlock()
	if err := b.claimFor(op, to); err != nil {
		return err
	}
	defer to.release()
	switch r := (&call{broker: b}).move(from, to, 0); {
	case errors.Is(r.err, syscall.EACCES):
		for _, p := range []*place{to, from} {
			if _, hit := b.judge(p.tree, p.full, p.dir); hit != protect.Miss {
				return b.denied(op, p)
			}
		}
		return r.err // of the kernel, or by a rule that is in the list of refusals
	case r.err != 0:
		return r.err
	}
	return nil
}

// obeyed returns the rule by which a change that the agent makes is refused, although the name alone permits it.
func (c *call) obeyed(op string, p *place) string {
	switch {
	case op == "remove" && c.unmakes(p):
		return ".git/config"
	case op == "link" && p.inGit():
		return linkInGit
	case op == "link" && len(c.waysBelow(p)) > 0:
		return ".git/modules"
	}
	return ""
}
