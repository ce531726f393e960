package file

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

var ddSpec = &command.Spec{Name: "dd", Synopsis: "[OPERAND]...\n  or:  dd OPTION", About: "Copy a file, converting and formatting according to the operands."}

// A duplicator is a run of dd.
type duplicator struct {
	t                             *kernel.Task
	in, out                       string
	ibs, obs, cbs                 int64
	skip, seek, count             int64 // count is -1 for all
	skipBytes, seekBytes, inBytes bool
	conv                          map[string]bool
	full, noXfer, quiet           bool
	table                         *[256]byte

	src, dst           *kernel.Desc
	inFull, inPart     int64
	outFull, outPart   int64
	truncated, written int64
	hold               []byte // what waits for a whole block
	column             int64  // of conv=block and unblock
	spaces             int64
	odd                []byte // of conv=swab
	begun              time.Time
	status             int
}

func runDd(t *kernel.Task) int {
	a, status, ok := ddSpec.Parse(t)
	if !ok {
		return status
	}
	d := &duplicator{t: t, ibs: 512, obs: 512, count: -1, conv: map[string]bool{}, begun: time.Now()}
	for _, o := range a.Operands {
		if status, ok := d.operand(o); !ok {
			return status
		}
	}
	if st := d.check(); st != 0 {
		return st
	}
	return d.run()
}

// bytes reads a number with factors: "2x512", "4k". inBytes is that it ended
// with B.
func (d *duplicator) bytes(s string) (n int64, inBytes, ok bool) {
	total := int64(1)
	for i, part := range strings.Split(s, "x") {
		inBytes = strings.HasSuffix(part, "B") && len(part) > 1
		if inBytes && part[len(part)-2] >= '0' && part[len(part)-2] <= '9' {
			part = part[:len(part)-1]
		}
		v, err := command.ParseInt(part, "bcwBKkMGTPEZY0", 0, 1<<62)
		if err != nil {
			return 0, false, false
		}
		if i > 0 && v != 0 && total > (1<<62)/v {
			return 0, false, false
		}
		total *= v
	}
	return total, inBytes, true
}

func (d *duplicator) operand(o string) (int, bool) {
	t := d.t
	key, v, both := strings.Cut(o, "=")
	if !both {
		return ddSpec.Usage(t, "unrecognized operand %s", command.Quote(o)), false
	}
	var into *int64
	switch key {
	case "if":
		d.in = v
		return 0, true
	case "of":
		d.out = v
		return 0, true
	case "conv":
		return d.words(v, "conversion", "ascii ebcdic ibm block unblock lcase ucase swab noerror nocreat excl notrunc sync fdatasync fsync sparse", "")
	case "iflag":
		return d.words(v, "input flag", "append binary cio direct directory dsync noatime nocache noctty nofollow nolinks nonblock sync text fullblock count_bytes skip_bytes", "i:")
	case "oflag":
		return d.words(v, "output flag", "append binary cio direct directory dsync noatime nocache noctty nofollow nolinks nonblock sync text seek_bytes", "o:")
	case "status":
		switch v {
		case "none":
			d.quiet = true
		case "noxfer":
			d.noXfer = true
		case "progress":
		default:
			return ddSpec.Usage(t, "invalid status level: %s", command.Quote(v)), false
		}
		return 0, true
	case "ibs":
		into = &d.ibs
	case "obs":
		into = &d.obs
	case "bs":
		into = &d.ibs
	case "cbs":
		into = &d.cbs
	case "skip", "iseek":
		into = &d.skip
	case "seek", "oseek":
		into = &d.seek
	case "count":
		into = &d.count
	default:
		return ddSpec.Usage(t, "unrecognized operand %s", command.Quote(o)), false
	}
	n, inBytes, ok := d.bytes(v)
	if !ok || n == 0 && (key == "bs" || key == "ibs" || key == "obs" || key == "cbs") {
		t.Errorf("invalid number: %s", command.Quote(v))
		return 1, false
	}
	*into = n
	switch key {
	case "bs":
		d.obs = n
		d.conv["bs"] = true
	case "skip", "iseek":
		d.skipBytes = inBytes
	case "seek", "oseek":
		d.seekBytes = inBytes
	case "count":
		d.inBytes = inBytes
	}
	return 0, true
}

func (d *duplicator) words(v, what, known, prefix string) (int, bool) {
	for word := range strings.SplitSeq(v, ",") {
		found := false
		for k := range strings.FieldsSeq(known) {
			found = found || k == word
		}
		if !found {
			return ddSpec.Usage(d.t, "invalid %s: %s", what, command.Quote(word)), false
		}
		d.conv[prefix+word] = true
	}
	return 0, true
}

