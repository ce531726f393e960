package shell

import (
	"math"
	"slices"
	"strconv"
)

// A resource is one that ulimit knows.
type resource struct {
	flag  byte
	text  string
	unit  string // as the list shows it
	scale int64
}

func resources() []resource {
	return []resource{
		{'R', "real-time non-blocking time", "microseconds, ", 1},
		{'c', "core file size", "blocks, ", 512},
		{'d', "data seg size", "kbytes, ", 1024},
		{'e', "scheduling priority", "", 1},
		{'f', "file size", "blocks, ", 1024},
		{'i', "pending signals", "", 1},
		{'l', "max locked memory", "kbytes, ", 1024},
		{'m', "max memory size", "kbytes, ", 1024},
		{'n', "open files", "", 1},
		{'p', "pipe size", "512 bytes, ", 512},
		{'q', "POSIX message queues", "bytes, ", 1},
		{'r', "real-time priority", "", 1},
		{'s', "stack size", "kbytes, ", 1024},
		{'t', "cpu time", "seconds, ", 1},
		{'u', "max user processes", "", 1},
		{'v', "virtual memory", "kbytes, ", 1024},
		{'x', "file locks", "", 1},
	}
}

// unlimited is the greatest value of a resource.
const unlimited = int64(-1)

// A ulimit is what a resource is limited to, in the unit of the list.
type ulimit struct{ soft, hard int64 }

// limitOf gives what a resource is limited to.
func (s *Shell) limitOf(flag byte) ulimit {
	if v, ok := s.ulimits[flag]; ok {
		return v
	}
	switch flag {
	case 'c':
		return ulimit{0, unlimited}
	case 'e', 'r', 'i':
		return ulimit{0, 0}
	case 'n':
		n := int64(s.t.K.MaxDescriptors())
		return ulimit{n, n}
	case 'p':
		return ulimit{8, 8}
	case 's':
		return ulimit{8192, unlimited}
	case 'u':
		n := int64(s.t.K.MaxTasks())
		return ulimit{n, n}
	case 'q':
		return ulimit{819200, 819200}
	}
	return ulimit{unlimited, unlimited}
}

// A wish is one option of ulimit with what follows it.
type wish struct {
	resource *resource
	value    string
	given    bool
}

const ulimitUsage = "ulimit: usage: ulimit [-SHabcdefiklmnpqrstuvxPRT] [limit]"

func biUlimit(s *Shell, args []string) int {
	var all, hard, soft bool
	var wishes []wish
	list := resources()
	o := getopt{s: s, args: args, spec: "HSab"}
	for i := range list {
		o.spec += string(list[i].flag)
	}
	for c := o.next(); c != 0; c = o.next() {
		switch c {
		case '?':
			return o.usage(ulimitUsage)
		case 'a':
			all = true
		case 'H':
			hard = true
		case 'S':
			soft = true
		default:
			k := slices.IndexFunc(list, func(r resource) bool { return r.flag == c })
			if k < 0 {
				continue
			}
			w := wish{resource: &list[k]}
			if rest := o.rest(); o.at == 0 && len(rest) > 0 && (rest[0] == "" || rest[0][0] != '-') {
				w.value, w.given = rest[0], true
				o.i++
			} else if o.at > 0 {
				w.value, w.given = args[o.i][o.at:], true
				o.i, o.at = o.i+1, 0
			}
			wishes = append(wishes, w)
		}
	}
	show := func(r *resource, brief bool) {
		l := s.limitOf(r.flag)
		n := l.soft
		if hard && !soft {
			n = l.hard
		}
		if brief {
			s.print(limitText(n) + "\n")
			return
		}
		s.printf("%-20s %20s %s\n", r.text, "("+r.unit+"-"+string(r.flag)+")", limitText(n))
	}
	if all {
		for i := range list {
			show(&list[i], false)
		}
		return 0
	}
	if len(wishes) == 0 {
		k := slices.IndexFunc(list, func(r resource) bool { return r.flag == 'f' })
		w := wish{resource: &list[k]}
		if rest := o.rest(); len(rest) > 0 {
			w.value, w.given = rest[0], true
		}
		wishes = append(wishes, w)
	}
	if rest := o.rest(); len(wishes) == 1 && !wishes[0].given && len(rest) > 0 {
		wishes[0].value, wishes[0].given = rest[0], true // after "--"
	}
	for i := range wishes {
		switch w := &wishes[i]; {
		case !w.given:
			show(w.resource, len(wishes) == 1)
		default:
			if st := s.setLimit(w.resource, w.value, hard, soft); st != 0 {
				return st
			}
		}
	}
	return 0
}

// setLimit changes what a resource is limited to, for the shell and what it
// starts. Open files, the size of files and the number of processes are held to
// it; the memory and time of the sandbox are bounded whatever is said here.
func (s *Shell) setLimit(r *resource, text string, hard, soft bool) int {
	old := s.limitOf(r.flag)
	var value int64
	switch text {
	case "unlimited":
		value = unlimited
	case "hard":
		value = old.hard
	case "soft":
		value = old.soft
	default:
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			s.Warn("ulimit: %s: invalid number", text)
			return 1
		}
		if n > math.MaxUint64/uint64(r.scale) {
			s.Warn("ulimit: %s: limit out of range", text)
			return 1
		}
		value = int64(n)
	}
	above := func(a, b int64) bool { return b != unlimited && (a == unlimited || a > b) }
	if !hard && !soft {
		hard, soft = true, true
	}
	now := old
	if soft {
		now.soft = value
	}
	if hard {
		now.hard = value
	}
	switch {
	case above(now.hard, old.hard):
		s.Warn("ulimit: %s: cannot modify limit: Operation not permitted", r.text)
		return 1
	case above(now.soft, now.hard):
		s.Warn("ulimit: %s: cannot modify limit: Invalid argument", r.text)
		return 1
	}
	m := map[byte]ulimit{}
	for k, v := range s.ulimits {
		m[k] = v
	}
	m[r.flag] = now
	s.ulimits = m
	bytes := now.soft
	switch {
	case bytes > math.MaxInt64/r.scale:
		bytes = unlimited
	case bytes > 0:
		bytes *= r.scale
	}
	switch r.flag {
	case 'n':
		s.t.LimitFiles(bytes)
	case 'f':
		s.t.LimitFileSize(bytes)
	case 'u':
		s.t.LimitTasks(bytes)
	}
	return 0
}

func limitText(n int64) string {
	if n < 0 {
		return "unlimited"
	}
	return strconv.FormatInt(n, 10)
}
