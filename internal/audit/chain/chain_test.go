package chain

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock/internal/audit"
)

func TestMain(m *testing.M) {
	if file := os.Getenv("PADDOCK_TEST_CHAIN"); file != "" {
		writeForever(file)
	}
	os.Exit(m.Run())
}

// keyOf gives a key that is the same in every run.
func keyOf(n byte) *Key {
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
	return &Key{private: private, public: private.Public().(ed25519.PublicKey)}
}

func event(i int) audit.Event {
	return audit.Event{
		Time: time.Unix(int64(i), 0).UTC(), Sandbox: "s1", Kind: audit.Exec, Path: fmt.Sprintf("/bin/%d", i),
		Args: []string{"x", `,"seq":9,"hash":"`, "\x1b"}, Process: audit.Process{PID: int32(i + 1)},
	}
}

// written gives a log of count events, with a head after each of those in heads,
// and closed at the end or not.
func written(t testing.TB, key *Key, count int, closed bool, heads ...int) []byte {
	t.Helper()
	var out bytes.Buffer
	c, err := NewWriter(&out, key)
	if err != nil {
		t.Fatal(err)
	}
	for i := range count {
		line, err := audit.Line(event(i))
		if err == nil {
			_, err = c.Write(line)
		}
		if err == nil && slices.Contains(heads, i) {
			err = c.Seal()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if closed {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func verify(t testing.TB, data []byte, seen *Point) Report {
	t.Helper()
	rep, err := Verify(bytes.NewReader(data), Options{Fingerprint: keyOf(1).Fingerprint(), Seen: seen})
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// split gives lines with their breaks.
func split(data []byte) [][]byte { return slices.Collect(bytes.Lines(data)) }

func join(lines ...[]byte) []byte { return bytes.Join(lines, nil) }

// rechain gives lines numbers and hashes that fit, as anybody can who has not the
// key: signatures stay what they are.
func rechain(t *testing.T, lines [][]byte) []byte {
	t.Helper()
	var last sum
	var out []byte
	for i, line := range lines {
		at := bytes.LastIndex(line, []byte(seqKey))
		if at < 0 {
			t.Fatalf("no line: %s", line)
		}
		text := strconv.AppendInt(append(bytes.Clone(line[:at]), seqKey...), int64(i+1), 10)
		last = last.follow(text)
		hash := bytes.LastIndex(line, []byte(hashKey)) + len(hashKey)
		out = append(out, text...)
		out = append(out, hashKey...)
		out = hex.AppendEncode(out, last[:])
		out = append(out, line[hash+2*len(last):]...)
	}
	return out
}

func TestALogThatNobodyTouchedIsWhole(t *testing.T) {
	data := written(t, keyOf(1), 7, true, 2)
	rep := verify(t, data, nil)
	if rep.State != Whole || rep.Lines != 11 || rep.Events != 7 || !rep.Closed || rep.Head.Seq != 11 || rep.Unsigned != 0 || rep.Partial != 0 || rep.Why != "" {
		t.Errorf("%+v", rep)
	}
	for _, line := range []uint64{1, 2, 5, 11} { // any line can be asked for
		r, ok := parse(bytes.TrimSuffix(split(data)[line-1], []byte("\n")))
		if !ok {
			t.Fatal("no line")
		}
		if rep := verify(t, data, &Point{line, r.hash.String()}); rep.State != Whole {
			t.Errorf("line %d was asked for: %+v", line, rep)
		}
		if rep := verify(t, data, &Point{line, strings.Repeat("0", 64)}); rep.State != Wrong || rep.Problem != BadHead || rep.Line != line {
			t.Errorf("another line %d was asked for: %+v", line, rep)
		}
	}
}

func TestReadersOfEventsFindTheSameEvents(t *testing.T) {
	i := 0
	for _, line := range split(written(t, keyOf(1), 3, true)) {
		var e audit.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		switch e.Kind {
		case Begin, Head:
			continue
		}
		plain, err := audit.Line(event(i))
		if err != nil {
			t.Fatal(err)
		}
		if want := event(i).Clean(); !reflect.DeepEqual(e, want) {
			t.Errorf("%+v, want %+v", e, want)
		}
		if !bytes.HasPrefix(line, bytes.TrimSuffix(plain, []byte("}\n"))) {
			t.Errorf("%s does not begin as %s", line, plain)
		}
		i++
	}
	if i != 3 {
		t.Errorf("%d events", i)
	}
}

func TestNoByteChangesUnnoticed(t *testing.T) {
	data := written(t, keyOf(1), 3, true, 1)
	for i := range data {
		for _, bit := range []byte{0x01, 0x20, 0x80} {
			changed := bytes.Clone(data)
			changed[i] ^= bit
			rep := verify(t, changed, nil)
			// The last line without its break is half a line.
			if rep.State == Whole || rep.State == Open && i != len(data)-1 {
				t.Fatalf("byte %d of %d, %q as %q: %+v", i, len(data), data[i], changed[i], rep)
			}
			if at := uint64(bytes.Count(data[:i], []byte("\n")) + 1); rep.State == Wrong && rep.Line != at {
				t.Fatalf("byte %d is of line %d, and %d was told: %+v", i, at, rep.Line, rep)
			}
		}
	}
}

func TestNoLineIsRemovedDoubledMovedOrAddedUnnoticed(t *testing.T) {
	data := written(t, keyOf(1), 6, true, 1, 3)
	lines := split(data)
	other := split(written(t, keyOf(1), 6, true, 1, 3)) // of the same key, and the same events
	last := len(lines) - 1
	try := func(name string, at int, changed ...[]byte) {
		t.Helper()
		rep := verify(t, join(changed...), nil)
		if rep.State != Wrong || rep.Line != uint64(at+1) || rep.Why == "" {
			t.Errorf("%s %d: %+v", name, at+1, rep)
		}
	}
	for i := range lines {
		if i < last {
			try("without line", i, slices.Delete(slices.Clone(lines), i, i+1)...)
		}
		try("twice line", i+1, slices.Insert(slices.Clone(lines), i+1, lines[i])...)
		try("another log's line before", max(i, 1), slices.Insert(slices.Clone(lines), i, other[i])...) // two can begin a log
		try("no line before", i, slices.Insert(slices.Clone(lines), i, []byte("{}\n"))...)
		try("an empty line before", i, slices.Insert(slices.Clone(lines), i, []byte("\n"))...)
		if i > 0 {
			try("another log's line in place of", i, slices.Replace(slices.Clone(lines), i, i+1, other[i])...)
			try("another log from line", i, slices.Concat(lines[:i], other[i:])...)
		}
		for j := i + 1; j < len(lines); j++ {
			moved := slices.Clone(lines)
			moved[i], moved[j] = moved[j], moved[i]
			try("moved line", i, moved...)
		}
	}
}

func TestACutIsToldAsACutWhereverItIs(t *testing.T) {
	data := written(t, keyOf(1), 3, true, 1)
	seen := verify(t, data, nil).Head.Point
	for i := range data {
		rep := verify(t, data[:i], nil)
		if rep.State != Open || rep.Why == "" {
			t.Fatalf("cut at %d: %+v", i, rep)
		}
		if half := bytes.LastIndexByte(data[:i], '\n') + 1; rep.Partial != i-half {
			t.Fatalf("cut at %d: %d bytes of half a line", i, rep.Partial)
		}
		if rep := verify(t, data[:i], &seen); rep.State != Wrong || rep.Problem != CutOff {
			t.Fatalf("cut at %d, and the last head is known: %+v", i, rep)
		}
		// In front nothing can be missing.
		if i > 0 {
			if rep := verify(t, data[i:], nil); rep.State != Wrong || rep.Line != 1 {
				t.Fatalf("begun at %d: %+v", i, rep)
			}
		}
	}
}

func TestHashesThatFitAreNotEnough(t *testing.T) {
	data := written(t, keyOf(1), 5, true, 1)
	lines := split(data)
	changed := slices.Clone(lines)
	changed[3] = bytes.Replace(changed[3], []byte("/bin/1"), []byte("/bin/7"), 1)
	if rep := verify(t, rechain(t, changed), nil); rep.State != Wrong || rep.Problem != BadSignature || rep.Line != 5 || rep.Head.Seq != 2 || !strings.Contains(rep.Why, "from 3 on") {
		t.Errorf("an event that was changed, with all hashes after it: %+v", rep)
	}
	if rep := verify(t, rechain(t, slices.Delete(slices.Clone(lines), 4, 5)), nil); rep.State != Wrong || rep.Problem != BadSignature || rep.Line != 8 {
		t.Errorf("a head that was removed, with all hashes after it: %+v", rep)
	}
	if rep := verify(t, rechain(t, slices.Concat(lines, lines[3:4])), nil); rep.State != Wrong || rep.Problem != BadEnd {
		t.Errorf("an event behind the closing head: %+v", rep)
	}
	unclosed := slices.Clone(lines)
	unclosed[8] = bytes.Replace(unclosed[8], []byte(`,"closed":true`), nil, 1)
	if rep := verify(t, rechain(t, unclosed), nil); rep.State != Wrong || rep.Problem != BadSignature {
		t.Errorf("a closing head that is to be none: %+v", rep)
	}
	for _, part := range []string{`"kind":"head"`, `"sandbox":""`} {
		spaced := slices.Clone(lines)
		spaced[4] = bytes.Replace(spaced[4], []byte(part), []byte(" "+part), 1)
		if rep := verify(t, rechain(t, spaced), nil); rep.State != Wrong || rep.Line != 5 {
			t.Errorf("a head in another spelling: %+v", rep)
		}
	}
	// Behind the last head anybody can write: that is said.
	open := split(written(t, keyOf(1), 5, false, 1))
	if rep := verify(t, rechain(t, slices.Concat(open, open[3:4])), nil); rep.State != Open || rep.Unsigned != 4 || !strings.Contains(rep.Why, "behind line 5 is not signed") {
		t.Errorf("lines behind the last head: %+v", rep)
	}
}

func TestAnotherKeyIsNoticed(t *testing.T) {
	if rep := verify(t, written(t, keyOf(2), 3, true), nil); rep.State != Wrong || rep.Problem != BadKey || rep.Line != 1 {
		t.Errorf("another's log: %+v", rep)
	}
	// The right key is named, and the wrong one signs.
	mixed := *keyOf(2)
	mixed.public = keyOf(1).public
	if rep := verify(t, written(t, &mixed, 3, true), nil); rep.State != Wrong || rep.Problem != BadSignature || rep.Line != 2 {
		t.Errorf("signed by another: %+v", rep)
	}
	forged := bytes.Replace(written(t, keyOf(2), 3, true), []byte(base64.StdEncoding.EncodeToString(keyOf(2).public)), []byte(base64.StdEncoding.EncodeToString(keyOf(1).public)), 1)
	if rep := verify(t, rechain(t, split(forged)), nil); rep.State != Wrong || rep.Problem != BadBegin {
		t.Errorf("a key with another's fingerprint: %+v", rep)
	}
}

func TestAFileThatIsNoLogIsRefused(t *testing.T) {
	plain, err := audit.Line(event(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(plain), "\n", "{}\n", "hello\n", "\x00\n"} {
		if rep := verify(t, []byte(text), nil); rep.State != Wrong || rep.Line != 1 {
			t.Errorf("%q: %+v", text, rep)
		}
	}
	if rep := verify(t, nil, nil); rep.State != Open || !strings.Contains(rep.Why, "nothing in it is signed") {
		t.Errorf("an empty file: %+v", rep)
	}
}

// endless is a line without an end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return copy(p, bytes.Repeat([]byte{'a'}, len(p))), nil
}

func TestALineWithoutAnEndTakesNoMoreThanTheLongest(t *testing.T) {
	var in endless
	rep, err := Verify(&in, Options{Fingerprint: keyOf(1).Fingerprint()})
	if err != nil || rep.State != Wrong || rep.Problem != BadForm || in.read > 2*MaxLine {
		t.Errorf("%+v, %v, %d bytes read", rep, err, in.read)
	}
}

func TestTheLongestEventFitsIntoALine(t *testing.T) {
	long := strings.Repeat("\x01", 1<<16)
	var out bytes.Buffer
	c, err := NewWriter(&out, keyOf(1))
	if err != nil {
		t.Fatal(err)
	}
	line, err := audit.Line(audit.Event{Path: long, Dir: long, Args: []string{long}, Network: &audit.Flow{Path: long, Reason: long}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(line); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if rep := verify(t, out.Bytes(), nil); rep.State != Whole {
		t.Errorf("%+v", rep)
	}
}

func TestHeadsStandAfterSoManyEvents(t *testing.T) {
	var out bytes.Buffer
	c, err := NewWriter(&out, keyOf(1))
	if err != nil {
		t.Fatal(err)
	}
	var many []byte
	for i := range 3*Every + 1 {
		line, err := audit.Line(event(i))
		if err != nil {
			t.Fatal(err)
		}
		many = append(many, line...)
	}
	if _, err := c.Write(many); err != nil {
		t.Fatal(err)
	}
	rep := verify(t, out.Bytes(), nil)
	if rep.State != Open || rep.Head.Seq != 3*Every+5 || rep.Unsigned != 1 || rep.Lines != 3*Every+6 {
		t.Errorf("%+v", rep)
	}
}

func TestAHeadFollowsEventsInTimeAndNotWithoutThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		c, err := NewWriter(&out, keyOf(1))
		if err != nil {
			t.Fatal(err)
		}
		l := audit.NewLines(c)
		signed := func(head, unsigned uint64) {
			t.Helper()
			synctest.Wait()
			if rep := verify(t, out.Bytes(), nil); rep.Head.Seq != head || rep.Unsigned != unsigned {
				t.Errorf("after %v: %+v", head, rep)
			}
		}
		<-time.After(10 * Within)
		signed(2, 0)
		l.Record(event(1))
		signed(2, 1)
		<-time.After(Within / 2)
		l.Record(event(2)) // does not put it off
		signed(2, 2)
		<-time.After(Within / 2)
		signed(5, 0)
		<-time.After(10 * Within)
		signed(5, 0)
		l.Record(event(3))
		<-time.After(Within)
		signed(7, 0)
		if err := errors.Join(l.Close(), c.Close()); err != nil {
			t.Fatal(err)
		}
		if rep := verify(t, out.Bytes(), nil); rep.State != Whole || rep.Events != 3 || rep.Lines != 8 {
			t.Errorf("%+v", rep)
		}
	})
}

// full is a disk that takes so many bytes.
type full struct {
	bytes.Buffer
	left int
}

func (f *full) Write(p []byte) (int, error) {
	n := min(len(p), f.left)
	f.left -= n
	f.Buffer.Write(p[:n])
	if n < len(p) {
		return n, errors.New("disk full")
	}
	return n, nil
}

func TestAfterAFailedWriteNothingIsWritten(t *testing.T) {
	line, err := audit.Line(event(1))
	if err != nil {
		t.Fatal(err)
	}
	f := &full{left: 1500}
	c, err := NewWriter(f, keyOf(1))
	for range 20 {
		if err == nil {
			_, err = c.Write(line)
		}
	}
	if err == nil {
		t.Fatal("it all went somewhere")
	}
	f.left = 1 << 20
	size := f.Len()
	if _, err := c.Write(line); err == nil {
		t.Error("a line was taken")
	}
	if err := errors.Join(c.Seal(), c.Close()); err == nil || f.Len() != size {
		t.Errorf("%v, %d bytes more", err, f.Len()-size)
	}
	if rep := verify(t, f.Bytes(), nil); rep.State != Open || rep.Head == nil || rep.Partial == 0 {
		t.Errorf("%+v", rep)
	}
}

func TestWhatIsNoLineOfAnEventIsRefused(t *testing.T) {
	for _, text := range []string{"{}\n", "{\"a\":1}", "x\n", "\n", "{\"a\":1}\n{"} {
		c, err := NewWriter(io.Discard, keyOf(1))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

// writeForever is a writer that is killed. It tells of each head.
func writeForever(file string) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		panic(err)
	}
	c, err := NewWriter(f, keyOf(1))
	if err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		line, err := audit.Line(event(i))
		if err == nil {
			_, err = c.Write(line)
		}
		if err != nil {
			panic(err)
		}
		if i%Every == Every-1 {
			fmt.Println(c.seq)
		}
	}
}

func TestWhatWasSignedOutlivesAWriterThatIsKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PADDOCK_TEST_CHAIN="+file)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var seq uint64
	for range 4 {
		if !lines.Scan() {
			t.Fatal("it ended by itself")
		}
		if seq, err = strconv.ParseUint(lines.Text(), 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rep := verify(t, data, nil)
	if rep.State != Open || rep.Head == nil || rep.Head.Seq < seq || rep.Events < 4*Every {
		t.Errorf("%+v", rep)
	}
	if rep := verify(t, data, &rep.Head.Point); rep.State != Open {
		t.Errorf("its last head is asked for: %+v", rep)
	}
}

// sample is a log that stays the same, so that what a fuzzer finds stays too.
func sample(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/whole.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func FuzzNothingButTheLogItselfIsWhole(f *testing.F) {
	data := sample(f)
	if rep := verify(f, data, nil); rep.State != Whole {
		f.Fatalf("%+v", rep)
	}
	f.Add(data)
	f.Add([]byte{})
	f.Add(data[:len(data)-1])
	f.Add(data[:len(data)/2])
	f.Add(append(bytes.Clone(data), "{}\n"...))
	for i, line := range split(data) {
		f.Add(line)
		f.Add(bytes.Replace(data, line, nil, 1))
		f.Add(append(bytes.Clone(data), line...))
		changed := bytes.Clone(data)
		changed[i*len(data)/10] ^= 4
		f.Add(changed)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		rep := verify(t, in, nil)
		if rep.State == Whole && !bytes.Equal(in, data) {
			t.Errorf("%+v", rep)
		}
		if rep.State == Wrong && (rep.Line != rep.Lines+1 || rep.Why == "" || rep.Problem == "") {
			t.Errorf("%+v", rep)
		}
		// What is signed of it is what was written.
		if rep.Head != nil && rep.Fingerprint == keyOf(1).Fingerprint() {
			signed := join(split(in)[:rep.Head.Seq]...)
			if !bytes.HasPrefix(data, signed) {
				t.Errorf("%+v of %q", rep, in)
			}
		}
	})
}

func FuzzEditsAreNoticed(f *testing.F) {
	data := sample(f)
	f.Add(uint16(0), uint16(1), []byte{})
	f.Add(uint16(700), uint16(0), []byte("x"))
	f.Add(uint16(len(data)), uint16(0), []byte("{}\n"))
	f.Fuzz(func(t *testing.T, at, remove uint16, insert []byte) {
		from := min(int(at), len(data))
		to := min(from+int(remove), len(data))
		in := slices.Concat(data[:from], insert, data[to:])
		if rep := verify(t, in, nil); (rep.State == Whole) != bytes.Equal(in, data) {
			t.Errorf("%+v of %q", rep, in)
		}
	})
}

func FuzzPoint(f *testing.F) {
	f.Add("1:" + strings.Repeat("0a", 32))
	f.Add("0:")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePoint(text)
		if err != nil {
			return
		}
		if again, err := ParsePoint(p.String()); err != nil || again != p {
			t.Errorf("%q: %v, %v, %v", text, p, again, err)
		}
	})
}

func some(b *testing.B) audit.Event {
	b.Helper()
	return audit.Event{Kind: audit.Open, Path: "/usr/lib/python3/dist-packages/six.py", Flags: "read", Process: audit.Process{PID: 9, Parent: 1, UID: 1000, Name: "python3"}}
}

// BenchmarkRecord is what an event costs whoever tells it: compare with that of
// package audit, which has no chain.
func BenchmarkRecord(b *testing.B) {
	c, err := NewWriter(io.Discard, keyOf(1))
	if err != nil {
		b.Fatal(err)
	}
	l := audit.NewLines(c)
	e := some(b)
	b.ReportAllocs()
	for b.Loop() {
		l.Record(e)
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkWrite is what the chain adds to a line, heads included.
func BenchmarkWrite(b *testing.B) {
	c, err := NewWriter(io.Discard, keyOf(1))
	if err != nil {
		b.Fatal(err)
	}
	line, err := audit.Line(some(b))
	if err != nil {
		b.Fatal(err)
	}
	many := bytes.Repeat(line, Every)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(many); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/Every, "ns/line")
}

func BenchmarkVerify(b *testing.B) {
	data := written(b, keyOf(1), 10000, true)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if rep, err := Verify(bytes.NewReader(data), Options{Fingerprint: keyOf(1).Fingerprint()}); err != nil || rep.State != Whole {
			b.Fatal(rep, err)
		}
	}
}