func (d *duplicator) check() int {
	t := d.t
	several := func(list ...string) bool {
		n := 0
		for _, x := range list {
			if d.conv[x] {
				n++
			}
		}
		return n > 1
	}
	switch {
	case several("ascii", "ebcdic", "ibm"):
		t.Errorf("cannot combine any two of {ascii,ebcdic,ibm}")
		return 1
	case several("block", "unblock"):
		t.Errorf("cannot combine block and unblock")
		return 1
	case several("lcase", "ucase"):
		t.Errorf("cannot combine lcase and ucase")
		return 1
	case several("excl", "nocreat"):
		t.Errorf("cannot combine excl and nocreat")
		return 1
	case d.conv["ascii"] || d.conv["ebcdic"] || d.conv["ibm"]:
		t.Errorf("conversion between ASCII and EBCDIC is not supported")
		return 1
	}
	if d.ibs > 64<<20 || d.obs > 64<<20 {
		t.Errorf("memory exhausted by input buffer of size %d bytes", max(d.ibs, d.obs))
		return 1
	}
	d.full = d.conv["i:fullblock"]
	d.inBytes = d.inBytes || d.conv["i:count_bytes"]
	d.skipBytes = d.skipBytes || d.conv["i:skip_bytes"]
	d.seekBytes = d.seekBytes || d.conv["o:seek_bytes"]
	if d.cbs == 0 {
		delete(d.conv, "block")
		delete(d.conv, "unblock")
	}
	if d.conv["lcase"] || d.conv["ucase"] {
		d.table = new([256]byte)
		for i := range d.table {
			c := byte(i)
			switch {
			case d.conv["lcase"] && c >= 'A' && c <= 'Z':
				c += 32
			case d.conv["ucase"] && c >= 'a' && c <= 'z':
				c -= 32
			}
			d.table[i] = c
		}
	}
	return 0
}

func (d *duplicator) open() int {
	t := d.t
	d.src, d.dst = t.FD(0), t.FD(1)
	if d.in != "" {
		f, err := t.Open(d.in, linux.O_RDONLY, 0)
		if err != nil {
			t.Errorf("failed to open %s: %s", command.QuoteAlways(d.in), reason(err))
			return 1
		}
		d.src = f
	}
	if d.src == nil {
		t.Errorf("failed to open 'standard input': %s", reason(linux.EBADF))
		return 1
	}
	d.src.Hold()
	if d.out != "" {
		flags := linux.O_WRONLY
		if !d.conv["nocreat"] {
			flags |= linux.O_CREAT
		}
		if d.conv["excl"] {
			flags |= linux.O_EXCL
		}
		if !d.conv["notrunc"] && d.seek == 0 {
			flags |= linux.O_TRUNC
		}
		if d.conv["o:append"] {
			flags |= linux.O_APPEND
		}
		f, err := t.Open(d.out, flags, 0o666)
		if err != nil {
			t.Errorf("failed to open %s: %s", command.QuoteAlways(d.out), reason(err))
			d.src.Drop()
			d.src = nil
			return 1
		}
		d.dst = f
	}
	if d.dst == nil {
		t.Errorf("failed to open 'standard output': %s", reason(linux.EBADF))
		d.src.Drop()
		d.src = nil
		return 1
	}
	d.dst.Hold()
	return 0
}

func (d *duplicator) run() int {
	if st := d.open(); st != 0 {
		return st
	}
	defer d.src.Drop()
	defer d.dst.Drop()
	ok := d.position()
	if ok {
		d.copy()
	}
	d.report()
	return d.status
}

// position skips the input and seeks the output.
func (d *duplicator) position() bool {
	t := d.t
	if skip := d.skip; skip > 0 {
		if !d.skipBytes {
			skip *= d.ibs
		}
		s, ok := d.src.File.(kernel.Seeker)
		moved := false
		if ok {
			if i, err := d.src.File.Info(); err == nil && i.IsRegular() {
				at, _ := s.Seek(0, io.SeekCurrent) // a regular file has an offset
				if at+skip > i.Size {
					t.Errorf("%s: cannot skip to specified offset", command.QuoteFile(d.name(d.in, "standard input")))
				}
				_, err = s.Seek(skip, io.SeekCurrent)
				moved = err == nil
			}
		}
		if !moved {
			buf := make([]byte, 64<<10)
			for skip > 0 {
				n, err := d.src.File.Read(t, buf[:min(skip, int64(len(buf)))])
				t.Step(n>>6 + 1)
				if skip -= int64(n); err != nil {
					if skip > 0 {
						t.Errorf("%s: cannot skip to specified offset", command.QuoteFile(d.name(d.in, "standard input")))
					}
					break
				}
			}
		}
	}
	if seek := d.seek; seek > 0 {
		if !d.seekBytes {
			seek *= d.obs
		}
		if f, ok := d.dst.VFS(); ok {
			if d.out != "" && !d.conv["notrunc"] {
				if err := f.Truncate(seek); err != nil {
					t.Errorf("failed to truncate to %d bytes in output file %s: %s", seek, command.QuoteAlways(d.out), reason(err))
					d.status = 1
					return false
				}
			}
			if _, err := f.Seek(seek, io.SeekCurrent); err != nil {
				t.Errorf("%s: cannot seek: %s", command.QuoteAlways(d.name(d.out, "standard output")), reason(err))
				d.status = 1
				return false
			}
		} else {
			zero := make([]byte, 64<<10)
			for seek > 0 {
				n := min(seek, int64(len(zero)))
				if _, err := d.dst.File.Write(t, zero[:n]); err != nil {
					d.status = 1
					return false
				}
				seek -= n
			}
		}
	}
	return true
}

