(function (shared, module) {
'use strict';
class StringDecoder {
  constructor(encoding = 'utf8') { this.encoding = String(encoding).toLowerCase().replace(/^utf-8$/, 'utf8'); this.rest = Buffer.alloc(0); }
  write(b) {
    if (typeof b === 'string') return b;
    if (this.rest.length) b = Buffer.concat([this.rest, b]);
    let n = b.length;
    if (this.encoding === 'utf8') n = shared.host.whole(b.buffer, b.byteOffset, b.length);
    else if (/^(utf-?16le|ucs-?2)$/.test(this.encoding)) { n -= n % 2; if (n >= 2 && (b[n - 1] & 0xfc) === 0xd8) n -= 2; } else if (this.encoding.startsWith('base64')) n -= n % 3;
    this.rest = Buffer.from(b.subarray(n));
    return Buffer.from(b.buffer, b.byteOffset, n).toString(this.encoding);
  }
  end(b) { const s = b ? this.write(b) : ''; const r = this.rest.toString(this.encoding); this.rest = Buffer.alloc(0); return s + r; }
}
module.exports = { StringDecoder };
})
