(function (shared, module, _, builtin) {
'use strict';
const { equal, inspect } = builtin('util');
class AssertionError extends Error {
  constructor(o) {
    super(o.message !== undefined ? String(o.message) : generated(o));
    this.generatedMessage = o.message === undefined; this.code = 'ERR_ASSERTION'; this.actual = o.actual; this.expected = o.expected; this.operator = o.operator;
  }
  get name() { return 'AssertionError'; }
}
const words = { deepStrictEqual: 'Expected values to be strictly deep-equal:', strictEqual: 'Expected values to be strictly equal:', deepEqual: 'Expected values to be loosely deep-equal:', notStrictEqual: 'Expected "actual" to be strictly unequal to:', notDeepStrictEqual: 'Expected "actual" not to be strictly deep-equal to:', notDeepEqual: 'Expected "actual" not to be loosely deep-equal to:' };
function generated(o) {
  const a = inspect(o.actual, { sorted: true, depth: 1000, compact: false }), b = inspect(o.expected, { sorted: true, depth: 1000, compact: false });
  switch (o.operator) {
    case '==': return `The expression evaluated to a falsy value`;
    case 'equal': case 'notEqual': return `${a} ${o.operator === 'equal' ? '==' : '!='} ${b}`;
    case 'strictEqual': if (!a.includes('\n') && !b.includes('\n') && a.length + b.length <= 64 && (typeof o.actual !== 'object' || o.actual === null) && (typeof o.expected !== 'object' || o.expected === null)) return `${words.strictEqual}\n\n${a} !== ${b}\n`; break;
    case 'deepEqual': return `${words.deepEqual}\n\n${a}\n\nshould loosely deep-equal\n\n${b}`;
    case 'notStrictEqual': case 'notDeepStrictEqual': case 'notDeepEqual': return `${words[o.operator]}${b.includes('\n') || b.length > 5 ? '\n\n' : ' '}${b}${b.includes('\n') ? '\n' : ''}`;
  }
  return `${words[o.operator] || o.operator}\n+ actual - expected\n\n${diff(a.split('\n'), b.split('\n'))}`;
}
function diff(a, b) {
  if (a.length * b.length > 4e6) return [...a.map((l) => '+ ' + l), ...b.map((l) => '- ' + l)].join('\n');
  const t = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) t[i][j] = a[i] === b[j] ? t[i + 1][j + 1] + 1 : Math.max(t[i + 1][j], t[i][j + 1]);
  const out = [];
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { out.push('  ' + a[i]); i++; j++; } else if (i < a.length && (j >= b.length || t[i + 1][j] >= t[i][j + 1])) out.push('+ ' + a[i++]);
    else out.push('- ' + b[j++]);
  }
  return out.join('\n');
}
function fail(actual, expected, message, operator) { if (message instanceof Error) throw message; throw new AssertionError({ actual, expected, message, operator }); }
function assert(v, message) { if (!v) { if (arguments.length === 0) message = 'No value argument passed to `assert.ok()`'; fail(v, true, message, '=='); } }
function matches(e, want, message) {
  if (want === undefined) return;
  if (typeof want === 'function') { if (want.prototype !== undefined && e instanceof want) return; if (Error.isPrototypeOf(want) || want === Error) throw e; if (want.call({}, e) !== true) fail(e, want, message || 'The validation function is expected to return "true". Received ' + inspect(want.call({}, e)), 'throws'); return; }
  if (want instanceof RegExp) { if (!want.test(String(e))) fail(e, want, message || `The input did not match the regular expression ${inspect(want)}. Input:\n\n${inspect(String(e))}\n`, 'throws'); return; }
  for (const k of [...Object.keys(want), ...(want instanceof Error ? ['name', 'message'] : [])]) if (want[k] instanceof RegExp && typeof e[k] === 'string' ? !want[k].test(e[k]) : !equal(e[k], want[k], true)) fail(e, want, message, 'throws');
}
Object.assign(assert, {
  AssertionError, ok: (v, m) => { if (!v) fail(v, true, m, '=='); },
  equal: (a, b, m) => { if (!(a == b || a !== a && b !== b)) fail(a, b, m, 'equal'); }, notEqual: (a, b, m) => { if (a == b || a !== a && b !== b) fail(a, b, m, 'notEqual'); },
  strictEqual: (a, b, m) => { if (!Object.is(a, b)) fail(a, b, m, 'strictEqual'); }, notStrictEqual: (a, b, m) => { if (Object.is(a, b)) fail(a, b, m, 'notStrictEqual'); },
  deepEqual: (a, b, m) => { if (!equal(a, b, false)) fail(a, b, m, 'deepEqual'); }, deepStrictEqual: (a, b, m) => { if (!equal(a, b, true)) fail(a, b, m, 'deepStrictEqual'); },
  notDeepEqual: (a, b, m) => { if (equal(a, b, false)) fail(a, b, m, 'notDeepEqual'); }, notDeepStrictEqual: (a, b, m) => { if (equal(a, b, true)) fail(a, b, m, 'notDeepStrictEqual'); },
  fail: (m = 'Failed') => { if (m instanceof Error) throw m; throw new AssertionError({ message: m, operator: 'fail' }); },
  throws(f, want, m) { if (typeof want === 'string') { m = want; want = undefined; } try { f(); } catch (e) { matches(e, want, m); return; } fail(undefined, want, m === undefined ? 'Missing expected exception.' : `Missing expected exception: ${m}`, 'throws'); },
  doesNotThrow(f, m) { try { f(); } catch (e) { fail(e, undefined, `Got unwanted exception.\nActual message: "${e && e.message}"`, 'doesNotThrow'); void m; } },
  async rejects(p, want, m) { try { await (typeof p === 'function' ? p() : p); } catch (e) { matches(e, want, m); return; } fail(undefined, want, m === undefined ? 'Missing expected rejection.' : `Missing expected rejection: ${m}`, 'rejects'); },
  async doesNotReject(p) { try { await (typeof p === 'function' ? p() : p); } catch (e) { fail(e, undefined, `Got unwanted rejection.\nActual message: "${e && e.message}"`, 'doesNotReject'); } },
  match: (s, r, m) => { if (typeof s !== 'string' || !r.test(s)) fail(s, r, m ?? `The input did not match the regular expression ${inspect(r)}. Input:\n\n${inspect(s)}\n`, 'match'); },
  doesNotMatch: (s, r, m) => { if (r.test(s)) fail(s, r, m ?? `The input was expected to not match the regular expression ${inspect(r)}. Input:\n\n${inspect(s)}\n`, 'doesNotMatch'); },
  ifError: (v) => { if (v !== null && v !== undefined) throw v instanceof Error ? v : new AssertionError({ message: `ifError got unwanted exception: ${inspect(v)}`, operator: 'ifError' }); },
});
assert.strict = Object.assign((...a) => assert(...a), assert, { equal: assert.strictEqual, deepEqual: assert.deepStrictEqual, notEqual: assert.notStrictEqual, notDeepEqual: assert.notDeepStrictEqual });
assert.strict.strict = assert.strict;
module.exports = assert;
})
