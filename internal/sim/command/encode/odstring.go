package encode

// dumpStrings shows the strings of graphic characters that a NUL ends.
func (o *od) dumpStrings() {
	at := o.skip
	var held []byte
	least := max(o.strings, 0)
	var c [1]byte
	for o.limit < 0 || at-o.skip < o.limit {
		if o.read(c[:]) == 0 {
			break
		}
		o.t.Step(1)
		at++
		if c[0] >= ' ' && c[0] < 127 {
			held = append(held, c[0])
			o.t.Bound("record", int64(len(held)), o.t.K.Limits.Record)
			continue
		}
		if c[0] == 0 && len(held) >= least {
			o.showString(held, at-1-int64(len(held)))
		}
		held = held[:0]
	}
	if o.limit >= 0 && at-o.skip >= o.limit && len(held) >= least && len(held) > 0 {
		o.showString(held, at-int64(len(held)))
	}
}

func (o *od) showString(b []byte, at int64) {
	if o.radix != 'n' {
		o.w.Bytes(append(o.address(o.out[:0], at), ' '))
	}
	o.w.Bytes(b)
	o.w.Byte('\n')
}
