(function (shared, module) {
'use strict';
class DOMException extends Error {
  constructor(message = '', name = 'Error') { super(message); Object.defineProperty(this, 'name', { value: name, configurable: true }); }
  get code() { return { AbortError: 20, DataCloneError: 25, TimeoutError: 23, InvalidCharacterError: 5 }[this.name] || 0; }
}
class Event {
  constructor(type, o = {}) { this.type = String(type); this.bubbles = !!o.bubbles; this.cancelable = !!o.cancelable; this.defaultPrevented = false; this.target = this.currentTarget = null; this.timeStamp = performance.now(); this.stopped = false; }
  preventDefault() { if (this.cancelable) this.defaultPrevented = true; }
  stopPropagation() {} stopImmediatePropagation() { this.stopped = true; }
}
class EventTarget {
  #l = new Map();
  addEventListener(t, f, o) { if (!f) return; const l = this.#l.get(t) || []; if (!l.some((x) => x.f === f)) this.#l.set(t, [...l, { f, once: !!(o && o.once) }]); }
  removeEventListener(t, f) { this.#l.set(t, (this.#l.get(t) || []).filter((x) => x.f !== f)); }
  dispatchEvent(e) {
    e.target = e.currentTarget = this;
    for (const { f, once } of this.#l.get(e.type) || []) { if (once) this.removeEventListener(e.type, f); if (typeof f === 'function') f.call(this, e); else f.handleEvent(e); if (e.stopped) break; }
    const own = this['on' + e.type];
    if (typeof own === 'function') own.call(this, e);
    return !e.defaultPrevented;
  }
}
class AbortSignal extends EventTarget {
  aborted = false; reason = undefined; onabort = null;
  throwIfAborted() { if (this.aborted) throw this.reason; }
  static abort(r) { const c = new AbortController(); c.abort(r); return c.signal; }
  static timeout(ms) { const c = new AbortController(); setTimeout(() => c.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')), ms).unref(); return c.signal; }
  static any(l) { const c = new AbortController(); for (const s of l) { if (s.aborted) { c.abort(s.reason); break; } s.addEventListener('abort', () => c.abort(s.reason)); } return c.signal; }
}
class AbortController {
  signal = new AbortSignal();
  abort(reason = new DOMException('This operation was aborted', 'AbortError')) { if (this.signal.aborted) return; this.signal.aborted = true; this.signal.reason = reason; this.signal.dispatchEvent(new Event('abort')); }
}
function structuredClone(v) {
  const seen = new Map();
  const fail = (x) => { throw new DOMException(`${typeof x === 'symbol' ? String(x) : shared.inspect(x)} could not be cloned.`, 'DataCloneError'); };
  const copy = (x) => {
    if (typeof x === 'function' || typeof x === 'symbol') fail(x);
    if (x === null || typeof x !== 'object') return x;
    if (seen.has(x)) return seen.get(x);
    const keep = (y) => { seen.set(x, y); return y; };
    if (x instanceof Date) return keep(new Date(x.getTime()));
    if (x instanceof RegExp) return keep(new RegExp(x.source, x.flags));
    if (x instanceof Boolean || x instanceof Number || x instanceof String) return keep(Object(x.valueOf()));
    if (x instanceof ArrayBuffer) return keep(x.slice(0));
    if (ArrayBuffer.isView(x)) { const b = x.buffer.slice(x.byteOffset, x.byteOffset + x.byteLength); return keep(x instanceof DataView ? new DataView(b) : new (globalThis[Object.prototype.toString.call(x).slice(8, -1)])(b)); }
    if (x instanceof Map) { const m = keep(new Map()); for (const [k, y] of x) m.set(copy(k), copy(y)); return m; }
    if (x instanceof Set) { const s = keep(new Set()); for (const y of x) s.add(copy(y)); return s; }
    if (x instanceof Error) { const C = { EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError }[x.name] || Error; const e = keep(new C(x.message)); e.stack = x.stack; if ('cause' in x) e.cause = copy(x.cause); return e; }
    if (x instanceof Promise || x instanceof WeakMap || x instanceof WeakSet) fail(x);
    const o = keep(Array.isArray(x) ? new Array(x.length) : {});
    for (const k of Object.keys(x)) o[k] = copy(x[k]);
    return o;
  };
  return copy(v);
}
module.exports = { DOMException, Event, EventTarget, AbortSignal, AbortController, structuredClone };
})
