(function (shared, module) {
'use strict';
const { host } = shared;
const encodings = { utf8: 'utf8', 'utf-8': 'utf8', ucs2: 'utf16le', 'ucs-2': 'utf16le', utf16le: 'utf16le', 'utf-16le': 'utf16le', latin1: 'latin1', binary: 'latin1', ascii: 'ascii', hex: 'hex', base64: 'base64', base64url: 'base64url' };
function encodingOf(e) {
  const name = encodings[String(e ?? 'utf8').toLowerCase()];
  if (!name) { const err = new TypeError(`Unknown encoding: ${e}`); err.code = 'ERR_UNKNOWN_ENCODING'; throw err; }
  return name;
}
class Buffer extends Uint8Array {
  toString(encoding, start = 0, end = this.length) {
    start = Math.max(0, start | 0); end = Math.min(this.length, end);
    if (end <= start) return '';
    return host.decode(this.buffer, this.byteOffset + start, end - start, encodingOf(encoding));
  }
  toLocaleString(e) { return this.toString(e); }
  toJSON() { return { type: 'Buffer', data: [...this] }; }
  equals(b) { return Buffer.compare(this, b) === 0; }
  compare(b, ts = 0, te = b.length, ss = 0, se = this.length) { return Buffer.compare(this.subarray(ss, se), bytes(b).subarray(ts, te)); }
  write(s, offset = 0, length, encoding) {
    if (typeof offset === 'string') { encoding = offset; offset = 0; length = undefined; } else if (typeof length === 'string') { encoding = length; length = undefined; }
    let b = new Uint8Array(host.encode(s, encodingOf(encoding)));
    let n = Math.min(b.length, length ?? this.length - offset, this.length - offset);
    if (n < b.length && encodingOf(encoding) === 'utf8') while (n > 0 && (b[n] & 0xc0) === 0x80) n--;
    this.set(b.subarray(0, n), offset);
    return n;
  }
  copy(to, at = 0, start = 0, end = this.length) { const part = this.subarray(start, Math.min(end, start + to.length - at)); to.set(part, at); return part.length; }
  slice(a, b) { return this.subarray(a, b); }
  fill(v, start = 0, end = this.length, encoding) {
    if (typeof start === 'string') { encoding = start; start = 0; end = this.length; } else if (typeof end === 'string') { encoding = end; end = this.length; }
    if (typeof v === 'number') return super.fill(v & 255, start, end);
    const b = typeof v === 'string' ? Buffer.from(v, encoding) : v;
    if (!b.length) return super.fill(0, start, end);
    for (let i = start, j = 0; i < end; i++, j = (j + 1) % b.length) this[i] = b[j];
    return this;
  }
  indexOf(v, from = 0, encoding) { return search(this, v, from, encoding, false); }
  lastIndexOf(v, from = this.length, encoding) { return search(this, v, from, encoding, true); }
  includes(v, from, encoding) { return this.indexOf(v, from, encoding) >= 0; }
  swap16() { for (let i = 0; i + 1 < this.length; i += 2) [this[i], this[i + 1]] = [this[i + 1], this[i]]; return this; }
  swap32() { for (let i = 0; i + 3 < this.length; i += 4) this.subarray(i, i + 4).reverse(); return this; }
  swap64() { for (let i = 0; i + 7 < this.length; i += 8) this.subarray(i, i + 8).reverse(); return this; }
  get parent() { return this.buffer; }
  readUIntBE(o, n) { let v = 0; for (let i = 0; i < n; i++) v = v * 256 + this[o + i]; return v; }
  readUIntLE(o, n) { let v = 0; for (let i = n - 1; i >= 0; i--) v = v * 256 + this[o + i]; return v; }
  readIntBE(o, n) { const v = this.readUIntBE(o, n); return v >= 2 ** (8 * n - 1) ? v - 2 ** (8 * n) : v; }
  readIntLE(o, n) { const v = this.readUIntLE(o, n); return v >= 2 ** (8 * n - 1) ? v - 2 ** (8 * n) : v; }
  writeUIntBE(v, o, n) { for (let i = n - 1; i >= 0; i--) { this[o + i] = v % 256; v = Math.floor(v / 256); } return o + n; }
  writeUIntLE(v, o, n) { for (let i = 0; i < n; i++) { this[o + i] = v % 256; v = Math.floor(v / 256); } return o + n; }
  writeIntBE(v, o, n) { return this.writeUIntBE(v < 0 ? v + 2 ** (8 * n) : v, o, n); }
  writeIntLE(v, o, n) { return this.writeUIntLE(v < 0 ? v + 2 ** (8 * n) : v, o, n); }
  [Symbol.for('nodejs.util.inspect.custom')]() {
    const n = Math.min(this.length, 50);
    let s = '';
    for (let i = 0; i < n; i++) s += ' ' + this[i].toString(16).padStart(2, '0');
    return `<${this.constructor.name}${s}${this.length > n ? ` ... ${this.length - n} more byte${this.length - n > 1 ? 's' : ''}` : ''}>`;
  }
}
for (const [name, method, size] of [['Int8', 'Int8', 1], ['UInt8', 'Uint8', 1], ['Int16', 'Int16', 2], ['UInt16', 'Uint16', 2], ['Int32', 'Int32', 4], ['UInt32', 'Uint32', 4], ['Float', 'Float32', 4], ['Double', 'Float64', 8], ['BigInt64', 'BigInt64', 8], ['BigUInt64', 'BigUint64', 8]]) {
  for (const end of size === 1 ? [''] : ['LE', 'BE']) {
    const range = (b, o) => { if (typeof o !== 'number') throw shared.badType('offset', 'number', o); if (o < 0 || o + size > b.length) { const e = new RangeError(b.length < size ? 'Attempt to access memory outside buffer bounds' : `The value of "offset" is out of range. It must be >= 0 and <= ${b.length - size}. Received ${o}`); e.code = b.length < size ? 'ERR_BUFFER_OUT_OF_BOUNDS' : 'ERR_OUT_OF_RANGE'; throw e; } };
    const read = function (o = 0) { range(this, o); return new DataView(this.buffer, this.byteOffset, this.length)['get' + method](o, end === 'LE'); };
    const write = function (v, o = 0) { range(this, o); new DataView(this.buffer, this.byteOffset, this.length)['set' + method](o, v, end === 'LE'); return o + size; };
    for (const n of new Set([name, name.replace('UInt', 'Uint')])) {
      Object.defineProperty(Buffer.prototype, `read${n}${end}`, { value: read, writable: true, configurable: true });
      Object.defineProperty(Buffer.prototype, `write${n}${end}`, { value: write, writable: true, configurable: true });
    }
  }
}
const wrap = (ab) => new Buffer(ab, 0, ab.byteLength);
const bytes = (v) => v instanceof Uint8Array ? v : ArrayBuffer.isView(v) ? new Uint8Array(v.buffer, v.byteOffset, v.byteLength) : new Uint8Array(v);
function search(b, v, from, encoding, last) {
  if (typeof from === 'string') { encoding = from; from = last ? b.length : 0; }
  if (typeof v === 'number') return last ? Uint8Array.prototype.lastIndexOf.call(b, v & 255, from) : Uint8Array.prototype.indexOf.call(b, v & 255, from);
  const p = typeof v === 'string' ? Buffer.from(v, encoding) : v;
  return host.findBytes(b.buffer, b.byteOffset, b.length, p.buffer, p.byteOffset, p.length, from < 0 ? Math.max(0, from + b.length) : Math.min(from, b.length), last);
}
const B = function Buffer_(v, e, l) { return typeof v === 'number' ? Buffer.alloc(v) : Buffer.from(v, e, l); };
Object.assign(Buffer, {
  from_(v, encoding, length) {
    if (typeof v === 'string') return wrap(host.encode(v, encodingOf(encoding)));
    if (v instanceof ArrayBuffer || v instanceof SharedArrayBuffer) return new Buffer(v, encoding ?? 0, length ?? v.byteLength - (encoding ?? 0));
    if (v == null || typeof v === 'number' || typeof v === 'boolean') throw shared.badType('first argument', ['string', 'Buffer', 'ArrayBuffer', 'Array', 'Array-like Object'], v).message.replace('The "first argument" argument', 'The first argument') && fix(v);
    if (v.type === 'Buffer' && Array.isArray(v.data)) v = v.data;
    if (typeof v.valueOf() === 'string') return Buffer.from(v.valueOf(), encoding);
    const b = new Buffer(v.length >>> 0);
    if (ArrayBuffer.isView(v)) b.set(v); else for (let i = 0; i < b.length; i++) b[i] = v[i] & 255;
    return b;
  },
  alloc(n, fill, encoding) { size(n); const b = new Buffer(n); if (fill !== undefined && fill !== 0) b.fill(fill, encoding); return b; },
  allocUnsafe(n) { size(n); return new Buffer(n); }, allocUnsafeSlow(n) { size(n); return new Buffer(n); },
  concat(list, total = list.reduce((n, b) => n + b.length, 0)) {
    const out = new Buffer(total);
    let at = 0;
    for (const b of list) { if (at >= total) break; out.set(at + b.length > total ? b.subarray(0, total - at) : b, at); at += b.length; }
    return out;
  },
  isBuffer: (b) => b instanceof Buffer, isEncoding: (e) => typeof e === 'string' && e.toLowerCase() in encodings,
  byteLength: (s, encoding) => typeof s === 'string' ? host.encode(s, encodingOf(encoding)).byteLength : s.byteLength,
  compare(a, b) { const n = Math.min(a.length, b.length); for (let i = 0; i < n; i++) if (a[i] !== b[i]) return a[i] < b[i] ? -1 : 1; return a.length === b.length ? 0 : a.length < b.length ? -1 : 1; },
  poolSize: 8192,
});
function size(n) { if (typeof n !== 'number') throw shared.badType('size', 'number', n); if (!(n >= 0 && n <= 2 ** 32)) { const e = new RangeError(`The value of "size" is out of range. It must be >= 0 && <= 4294967296. Received ${n}`); e.code = 'ERR_OUT_OF_RANGE'; throw e; } }
function fix(v) { const e = shared.badType('first', ['string', 'Buffer', 'ArrayBuffer', 'Array', 'Array-like Object'], v); e.message = 'The first argument must be of type string or an instance of Buffer, ArrayBuffer, or Array or an Array-like Object.' + e.message.slice(e.message.indexOf(' Received')); throw e; }
Object.defineProperty(Buffer, 'from', { value: Buffer.from_, writable: true, configurable: true });
delete Buffer.from_;
Object.defineProperty(Buffer, 'of', { value: (...a) => Buffer.from(a), writable: true, configurable: true });
// Buffer may be called without new.
const callable = new Proxy(Buffer, { apply: (_, __, args) => B(...args), construct: (t, args, n) => typeof args[0] === 'string' || Array.isArray(args[0]) ? Buffer.from(...args) : Reflect.construct(t, args, n === callable ? Buffer : n) });
Buffer.prototype.constructor = Buffer;
class Blob {
  constructor(parts = [], o = {}) { this.type = o.type || ''; this.data = Buffer.concat(parts.map((p) => typeof p === 'string' ? Buffer.from(p) : p instanceof Blob ? p.data : bytes(p))); }
  get size() { return this.data.length; }
  async text() { return this.data.toString(); }
  async arrayBuffer() { return new Uint8Array(this.data).buffer; }
  slice(a, b, type) { return new Blob([this.data.subarray(a, b)], { type }); }
}
module.exports = {
  Buffer: callable, wrap, bytes, encodingOf, Blob, kMaxLength: 2 ** 32, constants: { MAX_LENGTH: 2 ** 32, MAX_STRING_LENGTH: 2 ** 30 - 1 },
  atob(s) { s = String(s).replace(/[\t\n\f\r ]/g, ''); if (!/^[A-Za-z0-9+/]*={0,2}$/.test(s) || s.replace(/=+$/, '').length % 4 === 1) { const D = DOMException; throw new D('The string to be decoded is not correctly encoded.', 'InvalidCharacterError'); } return Buffer.from(s, 'base64').toString('latin1'); },
  btoa(s) { s = String(s); for (let i = 0; i < s.length; i++) if (s.charCodeAt(i) > 255) { const D = DOMException; throw new D('Invalid character', 'InvalidCharacterError'); } return Buffer.from(s, 'latin1').toString('base64'); },
  transcode: (b, from, to) => Buffer.from(Buffer.from(b).toString(from), to),
};
})
