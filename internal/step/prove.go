package step

// A shown says what is known of a directory of the host while a layer over it is looked at.
type shown struct {
	below  bool // there is one on the host
	opaque bool // what is in that one is gone unless it is in the layer
	sure   bool // it is the directory that the command saw at this path
	still  bool // and no name came to it or went from it since the command began
}

// A missed is a change whose path had a file when the command ran, unless the command moved it there.
type missed struct {
	index  int    // of the change
	origin string // handle of the file of the host that the layer has a copy of; empty if it is not known
}

// into returns what is known of a directory in one of which at is known. up is what the layer has in its place, if
// anything, and base what the host has. A change of a name in a directory changes its time, as its own move does, so a
// directory with an old time is where it was, if the one that it is in is. For others the kernel tells of which directory
// the layer has a copy.
func (p *proposing) into(root int, dir string, at shown, up *laid, base *State) shown {
	in := shown{below: base.Kind == Dir}
	if up != nil {
		in.opaque = at.opaque || up.opaque
	}
	switch {
	case !in.below:
		in.sure = up != nil && !up.copied
		in.still = in.sure
	case at.sure && p.r.forged(base):
		in.sure, in.still = true, true
	case p.known.same(key{root, dir}, base):
		in.sure = true
	case up != nil && up.origin != "":
		handle, err := p.r.trees[root].handle(dir)
		in.sure = err == nil && handle == up.origin
		in.still = in.sure && p.r.forged(base)
	}
	return in
}

// proven reports whether the base of a change is what the command saw at its path. It is asked after the contents of the
// base are kept, because it may change while they are.
func (p *proposing) proven(c *Change, at shown, up *laid) (bool, error) {
	a := &c.After
	now, err := p.r.trees[c.Root].stat(string(c.Path))
	if err != nil {
		return false, err
	}
	switch {
	case now.Kind != a.Kind:
		return false, nil
	case a.Exists():
		return at.sure && p.r.forged(&now) && sameFile(&now, a) && now.Change == a.Change && now.Mode == a.Mode, nil
	case at.still, at.sure && p.known.wasAbsent(key{c.Root, string(c.Path)}):
		return true, nil
	case !at.sure && at.below:
		return false, nil
	}
	if _, was := p.known.find(key{c.Root, string(c.Path)}); was != "" {
		return false, nil // a copy of what was there was made
	}
	if up != nil && up.copied {
		if up.origin == "" || c.Before.Kind == Dir { // a directory that the command did not make cannot be moved by it
			return false, nil
		}
		p.missed = append(p.missed, missed{len(p.x.rec.Changes), up.origin})
	}
	return true, nil
}

// explain looks whether files whose paths are empty on the host came there because the command moved them. Those of which
// the host has no other name any more that the command changed were removed there while it ran.
func (p *proposing) explain() {
	if len(p.missed) == 0 {
		return
	}
	from := map[string]bool{}
	for i := range p.x.rec.Changes {
		c := &p.x.rec.Changes[i]
		if !c.After.Exists() || c.After.Kind == Dir || c.Why != "" {
			continue
		}
		if handle, err := p.r.trees[c.Root].handle(string(c.Path)); err == nil {
			from[handle] = true
		}
	}
	for _, m := range p.missed {
		if c := &p.x.rec.Changes[m.index]; c.Why == "" && !from[m.origin] {
			c.Why = whyRemoved
		}
	}
}

// whyNot is why a base that is not proven cannot be one.
func whyNot(a *State) string {
	if a.Exists() {
		return whyWhile
	}
	return whyRemoved
}
