package step

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// A telling is a step whose watcher keeps what it is told.
type telling struct {
	t    *testing.T
	dir  string
	r    *Recorder
	told []Watched
}

func tell(t *testing.T, o Options, files map[string]string) *telling {
	t.Helper()
	x := &telling{t: t, dir: workspace(t)}
	o.Watch = &keeping{change: func(c Watched) error {
		x.told = append(x.told, c)
		return nil
	}}
	plant(t, x.dir, files)
	x.r = begin(t, journal(t, o), x.dir)
	return x
}

func (x *telling) at(p string) string { return filepath.Join(x.dir, p) }

func (x *telling) move(from, to string) {
	x.t.Helper()
	must(x.t, os.Rename(x.at(from), x.at(to)))
	must(x.t, x.r.Move(0, from, 0, to, Free))
}

func (x *telling) link(from, to string) {
	x.t.Helper()
	must(x.t, os.Link(x.at(from), x.at(to)))
	must(x.t, x.r.Link(0, from, 0, to))
}

func (x *telling) mkdir(p string) {
	x.t.Helper()
	must(x.t, os.Mkdir(x.at(p), 0o700))
	must(x.t, x.r.Create(0, p))
}

func (x *telling) make(p string) {
	x.t.Helper()
	must(x.t, os.WriteFile(x.at(p), nil, 0o600))
	must(x.t, x.r.Create(0, p))
}

func (x *telling) remove(p string) {
	x.t.Helper()
	must(x.t, x.r.Remove(0, p))
	must(x.t, os.Remove(x.at(p)))
}

// want compares what was told since the last call, without the numbers of files.
func (x *telling) want(what string, want ...Watched) {
	x.t.Helper()
	for i := range x.told {
		x.told[i].Inode = [2]uint64{}
	}
	if !slices.Equal(x.told, want) {
		x.t.Errorf("%s: told %+v\nwant %+v", what, x.told, want)
	}
	x.told = nil
}

const workflow = ".github/workflows/ci.yml"

func TestAWatcherIsToldOfEachNameOfAFile(t *testing.T) {
	x := tell(t, Options{}, map[string]string{workflow: "one"})
	x.link(workflow, "x")
	x.want("a link", Watched{Path: "x", From: workflow, Was: workflow, Verb: Created, Links: 2, Done: true})
	must(t, x.r.Mode(0, "x"))
	x.want("a mode", Watched{Path: "x", Was: workflow, Old: true, Verb: Edited, Links: 2})
	must(t, x.r.Write(0, workflow))
	x.want("its own name", Watched{Path: workflow, Verb: Edited, Links: 2})
	x.remove("x")
	must(t, x.r.Write(0, workflow))
	must(t, x.r.Write(0, workflow))
	x.want("once more", []Watched(nil)...)

	x.make("made")
	x.link("made", "y")
	x.told = nil
	must(t, x.r.Write(0, "y"))
	x.want("a file of the step's with several names", Watched{Path: "y", Verb: Edited, Links: 2})
}

func TestAWatcherIsToldWhereAFileWas(t *testing.T) {
	x := tell(t, Options{}, map[string]string{workflow: "one", "sub/" + workflow: "two", "sub/a": "3"})
	x.move(workflow, "y")
	x.told = nil
	x.remove("y")
	x.want("a removal", Watched{Path: "y", Was: workflow, Old: true, Verb: Removed})

	x.mkdir("d")
	x.move("sub", "d/sub")
	x.told = nil
	must(t, x.r.Write(0, "d/sub/"+workflow))
	x.want("below a moved directory", Watched{Path: "d/sub/" + workflow, Was: "sub/" + workflow, Old: true, Verb: Edited})
	x.make("d/sub/new")
	x.want("made in a moved directory", Watched{Path: "d/sub/new", Was: "sub/new", Old: true, Verb: Created, Done: true})
	x.remove("d/sub/a")
	x.told = nil
	x.make("d/sub/a")
	x.want("made again", Watched{Path: "d/sub/a", Was: "sub/a", Old: true, Verb: Created, Done: true})
	x.make("d/other")
	x.want("made beside it", Watched{Path: "d/other", Verb: Created, Done: true})
	x.move("d/sub", "sub")
	x.want("moved back", Watched{Path: "sub", From: "d/sub", Was: "sub", Old: true, Verb: Moved, Done: true})
}

