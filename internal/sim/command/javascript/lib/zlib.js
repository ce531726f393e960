(function (shared, module, _, builtin) {
'use strict';
const { host } = shared;
const { Transform } = builtin('stream');
const sync = (format, unpack) => (d, o = {}) => { const b = typeof d === 'string' ? Buffer.from(d) : d instanceof ArrayBuffer ? new Uint8Array(d) : d; return builtin('buffer').wrap(host.zlib(format, unpack, b.buffer, b.byteOffset, b.byteLength, o.level ?? -1)); };
const all = { gzip: ['gzip', false], gunzip: ['gzip', true], deflate: ['zlib', false], inflate: ['zlib', true], deflateRaw: ['deflate', false], inflateRaw: ['deflate', true], unzip: ['any', true] };
for (const [name, [format, unpack]] of Object.entries(all)) {
  const f = sync(format, unpack);
  module.exports[name + 'Sync'] = f;
  module.exports[name] = (d, o, done) => { if (typeof o === 'function') { done = o; o = {}; } setImmediate(() => { let r; try { r = f(d, o); } catch (e) { done(e); return; } done(null, r); }); };
  module.exports['create' + name[0].toUpperCase() + name.slice(1)] = (o) => { const parts = []; return new Transform({ transform(c, e, done) { parts.push(c); done(); }, flush(done) { try { done(null, f(Buffer.concat(parts), o)); } catch (e) { done(e); } } }); };
}
module.exports.crc32 = (d, v = 0) => { const b = typeof d === 'string' ? Buffer.from(d) : d; return host.crc32(b.buffer, b.byteOffset, b.byteLength, v); };
module.exports.constants = { Z_NO_COMPRESSION: 0, Z_BEST_SPEED: 1, Z_BEST_COMPRESSION: 9, Z_DEFAULT_COMPRESSION: -1 };
})
