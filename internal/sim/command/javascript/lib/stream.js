(function (shared, module, _, builtin) {
'use strict';
const { host } = shared;
const Emitter = builtin('events');
const later = (f, ...a) => process.nextTick(f, ...a);
const toBuffer = (c, e) => typeof c === 'string' ? Buffer.from(c, e) : c;

class Stream extends Emitter {
  pipe(to, o = {}) {
    this.on('data', (c) => { if (to.write(c) === false && this.pause) { this.pause(); to.once('drain', () => this.resume()); } });
    if (o.end !== false && to !== process.stdout && to !== process.stderr) this.on('end', () => to.end());
    to.emit('pipe', this);
    return to;
  }
}
class Readable extends Stream {
  constructor(o = {}) { super(); initReadable(this, o); }
  static from(list, o) {
    const r = new Readable({ objectMode: true, ...o, read() {} });
    if (typeof list === 'string' || list instanceof Uint8Array) list = [list];
    const it = list[Symbol.asyncIterator] ? list[Symbol.asyncIterator]() : list[Symbol.iterator]();
    let busy = false;
    r._read = async () => {
      if (busy) return;
      busy = true;
      try { for (;;) { const { value, done } = await it.next(); if (done) { r.push(null); break; } if (!r.push(await value)) break; } } catch (e) { r.destroy(e); }
      busy = false;
    };
    return r;
  }
}
function initReadable(s, o) {
  s.readable = true; s.destroyed = s.destroyed || false; s.readableEnded = false; s.readableFlowing = null; s.readableObjectMode = !!(o.objectMode || o.readableObjectMode); s.readableEncoding = null;
  Object.defineProperty(s, '_r', { value: { queue: [], bytes: 0, ended: false, reading: false, high: o.highWaterMark ?? o.readableHighWaterMark ?? (o.objectMode ? 16 : 65536), decoder: null, planned: false, encoding: null }, enumerable: false });
  if (o.read) s._read = o.read;
  if (o.destroy) s._destroy = o.destroy;
  if (o.encoding) s.setEncoding(o.encoding);
}
const readableMethods = {
  _read() { const e = new Error('The _read() method is not implemented'); e.code = 'ERR_METHOD_NOT_IMPLEMENTED'; this.destroy(e); },
  push(c, e) {
    const r = this._r;
    r.reading = false;
    if (c === null) {
      if (r.decoder) { const rest = r.decoder.end(); if (rest) { r.queue.push(rest); r.bytes += rest.length; } }
      r.ended = true;
    } else {
      if (r.ended) { const err = new Error('stream.push() after EOF'); err.code = 'ERR_STREAM_PUSH_AFTER_EOF'; this.destroy(err); return false; }
      if (!this.readableObjectMode) { c = toBuffer(c, e); if (r.decoder) c = r.decoder.write(c); if (!c.length) { plan(this); return true; } }
      r.queue.push(c);
      r.bytes += this.readableObjectMode ? 1 : c.length;
    }
    plan(this);
    return r.bytes < r.high;
  },
  unshift(c) { this._r.queue.unshift(this.readableObjectMode || this._r.decoder ? c : toBuffer(c)); this._r.bytes += c.length || 1; plan(this); },
  read(n) {
    const r = this._r;
    if (!r.queue.length) { fill(this); if (!r.queue.length) { if (r.ended) finishRead(this); return null; } }
    let c;
    if (this.readableObjectMode || n === undefined && r.queue.length === 1) c = r.queue.shift();
    else {
      const all = typeof r.queue[0] === 'string' ? r.queue.join('') : Buffer.concat(r.queue);
      if (n !== undefined && n > all.length && !r.ended) { r.queue = [all]; fill(this); return null; }
      c = n === undefined ? all : all.slice(0, n);
      r.queue.length = 0;
      if (n !== undefined && n < all.length) r.queue.push(all.slice(n));
    }
    r.bytes -= this.readableObjectMode ? 1 : c.length;
    plan(this);
    return c;
  },
  setEncoding(e) { this._r.decoder = new (builtin('string_decoder').StringDecoder)(e); this.readableEncoding = e; return this; },
  pause() { this.readableFlowing = false; return this; }, isPaused() { return this.readableFlowing === false; },
  resume() { this.readableFlowing = true; plan(this); return this; },
  on(name, f) {
    Emitter.prototype.on.call(this, name, f);
    if (name === 'data' && this.readableFlowing !== false) this.resume();
    if (name === 'readable') { this._r.manual = true; plan(this); }
    return this;
  },
  addListener(name, f) { return this.on(name, f); },
  async *[Symbol.asyncIterator]() {
    const r = this._r;
    let wake = () => {}, failed;
    const poke = () => wake();
    Emitter.prototype.on.call(this, 'error', (e) => { failed = [e]; poke(); });
    Emitter.prototype.on.call(this, 'close', poke);
    r.poke = poke;
    r.manual = true;
    try {
      for (;;) {
        if (failed) throw failed[0];
        if (r.queue.length) { const c = r.queue.shift(); r.bytes -= this.readableObjectMode ? 1 : c.length; yield c; continue; }
        if (r.ended || this.destroyed) { finishRead(this); return; }
        const p = new Promise((yes) => { wake = yes; });
        fill(this);
        if (!r.queue.length && !r.ended && !failed && !this.destroyed) await p;
      }
    } finally { if (!this.destroyed) this.destroy(); }
  },
  unpipe() { this.removeAllListeners('data'); return this; },
  async toArray() { const l = []; for await (const c of this) l.push(c); return l; },
  map(f) { const s = this; return Readable.from((async function* () { for await (const c of s) yield await f(c); })()); },
  filter(f) { const s = this; return Readable.from((async function* () { for await (const c of s) if (await f(c)) yield c; })()); },
};
for (const k of Reflect.ownKeys(readableMethods)) Object.defineProperty(Readable.prototype, k, { value: readableMethods[k], writable: true, configurable: true });
function fill(s) {
  const r = s._r;
  if (r.reading || r.ended || s.destroyed || r.bytes >= r.high) return;
  r.reading = true;
  try { s._read(r.high); } catch (e) { s.destroy(e); }
}
function plan(s) {
  const r = s._r;
  if (r.poke) r.poke();
  if (r.planned) return;
  r.planned = true;
  later(() => {
    r.planned = false;
    if (s.destroyed) return;
    if (s.readableFlowing && !r.manual) {
      while (r.queue.length && s.readableFlowing && !s.destroyed) { const c = r.queue.shift(); r.bytes -= s.readableObjectMode ? 1 : c.length; s.emit('data', c); }
      if (!r.queue.length && r.ended) finishRead(s);
      else if (s.readableFlowing) { fill(s); }
    } else if (r.manual && !r.poke) {
      if (!r.queue.length && !r.ended) fill(s);
      if (r.queue.length || r.ended && !s.readableEnded) s.emit('readable');
      if (r.ended && !r.queue.length) finishRead(s);
    }
  });
}
function finishRead(s) {
  if (s.readableEnded || s.destroyed) return;
  s.readableEnded = true;
  s.readable = false;
  later(() => { s.emit('end'); if (s.autoDestroy !== false && (!s._w || s.writableFinished)) s.destroy(); });
}
function destroy(e) {
  if (this.destroyed) return this;
  this.destroyed = true;
  const done = (err) => later(() => { if (err) this.emit('error', err); this.emit('close'); });
  if (this._destroy) this._destroy(e || null, (err) => done(err || e)); else done(e);
  return this;
}
Object.defineProperty(Readable.prototype, 'destroy', { value: destroy, writable: true, configurable: true });

class Writable extends Stream { constructor(o = {}) { super(); initWritable(this, o); } }
function initWritable(s, o) {
  s.writable = true; s.destroyed = s.destroyed || false; s.writableEnded = false; s.writableFinished = false; s.writableObjectMode = !!(o.objectMode || o.writableObjectMode); s.writableLength = 0;
  Object.defineProperty(s, '_w', { value: { queue: [], busy: false, corked: 0, high: o.highWaterMark ?? o.writableHighWaterMark ?? (o.objectMode ? 16 : 16384), needDrain: false, encoding: o.defaultEncoding || 'utf8', strings: o.decodeStrings === false }, enumerable: false });
  for (const k of ['write', 'writev', 'final', 'destroy']) if (o[k]) s['_' + k] = o[k];
}
const writableMethods = {
  write(c, e, done) {
    if (typeof e === 'function') { done = e; e = undefined; }
    const w = this._w;
    if (this.writableEnded) { const err = new Error('write after end'); err.code = 'ERR_STREAM_WRITE_AFTER_END'; later(() => { if (done) done(err); this.destroy(err); }); return false; }
    if (c === null) { const err = new TypeError('May not write null values to stream'); err.code = 'ERR_STREAM_NULL_VALUES'; throw err; }
    if (!this.writableObjectMode && typeof c !== 'string' && !ArrayBuffer.isView(c)) throw shared.badType('chunk', ['string', 'Buffer', 'TypedArray', 'DataView'], c);
    if (!this.writableObjectMode && typeof c === 'string' && !w.strings) c = Buffer.from(c, e || w.encoding);
    const n = this.writableObjectMode ? 1 : c.length;
    this.writableLength += n;
    w.queue.push([c, ArrayBuffer.isView(c) ? 'buffer' : e || w.encoding, done, n]);
    drain(this);
    const ok = this.writableLength < w.high;
    if (!ok) w.needDrain = true;
    return ok;
  },
  end(c, e, done) {
    if (typeof c === 'function') { done = c; c = undefined; } else if (typeof e === 'function') { done = e; e = undefined; }
    if (c !== undefined && c !== null) this.write(c, e);
    if (done) { if (this.writableFinished) later(done); else this.once('finish', done); }
    this.writableEnded = true;
    drain(this);
    return this;
  },
  cork() { this._w.corked++; }, uncork() { if (this._w.corked) this._w.corked--; drain(this); },
  setDefaultEncoding(e) { this._w.encoding = e; return this; },
};
for (const k of Reflect.ownKeys(writableMethods)) Object.defineProperty(Writable.prototype, k, { value: writableMethods[k], writable: true, configurable: true });
Object.defineProperty(Writable.prototype, 'destroy', { value: destroy, writable: true, configurable: true });
function drain(s) {
  const w = s._w;
  if (w.busy || w.corked || s.destroyed) return;
  if (!w.queue.length) {
    if (s.writableEnded && !w.final) {
      w.final = true;
      const done = (e) => {
        if (e) { s.destroy(e); return; }
        later(() => { s.writableFinished = true; s.writable = false; s.emit('finish'); if (s.autoDestroy !== false && (!s._r || s.readableEnded)) s.destroy(); });
      };
      if (s._final) { try { s._final(done); } catch (e) { done(e); } } else done();
    }
    return;
  }
  const [c, e, done, n] = w.queue.shift();
  w.busy = true;
  let now = true;
  const after = (err) => {
    const finish = () => {
      w.busy = false;
      s.writableLength -= n;
      if (done) done(err || null);
      if (err) { s.destroy(err); return; }
      if (w.needDrain && !s.writableLength) { w.needDrain = false; s.emit('drain'); }
      drain(s);
    };
    if (now) later(finish); else finish();
  };
  try { if (s._write) s._write(c, e, after); else if (s._writev) s._writev([{ chunk: c, encoding: e }], after); else after(Object.assign(new Error('The _write() method is not implemented'), { code: 'ERR_METHOD_NOT_IMPLEMENTED' })); } catch (x) { after(x); }
  now = false;
}
class Duplex extends Readable {
  constructor(o = {}) { super(o); initWritable(this, o); if (o.allowHalfOpen === false) this.on('end', () => this.end()); }
}
for (const k of Reflect.ownKeys(writableMethods)) Object.defineProperty(Duplex.prototype, k, { value: writableMethods[k], writable: true, configurable: true });
Object.defineProperty(Writable, Symbol.hasInstance, { value: function (v) { return Function.prototype[Symbol.hasInstance].call(this, v) || this === Writable && v instanceof Duplex; } });
class Transform extends Duplex {
  constructor(o = {}) { super(o); if (o.transform) this._transform = o.transform; if (o.flush) this._flush = o.flush; }
  _read() {}
  _write(c, e, done) { this._transform(c, e, (err, out) => { if (err) { done(err); return; } if (out !== undefined && out !== null) this.push(out); done(); }); }
  _final(done) { const end = (err, out) => { if (err) { done(err); return; } if (out !== undefined && out !== null) this.push(out); this.push(null); done(); }; if (this._flush) this._flush(end); else end(); }
}
class PassThrough extends Transform { _transform(c, e, done) { done(null, c); } }
function finished(s, o, done) {
  if (typeof o === 'function') { done = o; o = {}; }
  let over = false;
  const end = (e) => { if (!over) { over = true; done(e); } };
  s.on('error', end);
  if (s._r && o.readable !== false && !s.readableEnded) { s.on('end', () => { if (!s._w || s.writableFinished || o.writable === false) end(); }); }
  if (s._w && o.writable !== false && !s.writableFinished) s.on('finish', () => { if (!s._r || s.readableEnded || o.readable === false || s.readableFlowing === null) end(); });
  s.on('close', () => { if ((s._r && !s.readableEnded && o.readable !== false && !s._w) || s._w && !s.writableFinished && o.writable !== false) end(Object.assign(new Error('Premature close'), { code: 'ERR_STREAM_PREMATURE_CLOSE' })); else end(); });
  return () => { over = true; };
}
function pipeline(...list) {
  const done = typeof list[list.length - 1] === 'function' && list[list.length - 1].length <= 2 && !/Generator/.test(Object.prototype.toString.call(list[list.length - 1])) ? list.pop() : () => {};
  if (Array.isArray(list[0])) list = list[0];
  let cur = list[0], over = false;
  const streams = [];
  const end = (e) => { if (over) return; over = true; for (const s of streams) if (e && s.destroy) s.destroy(); done(e); };
  if (typeof cur === 'function') cur = cur();
  if (!(cur instanceof Emitter)) cur = Readable.from(cur);
  streams.push(cur);
  cur.on('error', end);
  for (const next of list.slice(1)) {
    let to = next;
    if (typeof next === 'function') { const r = next(cur); if (r && (r[Symbol.asyncIterator] || r[Symbol.iterator])) to = Readable.from(r); else { Promise.resolve(r).then(() => end(), end); return cur; } streams.push(to); to.on('error', end); cur = to; continue; }
    streams.push(to);
    to.on('error', end);
    cur.pipe(to, { end: true });
    if (to === process.stdout || to === process.stderr) { cur.on('end', () => end()); }
    cur = to;
  }
  if (cur._w) cur.on('finish', () => end()); else cur.on('end', () => end());
  return cur;
}
const promises = {
  pipeline: (...l) => { if (l.length && l[l.length - 1] && typeof l[l.length - 1] === 'object' && !(l[l.length - 1] instanceof Emitter) && !l[l.length - 1][Symbol.asyncIterator]) l.pop(); return new Promise((yes, no) => pipeline(...l, (e) => { if (e) no(e); else yes(); })); },
  finished: (s, o) => new Promise((yes, no) => finished(s, o || {}, (e) => { if (e) no(e); else yes(); })),
};

// Standard streams. Writing is at once; reading waits when somebody listens.
function standard(fd) {
  if (fd) {
    const s = new Writable({ decodeStrings: false, write(c, e, done) { if (typeof c === 'string') host.print(fd, c); else host.write(fd, c.buffer, c.byteOffset, c.byteLength, -1); done(); } });
    s.write = (c, e, done) => {
      if (typeof e === 'function') { done = e; e = undefined; }
      if (typeof c === 'string') { if (e && !/^utf-?8$/i.test(e)) { c = Buffer.from(c, e); host.write(fd, c.buffer, c.byteOffset, c.byteLength, -1); } else host.print(fd, c); } else if (ArrayBuffer.isView(c)) host.write(fd, c.buffer, c.byteOffset, c.byteLength, -1);
      else throw shared.badType('chunk', ['string', 'Buffer', 'TypedArray', 'DataView'], c);
      if (done) later(done);
      return true;
    };
    const size = host.terminal(fd);
    s.fd = fd; s._type = size ? 'tty' : 'pipe'; s.autoDestroy = false;
    if (size) { s.isTTY = true; [s.rows, s.columns] = size; }
    s.hasColors = () => false; s.getColorDepth = () => 1; s.getWindowSize = () => size || [80, 24]; s.cursorTo = s.clearLine = s.moveCursor = s.clearScreenDown = () => true;
    return s;
  }
  const s = new Readable({ read() { wanted = true; } });
  let wanted = false, over = false;
  shared.sources.push({
    waits: () => wanted && !over && !s.destroyed && (s.readableFlowing || s._r.manual), ready: () => wanted && !over && !s.destroyed,
    poll() {
      if (!wanted || over || s.destroyed) return false;
      wanted = false;
      const b = host.input(65536);
      if (b === undefined) { over = true; s.push(null); } else s.push(builtin('buffer').wrap(b));
      return true;
    },
  });
  s.fd = 0; s.isTTY = host.terminal(0) ? true : undefined; s.autoDestroy = false; s.setRawMode = () => s; s.ref = s.unref = () => s;
  return s;
}
function fileReader(fs, p, o) {
  let fd = o.fd ?? null, at = o.start;
  if (fd && typeof fd === 'object') fd = fd.fd;
  const s = new Readable({ highWaterMark: o.highWaterMark ?? 65536, encoding: o.encoding, read() {
    setImmediate(() => {
      try {
        if (s.destroyed) return;
        if (fd === null) { fd = fs.openSync(p, o.flags || 'r', o.mode); s.fd = fd; s.emit('open', fd); s.emit('ready'); }
        const want = o.end === undefined || o.end === Infinity ? s._r.high : Math.min(s._r.high, o.end - (at ?? 0) + 1);
        if (want <= 0) { s.push(null); return; }
        const b = Buffer.alloc(want), n = fs.readSync(fd, b, 0, want, at ?? null);
        if (at !== undefined || o.end !== undefined) at = (at ?? 0) + n;
        s.bytesRead += n;
        s.push(n ? b.subarray(0, n) : null);
      } catch (e) { s.destroy(e); }
    });
  }, destroy(e, done) { try { if (fd !== null && o.autoClose !== false) fs.closeSync(fd); } catch (x) { e ||= x; } fd = null; done(e); } });
  s.path = p; s.bytesRead = 0; s.close = (f) => { if (f) s.once('close', f); s.destroy(); };
  if (o.end !== undefined && at === undefined) at = 0;
  return s;
}
function fileWriter(fs, p, o) {
  let fd = o.fd ?? null, at = o.start;
  if (fd && typeof fd === 'object') fd = fd.fd;
  const open = () => { if (fd === null) { fd = fs.openSync(p, o.flags || 'w', o.mode); s.fd = fd; s.emit('open', fd); s.emit('ready'); } };
  const s = new Writable({ highWaterMark: o.highWaterMark, defaultEncoding: o.encoding, write(c, e, done) {
    try { open(); const n = fs.writeSync(fd, c, 0, c.length, at ?? null); if (at !== undefined) at += n; s.bytesWritten += n; done(); } catch (x) { done(x); }
  }, final(done) { try { open(); done(); } catch (e) { done(e); } }, destroy(e, done) { try { if (fd !== null && o.autoClose !== false) fs.closeSync(fd); } catch (x) { e ||= x; } fd = null; done(e); } });
  s.path = p; s.bytesWritten = 0; s.close = (f) => { if (f) s.once('close', f); s.end(); };
  setImmediate(() => { try { if (!s.destroyed) open(); } catch (e) { s.destroy(e); } });
  return s;
}
module.exports = Object.assign(Stream, { Stream, Readable, Writable, Duplex, Transform, PassThrough, finished, pipeline, promises, standard, fileReader, fileWriter });
})