func TestAWatcherIsToldThatADirectoryTakesThePlaceOfOne(t *testing.T) {
	x := tell(t, Options{}, map[string]string{"sub/" + workflow: "one"})
	x.move("sub", "old")
	x.mkdir("sub")
	x.mkdir("sub/.github")
	x.mkdir("sub/.github/workflows")
	x.told = nil
	x.make("sub/" + workflow)
	x.want("made in it", Watched{Path: "sub/" + workflow, Old: true, Verb: Created, Done: true})
}

func TestAWatcherIsToldThatADirectoryChangesPlacesWithOne(t *testing.T) {
	x := tell(t, Options{}, map[string]string{"a/sub/" + workflow: "one", "b/x": "1"})
	x.mkdir("e")
	x.exchange("a", "e")
	x.move("e/sub", "a/sub")
	x.told = nil
	must(t, x.r.Write(0, "a/sub/"+workflow))
	x.want("back in its place", Watched{Path: "a/sub/" + workflow, Old: true, Verb: Edited})
	x.move("a/sub", "e/sub")
	must(t, x.r.Remove(0, "a"))
	must(t, os.Remove(x.at("a")))
	x.mkdir("a")
	x.told = nil
	x.make("a/new")
	x.want("made again", Watched{Path: "a/new", Old: true, Verb: Created, Done: true})

	x.mkdir("f")
	x.mkdir("g")
	x.exchange("f", "g")
	x.told = nil
	x.make("f/new")
	x.want("both are the step's", Watched{Path: "f/new", Verb: Created, Done: true})
	must(t, x.r.Move(0, "f", 0, "b", Exchange))
	must(t, x.r.Failed(0, "b"))
	x.told = nil
	x.make("f/other")
	x.want("it failed", Watched{Path: "f/other", Verb: Created, Done: true})
	x.exchange("f", "b") // and one that stands for an original goes on
	x.exchange("b", "g")
	x.told = nil
	x.make("b/new")
	x.want("twice", Watched{Path: "b/new", Old: true, Verb: Created, Done: true})
}

func (x *telling) exchange(from, to string) {
	x.t.Helper()
	must(x.t, x.r.Move(0, from, 0, to, Exchange))
	must(x.t, unix.Renameat2(unix.AT_FDCWD, x.at(from), unix.AT_FDCWD, x.at(to), unix.RENAME_EXCHANGE))
}

func TestAWatcherIsToldOfWhatTheRecordLost(t *testing.T) {
	x := tell(t, Options{Changes: 10}, map[string]string{"sub/" + workflow: "one", "sub/a": "1"})
	x.move("sub", "sub2")
	for i := range 60 {
		x.make(fmt.Sprint("f", i))
	}
	x.move("sub2", "sub")
	x.told = nil
	must(t, x.r.Write(0, "sub/"+workflow))
	must(t, x.r.Remove(0, "sub/a"))
	x.want("unknown", Watched{Path: "sub/" + workflow, Old: true, Verb: Edited}, Watched{Path: "sub/a", Old: true, Verb: Removed})
}

func TestWhatCannotBeNamedIsToldAndNoted(t *testing.T) {
	w := &watching{refuse: ""}
	j := journal(t, Options{Watch: w})
	r := begin(t, j, workspace(t))
	if err := r.Unseen("a name is too long", false); !Refused(err) {
		t.Errorf("the watcher refuses it, and it is %v", err)
	}
	must(t, r.Unseen("a name is too long", true))
	if rec := end(t, r); len(rec.Left) != 1 || rec.Left[0].Why != "a name is too long" {
		t.Errorf("the record has %+v", rec.Left)
	}
	if want := []string{"unseen ", "unseen "}; !slices.Equal(w.told, want) {
		t.Errorf("told %q", w.told)
	}
}
