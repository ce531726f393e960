(function (shared, module, _, builtin) {
'use strict';
const { host } = shared;
const view = (v, e) => typeof v === 'string' ? Buffer.from(v, e) : v instanceof ArrayBuffer ? new Uint8Array(v) : ArrayBuffer.isView(v) ? v : (() => { throw shared.badType('data', ['string', 'Buffer', 'TypedArray', 'DataView'], v); })();
const out = (b, e) => e && e !== 'buffer' ? b.toString(e) : b;
const wrap = (ab) => builtin('buffer').wrap(ab);
class Hash extends builtin('stream').Transform {
  constructor(name, key) { super(); const k = key === undefined ? undefined : view(key); Object.defineProperty(this, 'id', { value: host.hash(String(name), k ? k.buffer : undefined, k ? k.byteOffset : 0, k ? k.byteLength : 0) }); this.over = false; }
  update(d, e) { if (this.over) { const err = new Error('Digest already called'); err.code = 'ERR_CRYPTO_HASH_FINALIZED'; throw err; } const b = view(d, e); host.hashUpdate(this.id, b.buffer, b.byteOffset, b.byteLength); return this; }
  digest(e) { if (this.over) { const err = new Error('Digest already called'); err.code = 'ERR_CRYPTO_HASH_FINALIZED'; throw err; } this.over = true; return out(wrap(host.hashSum(this.id)), e); }
  _transform(c, e, done) { this.update(c, e); done(); }
  _flush(done) { done(null, this.digest()); }
}
const names = ['md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512', 'sha512-256'];
const randomBytes = (n, done) => { const b = wrap(host.random(n)); if (done) { setImmediate(done, null, b); return undefined; } return b; };
function fill(b) { const r = new Uint8Array(host.random(b.byteLength)); new Uint8Array(b.buffer, b.byteOffset, b.byteLength).set(r); return b; }
function randomInt(a, b, done) { if (b === undefined || typeof b === 'function') { done = b; b = a; a = 0; } const span = b - a; if (!(span > 0)) { const e = new RangeError(`The value of "max" is out of range. It must be greater than the value of "min" (${a}). Received ${b}`); e.code = 'ERR_OUT_OF_RANGE'; throw e; } const limit = 2 ** 48 - 2 ** 48 % span; let n; do { n = randomBytes(6).readUIntBE(0, 6); } while (n >= limit); n = a + n % span; if (done) setImmediate(done, null, n); else return n; }
function randomUUID() { const h = () => { const b = randomBytes(16); b[6] = b[6] & 15 | 64; b[8] = b[8] & 63 | 128; return b.toString('hex'); }; const s = h(); return `${s.slice(0, 8)}-${s.slice(8, 12)}-${s.slice(12, 16)}-${s.slice(16, 20)}-${s.slice(20)}`; }
function pbkdf2Sync(p, s, n, size, digest) { p = view(p); s = view(s); return wrap(host.pbkdf2(p.buffer, p.byteOffset, p.byteLength, s.buffer, s.byteOffset, s.byteLength, n, size, digest)); }
const algorithm = (a) => (typeof a === 'string' ? a : a.name).replace('-', '').toLowerCase();
const webcrypto = { getRandomValues: fill, randomUUID, subtle: { async digest(a, d) { const b = new Hash(algorithm(a)).update(ArrayBuffer.isView(d) ? new Uint8Array(d.buffer, d.byteOffset, d.byteLength) : new Uint8Array(d)).digest(); return new Uint8Array(b).buffer; } } };
module.exports = {
  createHash: (n) => new Hash(n), createHmac: (n, key) => new Hash(n, key), getHashes: () => [...names], hash: (n, d, e = 'hex') => new Hash(n).update(d).digest(e), Hash, randomBytes, randomFillSync: fill, randomInt, randomUUID, webcrypto, subtle: webcrypto.subtle, getRandomValues: fill,
  timingSafeEqual(a, b) { if (a.byteLength !== b.byteLength) { const e = new RangeError('Input buffers must have the same byte length'); e.code = 'ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH'; throw e; } let d = 0; for (let i = 0; i < a.length; i++) d |= a[i] ^ b[i]; return d === 0; },
  pbkdf2Sync, pbkdf2: (...a) => { const done = a.pop(); let r; try { r = pbkdf2Sync(...a); } catch (e) { setImmediate(done, e); return; } setImmediate(done, null, r); },
};
})