func (d *duplicator) name(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func (d *duplicator) copy() {
	t := d.t
	t.Grow(int(d.ibs + d.obs))
	buf := make([]byte, d.ibs)
	left := d.count
	direct := d.conv["bs"] && !d.conv["block"] && !d.conv["unblock"] && d.table == nil && !d.conv["swab"] && !d.conv["sync"]
	for left != 0 {
		want := int64(len(buf))
		if d.inBytes && left > 0 {
			want = min(want, left)
		}
		n, err := d.read(buf[:want])
		if n == 0 && (err == nil || err == io.EOF) {
			break
		}
		if err != nil && err != io.EOF {
			t.Errorf("error reading %s: %s", command.QuoteAlways(d.name(d.in, "standard input")), reason(err))
			d.status = 1
			if !d.conv["noerror"] || n == 0 {
				break
			}
		}
		if int64(n) == d.ibs {
			d.inFull++
		} else {
			d.inPart++
		}
		switch {
		case d.inBytes && left > 0:
			left -= int64(n)
		case left > 0:
			left--
		}
		b := buf[:n]
		if d.conv["sync"] && int64(n) < d.ibs {
			fill := byte(0)
			if d.conv["block"] || d.conv["unblock"] {
				fill = ' '
			}
			for i := n; i < len(buf); i++ {
				buf[i] = fill
			}
			b = buf
		}
		if direct {
			if !d.write(b) {
				return
			}
			continue
		}
		if !d.convert(b) {
			return
		}
	}
	d.finish()
}

func (d *duplicator) read(b []byte) (int, error) {
	n, err := d.src.File.Read(d.t, b)
	d.t.Step(n>>6 + 1)
	for d.full && err == nil && n < len(b) {
		var k int
		k, err = d.src.File.Read(d.t, b[n:])
		d.t.Step(k>>6 + 1)
		n += k
	}
	return n, err
}

// convert changes what was read and passes it on.
func (d *duplicator) convert(b []byte) bool {
	if d.table != nil {
		for i, c := range b {
			b[i] = d.table[c]
		}
	}
	if d.conv["swab"] {
		b = append(d.odd, b...)
		d.odd = nil
		if len(b)%2 == 1 {
			d.odd = append(d.odd, b[len(b)-1])
			b = b[:len(b)-1]
		}
		for i := 0; i+1 < len(b); i += 2 {
			b[i], b[i+1] = b[i+1], b[i]
		}
	}
	switch {
	case d.conv["block"]:
		return d.block(b)
	case d.conv["unblock"]:
		return d.unblock(b)
	}
	return d.put(b)
}

func (d *duplicator) block(b []byte) bool {
	var out []byte
	for _, c := range b {
		if c == '\n' {
			if !d.put(out) || !d.pad(d.cbs-d.column) {
				return false
			}
			out, d.column = out[:0], 0
			continue
		}
		if d.column == d.cbs {
			d.truncated++
		} else if d.column < d.cbs {
			out = append(out, c)
		}
		d.column++
	}
	return d.put(out)
}

func (d *duplicator) unblock(b []byte) bool {
	var out []byte
	for _, c := range b {
		if d.column >= d.cbs {
			d.column, d.spaces = 0, 0
			out = append(out, '\n')
		}
		d.column++
		if c == ' ' {
			d.spaces++
			continue
		}
		if d.spaces > 0 {
			if !d.put(out) || !d.pad(d.spaces) {
				return false
			}
			out, d.spaces = out[:0], 0
		}
		out = append(out, c)
	}
	return d.put(out)
}

// pad puts n spaces, a piece at a time: a script chooses how many.
func (d *duplicator) pad(n int64) bool {
	piece := bytes.Repeat([]byte{' '}, int(max(0, min(n, 32<<10))))
	for ; n > 0; n -= int64(len(piece)) {
		d.t.Step(1)
		if !d.put(piece[:min(n, int64(len(piece)))]) {
			return false
		}
	}
	return true
}

// put collects whole blocks.
func (d *duplicator) put(b []byte) bool {
	for len(b) > 0 {
		if len(d.hold) == 0 && int64(len(b)) >= d.obs {
			if !d.write(b[:d.obs]) {
				return false
			}
			b = b[d.obs:]
			continue
		}
		n := min(int64(len(b)), d.obs-int64(len(d.hold)))
		d.hold = append(d.hold, b[:n]...)
		b = b[n:]
		if int64(len(d.hold)) == d.obs {
			if !d.write(d.hold) {
				return false
			}
			d.hold = d.hold[:0]
		}
	}
	return true
}

func (d *duplicator) finish() {
	if len(d.odd) > 0 && !d.put(d.odd) {
		return
	}
	if d.conv["block"] && d.column > 0 {
		if !d.pad(d.cbs - d.column) {
			return
		}
	}
	if d.conv["unblock"] && d.column > 0 && !d.put([]byte{'\n'}) {
		return
	}
	if len(d.hold) > 0 {
		d.write(d.hold)
	}
}

func (d *duplicator) write(b []byte) bool {
	if d.conv["sparse"] {
		if f, ok := d.dst.VFS(); ok && allZero(b) {
			at, err := f.Seek(int64(len(b)), io.SeekCurrent)
			if err == nil {
				if i, ierr := f.Info(); ierr == nil && i.Size < at {
					err = f.Truncate(at)
				}
			}
			if err == nil {
				d.wrote(len(b))
				return true
			}
		}
	}
	n, err := d.dst.File.Write(d.t, b)
	d.t.Step(n>>6 + 1)
	if err != nil {
		if err == linux.EPIPE {
			d.t.Signal(linux.SIGPIPE)
			d.t.Check()
		}
		d.written += int64(max(n, 0))
		d.t.Errorf("error writing %s: %s", command.QuoteAlways(d.name(d.out, "standard output")), reason(err))
		d.status = 1
		return false
	}
	d.wrote(len(b))
	return true
}

func (d *duplicator) wrote(n int) {
	d.written += int64(n)
	if int64(n) == d.obs {
		d.outFull++
	} else {
		d.outPart++
	}
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

func (d *duplicator) report() {
	if d.quiet {
		return
	}
	s := fmt.Sprintf("%d+%d records in\n%d+%d records out\n", d.inFull, d.inPart, d.outFull, d.outPart)
	if d.truncated > 0 {
		noun := "records"
		if d.truncated == 1 {
			noun = "record"
		}
		s += fmt.Sprintf("%d truncated %s\n", d.truncated, noun)
	}
	if !d.noXfer {
		noun := "bytes"
		if d.written == 1 {
			noun = "byte"
		}
		s += fmt.Sprintf("%d %s", d.written, noun)
		si, iec := spaced(d.written, 1000, "B"), spaced(d.written, 1024, "iB")
		switch {
		case d.written >= 1024:
			s += " (" + si + ", " + iec + ")"
		case d.written >= 1000:
			s += " (" + si + ")"
		}
		took := max(time.Since(d.begun).Seconds(), 1e-9)
		s += fmt.Sprintf(" copied, %s s, %s/s\n", shortest(took), spaced(int64(float64(d.written)/took), 1000, "B"))
	}
	_ = d.t.Flush() // the end of the program tells of it
	_, _ = d.t.Write(2, []byte(s))
}

func shortest(f float64) string {
	return fmt.Sprintf("%g", roundTo(f))
}

// roundTo keeps six digits.
func roundTo(f float64) float64 {
	var v float64
	if _, err := fmt.Sscan(fmt.Sprintf("%.6g", f), &v); err != nil {
		return f
	}
	return v
}

// spaced writes an amount as "1.2 MB".
func spaced(n, base int64, unit string) string {
	if n < base {
		return fmt.Sprintf("%d B", n)
	}
	letters := "kMGTPE"
	if base == 1024 {
		letters = "KMGTPE"
	}
	f := float64(n)
	i := -1
	for f >= float64(base) && i+1 < len(letters) {
		f /= float64(base)
		i++
	}
	if f < 9.95 {
		return fmt.Sprintf("%.1f %c%s", f, letters[i], unit)
	}
	return fmt.Sprintf("%.0f %c%s", f, letters[i], unit)
}
