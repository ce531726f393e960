package jq

import (
	"errors"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

type oneFn = func(m *machine, v value, args []value) (value, error)

// native finds a function of ours.
func (m *machine) native(name string, arity int) *native {
	sig := signature(name, arity)
	if n, ok := m.natives[sig]; ok {
		return n
	}
	var n *native
	if m.yq != nil {
		n = yqNative(name, arity)
	}
	if n == nil {
		n = generator(name, arity)
	}
	if n == nil {
		if f := plain(name, arity); f != nil {
			n = &native{one: f}
		} else if f := numeric(name, arity); f != nil {
			n = &native{one: f}
		} else if f := dates(name, arity); f != nil {
			n = &native{one: f}
		}
	}
	if n != nil {
		n.name, n.arity = name, arity
	}
	m.natives[sig] = n
	return n
}

// generator finds the functions that take expressions or give many values.
func generator(name string, arity int) *native {
	switch signature(name, arity) {
	case "empty/0":
		return &native{
			gen:  func(*machine, *node, *env, value, yieldFn) error { return nil },
			path: func(*machine, *node, *env, pathValue, pathFn) error { return nil },
		}
	case "select/1":
		return &native{
			gen: func(m *machine, n *node, e *env, v value, yield yieldFn) error {
				return m.eval(n.list[0], e, v, func(c value) error {
					if truthy(c) {
						return yield(v)
					}
					return nil
				})
			},
			path: func(m *machine, n *node, e *env, p pathValue, yield pathFn) error {
				return m.eval(n.list[0], e, p.v, func(c value) error {
					if truthy(c) {
						return yield(p)
					}
					return nil
				})
			},
		}
	case "recurse/0":
		return &native{
			gen:  func(m *machine, _ *node, _ *env, v value, yield yieldFn) error { return m.recurse(v, yield) },
			path: func(m *machine, _ *node, _ *env, p pathValue, yield pathFn) error { return m.recursePaths(p, yield) },
		}
	case "path/1":
		return &native{gen: func(m *machine, n *node, e *env, v value, yield yieldFn) error {
			return m.allPaths(n.list[0], e, v, func(p []value) error { return yield(m.list(p)) })
		}}
	case "getpath/1":
		return &native{
			gen: func(m *machine, n *node, e *env, v value, yield yieldFn) error {
				return m.eval(n.list[0], e, v, func(p value) error {
					a, ok := p.(*array)
					if !ok {
						return failf("Path must be specified as an array")
					}
					x, err := m.getpath(v, a.own())
					if err != nil {
						return err
					}
					return yield(x)
				})
			},
			path: func(m *machine, n *node, e *env, p pathValue, yield pathFn) error {
				return m.eval(n.list[0], e, p.v, func(k value) error {
					a, ok := k.(*array)
					if !ok {
						return failf("Path must be specified as an array")
					}
					if p.loose {
						return m.badPath(p)
					}
					x := p
					for _, k := range a.own() {
						v, err := m.getpath(x.v, []value{k})
						if err != nil {
							return err
						}
						if x, err = m.go1(x, k, v); err != nil {
							return err
						}
					}
					return yield(x)
				})
			},
		}
	case "range/1", "range/2", "range/3":
		return &native{gen: ranges}
	case "first/1":
		return limited(func(m *machine, n *node, e *env, v value, each func(value, *node, float64) error) error {
			return each(nil, n.list[0], 1)
		})
	case "limit/2":
		return limited(func(m *machine, n *node, e *env, v value, each func(value, *node, float64) error) error {
			return m.eval(n.list[0], e, v, func(c value) error {
				f, ok := number(c)
				if !ok {
					f = 0
					if kind(c) > 3 {
						f = math.Inf(1)
					}
				}
				if f < 0 {
					return failf("limit doesn't support negative count")
				}
				return each(c, n.list[1], math.Ceil(f))
			})
		})
	case "skip/2":
		return &native{
			gen: func(m *machine, n *node, e *env, v value, yield yieldFn) error {
				return m.skips(n, e, v, func(left float64) error {
					return m.eval(n.list[1], e, v, func(x value) error {
						if left >= 1 {
							left--
							return nil
						}
						return yield(x)
					})
				})
			},
			path: func(m *machine, n *node, e *env, p pathValue, yield pathFn) error {
				return m.skips(n, e, p.v, func(left float64) error {
					return m.paths(n.list[1], e, p, func(x pathValue) error {
						if left >= 1 {
							left--
							return nil
						}
						return yield(x)
					})
				})
			},
		}
	case "isempty/1":
		return &native{gen: func(m *machine, n *node, e *env, v value, yield yieldFn) error {
			empty := true
			err := m.eval(n.list[0], e, v, func(value) error {
				empty = false
				return errStop
			})
			if err != nil && !errors.Is(unpass(err), errStop) {
				return err
			}
			return yield(empty)
		}}
	case "any/2", "all/2":
		all := name == "all"
		return &native{gen: func(m *machine, n *node, e *env, v value, yield yieldFn) error {
			found := false
			err := m.eval(n.list[0], e, v, func(x value) error {
				return m.eval(n.list[1], e, x, func(c value) error {
					if truthy(c) != all {
						found = true
						return errStop
					}
					return nil
				})
			})
			if err != nil && !errors.Is(unpass(err), errStop) {
				return err
			}
			return yield(found != all)
		}}
	case "error/0":
		return &native{gen: func(_ *machine, _ *node, _ *env, v value, _ yieldFn) error { return &jqError{v} }}
	case "error/1":
		return &native{gen: func(m *machine, n *node, e *env, v value, _ yieldFn) error {
			return m.eval(n.list[0], e, v, func(x value) error { return &jqError{x} })
		}}
	case "_sorted_by/2":
		return &native{gen: sortedBy}
	case "add/1":
		return &native{gen: func(m *machine, n *node, e *env, v value, yield yieldFn) error {
			var sum value
			at := len(m.holds)
			m.hold(nil)
			err := m.eval(n.list[0], e, v, func(x value) error {
				var err error
				sum, err = m.plus(sum, x)
				m.holds[at] = sum
				return err
			})
			m.release(at)
			if err != nil {
				return err
			}
			return yield(sum)
		}}
	case "sub/2", "sub/3", "gsub/2", "gsub/3":
		return &native{gen: substitute}
	case "repeat/1", "while/2", "until/2":
		return &native{gen: loops(name)}
	case "input/0":
		return &native{gen: func(m *machine, _ *node, _ *env, _ value, yield yieldFn) error {
			v, err := m.input()
			if err != nil {
				return err
			}
			return yield(v)
		}}
	case "debug/0", "debug/1":
		return &native{gen: func(m *machine, n *node, e *env, v value, yield yieldFn) error {
			if len(n.list) == 0 {
				m.debug(v)
				return yield(v)
			}
			if err := m.eval(n.list[0], e, v, func(x value) error { m.debug(x); return nil }); err != nil {
				return err
			}
			return yield(v)
		}, path: func(m *machine, n *node, e *env, p pathValue, yield pathFn) error {
			if len(n.list) == 0 {
				m.debug(p.v)
			} else if err := m.eval(n.list[0], e, p.v, func(x value) error { m.debug(x); return nil }); err != nil {
				return err
			}
			return yield(p)
		}}
	}
	return nil
}

// limited makes first and limit, of values and of paths.
func limited(how func(m *machine, n *node, e *env, v value, each func(c value, n *node, most float64) error) error) *native {
	return &native{
		gen: func(m *machine, n *node, e *env, v value, yield yieldFn) error {
			return how(m, n, e, v, func(_ value, body *node, most float64) error {
				if !(most > 0) {
					return nil
				}
				count := 0.0
				stop := &breakError{}
				err := m.eval(body, e, v, func(x value) error {
					if count++; count >= most {
						if err := yield(x); err != nil {
							return err
						}
						return stop
					}
					return yield(x)
				})
				if unpass(err) == stop {
					return nil
				}
				return err
			})
		},
		path: func(m *machine, n *node, e *env, p pathValue, yield pathFn) error {
			return how(m, n, e, p.v, func(_ value, body *node, most float64) error {
				if !(most > 0) {
					return nil
				}
				count := 0.0
				stop := &breakError{}
				err := m.paths(body, e, p, func(x pathValue) error {
					if count++; count >= most {
						if err := yield(x); err != nil {
							return err
						}
						return stop
					}
					return yield(x)
				})
				if unpass(err) == stop {
					return nil
				}
				return err
			})
		},
	}
}

// skips gives how many values skip leaves out.
func (m *machine) skips(n *node, e *env, v value, each func(left float64) error) error {
	return m.eval(n.list[0], e, v, func(c value) error {
		f, ok := number(c)
		switch {
		case !ok && kind(c) > 3:
			return failf("%s and number (1) cannot be subtracted", m.describe(c))
		case !ok, !(f >= 0):
			return failf("skip doesn't support negative count")
		}
		return each(f)
	})
}

func ranges(m *machine, n *node, e *env, v value, yield yieldFn) error {
	one := func(from, to, by value) error {
		a, ok1 := number(from)
		b, ok2 := number(to)
		c, ok3 := number(by)
		if !ok1 || !ok2 || !ok3 {
			return failf("Range bounds must be numeric")
		}
		for i := a; c > 0 && i < b || c < 0 && i > b; i += c {
			m.t.Step(2)
			m.alloc(8)
			if err := yield(i); err != nil {
				return err
			}
		}
		return nil
	}
	switch len(n.list) {
	case 1:
		return m.eval(n.list[0], e, v, func(to value) error { return one(0.0, to, 1.0) })
	case 2:
		return m.eval(n.list[0], e, v, func(from value) error {
			return m.eval(n.list[1], e, v, func(to value) error { return one(from, to, 1.0) })
		})
	}
	return m.eval(n.list[0], e, v, func(from value) error {
		return m.eval(n.list[1], e, v, func(to value) error {
			return m.eval(n.list[2], e, v, func(by value) error { return one(from, to, by) })
		})
	})
}

// loops makes repeat, while and until: repeat gives the values of its argument
// over and over.
func loops(name string) func(m *machine, n *node, e *env, v value, yield yieldFn) error {
	if name == "repeat" {
		return func(m *machine, n *node, e *env, v value, yield yieldFn) error {
			for {
				m.t.Step(round)
				if err := m.eval(n.list[0], e, v, yield); err != nil {
					return err
				}
			}
		}
	}
	until := name == "until"
	var run func(m *machine, n *node, e *env, v value, yield yieldFn) error
	run = func(m *machine, n *node, e *env, v value, yield yieldFn) error {
		cond, body := n.list[0], n.list[1]
		if !cond.single {
			return m.eval(cond, e, v, func(c value) error {
				if truthy(c) == until {
					if until {
						return yield(v)
					}
					return nil
				}
				if !until {
					if err := yield(v); err != nil {
						return err
					}
				}
				return m.eval(body, e, v, func(x value) error { return run(m, n, e, x, yield) })
			})
		}
		for {
			c, err := m.one(cond, e, v)
			if err != nil {
				return err
			}
			if truthy(c) == until {
				if until {
					return yield(v)
				}
				return nil
			}
			if !until {
				if err := yield(v); err != nil {
					return err
				}
			}
			if !body.single {
				return m.eval(body, e, v, func(x value) error {
					m.push(x, e)
					defer m.pop()
					return run(m, n, e, x, yield)
				})
			}
			if v, err = m.one(body, e, v); err != nil {
				return err
			}
			m.enter(v, e)
		}
	}
	return run
}

// sortedBy gives pairs of what elements are sorted by, and the elements, in
// order: the ground of sort_by, group_by, unique_by, min_by and max_by. Its
// first argument names which of them.
func sortedBy(m *machine, n *node, e *env, v value, yield yieldFn) error {
	what, err := m.one(n.list[0], e, v)
	if err != nil {
		return err
	}
	a, ok := v.(*array)
	name, _ := what.(string)
	if !ok {
		if name == "min" || name == "max" || name == "sort" || name == "group" || name == "unique" {
			return failf("Cannot index %s with number", typeName(v))
		}
	}
	type pair struct {
		key []value
		v   value
	}
	at := len(m.holds)
	pairs := make([]pair, a.len())
	keys := &array{v: make([]value, 0, len(pairs)), depth: 1}
	m.alloc(56 * len(pairs))
	m.hold(keys)
	for i := range pairs {
		x := a.own()[i]
		k, err := m.collect(n.list[1], e, x)
		if err != nil {
			m.release(at)
			return err
		}
		list, _ := k.(*array)
		keys.v = append(keys.v, list)
		pairs[i] = pair{list.own(), x}
	}
	m.release(at)
	compare := func(x, y pair) int {
		for i := range min(len(x.key), len(y.key)) {
			if c := m.compare(x.key[i], y.key[i]); c != 0 {
				return c
			}
		}
		return len(x.key) - len(y.key)
	}
	if err := deepList(keys.v); err != nil {
		return err
	}
	switch name {
	case "min", "max":
		if len(pairs) == 0 {
			return yield(nil)
		}
		best := pairs[0]
		for _, p := range pairs[1:] {
			c := compare(p, best)
			if name == "min" && c < 0 || name == "max" && c >= 0 {
				best = p
			}
		}
		return yield(best.v)
	}
	slices.SortStableFunc(pairs, compare)
	var out, group []value
	for i, p := range pairs {
		switch name {
		case "sort":
			out = append(out, p.v)
			continue
		case "unique":
			if i == 0 || compare(pairs[i-1], p) != 0 {
				out = append(out, p.v)
			}
			continue
		}
		if i > 0 && compare(pairs[i-1], p) != 0 {
			out = append(out, m.list(group))
			group = nil
		}
		group = append(group, p.v)
	}
	if name == "group" && len(pairs) > 0 {
		out = append(out, m.list(group))
	}
	return yield(m.list(out))
}

// sorted gives the elements of an array in order.
func (m *machine) sorted(v value, what string) ([]value, error) {
	a, ok := v.(*array)
	if !ok {
		return nil, failf("%s cannot be %s, as it is not an array", m.describe(v), what)
	}
	list := slices.Clone(a.own())
	m.alloc(16 * len(list))
	if err := deepList(list); err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, m.compare)
	return list, nil
}

