(function (shared, module) {
'use strict';
class EventEmitter {
  constructor() { EventEmitter.init.call(this); }
  static init() { if (!this._events || this._events === Object.getPrototypeOf(this)._events) { this._events = Object.create(null); } }
  on(name, f) { return add(this, name, f, false); }
  addListener(name, f) { return add(this, name, f, false); }
  prependListener(name, f) { return add(this, name, f, true); }
  once(name, f) { check(f); return add(this, name, wrap(this, name, f), false); }
  prependOnceListener(name, f) { check(f); return add(this, name, wrap(this, name, f), true); }
  off(name, f) { return this.removeListener(name, f); }
  removeListener(name, f) {
    check(f);
    const l = this._events && this._events[name];
    if (!l) return this;
    for (let i = l.length - 1; i >= 0; i--) {
      if (l[i] === f || l[i].listener === f) {
        this._events[name] = l.toSpliced(i, 1);
        if (!this._events[name].length) delete this._events[name];
        if (this._events.removeListener) this.emit('removeListener', name, f);
        break;
      }
    }
    return this;
  }
  removeAllListeners(name) { if (name === undefined) this._events = Object.create(null); else if (this._events) delete this._events[name]; return this; }
  emit(name, ...args) {
    const l = this._events && this._events[name];
    if (!l) {
      if (name !== 'error') return false;
      if (args[0] instanceof Error) throw args[0];
      const e = new Error(`Unhandled error. (${typeof args[0] === 'string' ? `'${args[0]}'` : shared.inspect(args[0])})`);
      e.code = 'ERR_UNHANDLED_ERROR';
      e.context = args[0];
      throw e;
    }
    for (const f of l) Reflect.apply(f, this, args);
    return true;
  }
  listeners(name) { return ((this._events && this._events[name]) || []).map((f) => f.listener || f); }
  rawListeners(name) { return [...((this._events && this._events[name]) || [])]; }
  listenerCount(name) { return ((this._events && this._events[name]) || []).length; }
  eventNames() { return this._events ? Reflect.ownKeys(this._events) : []; }
  setMaxListeners(n) { this._maxListeners = n; return this; }
  getMaxListeners() { return this._maxListeners ?? EventEmitter.defaultMaxListeners; }
}
function check(f) { if (typeof f !== 'function') throw shared.badType('listener', 'function', f); }
function add(e, name, f, first) {
  check(f);
  if (!e._events) EventEmitter.init.call(e);
  if (e._events.newListener) e.emit('newListener', name, f.listener || f);
  const l = e._events[name] || [];
  e._events[name] = first ? [f, ...l] : [...l, f];
  return e;
}
function wrap(e, name, f) {
  const g = function (...args) { e.removeListener(name, g); return Reflect.apply(f, e, args); };
  g.listener = f;
  return g;
}
// Old code inherits by calling the class as a function.
function Emitter(...args) { if (!new.target) { EventEmitter.init.call(this); return; } return Reflect.construct(EventEmitter, args, new.target); }
Emitter.prototype = EventEmitter.prototype;
EventEmitter.prototype.constructor = Emitter;
Object.defineProperty(Emitter, 'name', { value: 'EventEmitter' });
EventEmitter.defaultMaxListeners = Emitter.defaultMaxListeners = 10;
Emitter.init = EventEmitter.init;
Emitter.EventEmitter = Emitter;
Emitter.errorMonitor = Symbol('events.errorMonitor');
Emitter.captureRejectionSymbol = Symbol.for('nodejs.rejection');
Emitter.listenerCount = (e, name) => e.listenerCount(name);
Emitter.once = (e, name, o) => new Promise((yes, no) => {
  const fail = (err) => { e.off(name, done); no(err); };
  const done = (...args) => { if (name !== 'error') e.off('error', fail); yes(args); };
  e.once(name, done);
  if (name !== 'error') e.once('error', fail);
});
Emitter.on = async function* (e, name) {
  const queue = [];
  let wake, failed;
  e.on(name, (...a) => { queue.push(a); if (wake) wake(); });
  e.on('error', (err) => { failed = [err]; if (wake) wake(); });
  for (;;) {
    while (queue.length) yield queue.shift();
    if (failed) throw failed[0];
    await new Promise((r) => { wake = r; });
  }
};
Emitter.getEventListeners = (e, name) => e.listeners(name);
Emitter.setMaxListeners = () => {};
module.exports = Emitter;
})