// wrongType complains about an input.
func (m *machine) wrongType(v value, what string) error { return failf("%s %s", m.describe2(v), what) }

// describe2 is describe, where null shows itself too.
func (m *machine) describe2(v value) string { return typeName(v) + " (" + m.trunc(v) + ")" }

// indices finds a list in a list.
func (m *machine) indices(list, part []value) value {
	if len(part) == 0 {
		return nil
	}
	var out []value
	for i := 0; i+len(part) <= len(list); i++ {
		m.t.Step(1)
		same := true
		for j := range part {
			if m.compare(list[i+j], part[j]) != 0 {
				same = false
				break
			}
		}
		if same {
			out = append(out, float64(i))
		}
	}
	return m.list(out)
}

// stringIndices finds a string in a string; offsets count characters.
func (m *machine) stringIndices(s, part string) value {
	if part == "" {
		return nil
	}
	var out []value
	at, chars := 0, 0
	for {
		i := strings.Index(s[at:], part)
		if i < 0 {
			return m.list(out)
		}
		m.t.Step(1 + i>>6)
		chars += utf8.RuneCountInString(s[at : at+i])
		out = append(more(m, out, 24), float64(chars))
		at += i
		_, n := utf8.DecodeRuneInString(s[at:])
		at += n
		chars++
	}
}
