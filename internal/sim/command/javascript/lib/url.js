(function (shared, module) {
'use strict';
const { host } = shared;
const ports = { 'http:': '80', 'https:': '443', 'ftp:': '21', 'ws:': '80', 'wss:': '443', 'file:': '' };
const encodeSet = (s, extra) => { let o = ''; for (const c of s.toWellFormed()) { const n = c.codePointAt(0); o += n <= 32 || n >= 127 || extra.includes(c) ? [...new Uint8Array(host.encode(c, 'utf8'))].map((b) => '%' + b.toString(16).toUpperCase().padStart(2, '0')).join('') : c; } return o; };
const form = (s) => { let o = ''; for (const c of s.toWellFormed()) o += /[A-Za-z0-9*\-._]/.test(c) ? c : c === ' ' ? '+' : encodeSet(c, '!"#$%&\'()+,/:;<=>?@[\\]^`{|}~'); return o; };
const percent = (s) => { const b = []; const u = new Uint8Array(host.encode(s, 'utf8')); for (let i = 0; i < u.length; i++) { if (u[i] === 37 && i + 2 < u.length + 0 && /^[0-9a-f]{2}$/i.test(String.fromCharCode(u[i + 1], u[i + 2]))) { b.push(parseInt(String.fromCharCode(u[i + 1], u[i + 2]), 16)); i += 2; } else b.push(u[i]); } const a = new Uint8Array(b); return host.decode(a.buffer, 0, a.length, 'utf8'); };
function invalid(input, base) { const e = new TypeError('Invalid URL'); e.code = 'ERR_INVALID_URL'; e.input = input; if (base !== undefined) e.base = String(base); return e; }

function dots(path) {
  const out = [];
  const segments = path.split('/');
  segments.shift();
  segments.forEach((s, i) => {
    const last = i === segments.length - 1, l = s.toLowerCase().replaceAll('%2e', '.');
    if (l === '..') { out.pop(); if (last) out.push(''); } else if (l === '.') { if (last) out.push(''); } else out.push(s);
  });
  return '/' + out.join('/');
}
function hostOf(h, special) {
  if (h.startsWith('[')) { if (!/^\[[0-9a-fA-F:.]+\]$/.test(h)) return null; return h.toLowerCase(); }
  if (!special) return /[\0\t\n\r #/<>?@[\\\]^|]/.test(h) ? null : encodeSet(h, '');
  h = percent(h).toLowerCase();
  if (/[^\0-\x7f]/.test(h)) { h = host.puny(h); }
  if (h === '' || /[\0-\x20"#%/:<>?@[\\\]^`{|}\x7f]/.test(h)) return null;
  const parts = h.replace(/\.$/, '').split('.');
  if (/^(0x[0-9a-f]*|\d+)$/.test(parts[parts.length - 1])) {
    if (parts.length > 4) return null;
    const n = parts.map((p) => /^0x/.test(p) ? parseInt(p.slice(2) || '0', 16) : /^0[0-7]*$/.test(p) ? parseInt(p, 8) : /^\d+$/.test(p) ? +p : NaN);
    if (n.some((v) => Number.isNaN(v)) || n.slice(0, -1).some((v) => v > 255) || n[n.length - 1] >= 256 ** (5 - n.length)) return null;
    let v = n[n.length - 1];
    n.slice(0, -1).forEach((x, i) => { v += x * 256 ** (3 - i); });
    return [24, 16, 8, 0].map((s) => Math.floor(v / 2 ** s) % 256).join('.');
  }
  return h;
}
function parse(input, base) {
  let s = input.trim().replace(/[\t\n\r]/g, '');
  const u = { protocol: '', username: '', password: '', hostname: null, port: '', pathname: '', search: '', hash: '', opaque: false };
  let m = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(s);
  const cut = (mark) => { const i = s.indexOf(mark); if (i < 0) return null; const r = s.slice(i); s = s.slice(0, i); return r; };
  let hash = cut('#'), query = cut('?');
  const frag = (h) => h === null || h === '#' ? '' : '#' + encodeSet(h.slice(1), '"<>`');
  const q = (t, special) => t === null || t === '?' ? '' : '?' + encodeSet(t.slice(1), special ? '"#<>\'' : '"#<>');
  u.hash = frag(hash);
  const authority = (rest, special) => {
    const cutAt = rest.search(special ? /[/\\]/ : /\//);
    let a = cutAt < 0 ? rest : rest.slice(0, cutAt);
    const path = cutAt < 0 ? '' : rest.slice(cutAt);
    const at = a.lastIndexOf('@');
    if (at >= 0) { const cred = a.slice(0, at); a = a.slice(at + 1); const c = cred.indexOf(':'); u.username = encodeSet(c < 0 ? cred : cred.slice(0, c), '"#<>?`{}/:;=@[\\]^|'); u.password = c < 0 ? '' : encodeSet(cred.slice(c + 1), '"#<>?`{}/:;=@[\\]^|'); }
    const p = /:(\d*)$/.exec(a);
    if (p && !(a.startsWith('[') && !a.includes(']'))) { a = a.slice(0, p.index); if (p[1] !== '') { const n = +p[1]; if (n > 65535) return false; u.port = String(n) === ports[u.protocol] ? '' : String(n); } } else if (/:[^\]]*$/.test(a) && !a.startsWith('[')) return false;
    if (u.protocol === 'file:') { u.hostname = a === '' || a === 'localhost' ? '' : hostOf(a, true); } else { if (a === '' && special) return false; u.hostname = a === '' ? '' : hostOf(a, special); }
    if (u.hostname === null) return false;
    u.pathname = special ? dots(encodeSet((path || '/').replaceAll('\\', '/'), '"#<>?`{}')) : path === '' ? '' : dots(encodeSet(path, '"#<>?`{}'));
    return true;
  };
  if (m) {
    u.protocol = m[1].toLowerCase() + ':';
    const special = u.protocol in ports;
    s = s.slice(m[0].length);
    u.search = q(query, special);
    if (special) {
      if (base && base.protocol === u.protocol && !/^[/\\]/.test(s)) return relative(base);
      if (u.protocol === 'file:') { const t = s.replaceAll('\\', '/'); if (t.startsWith('//')) return authority(t.slice(2), true) ? u : null; u.hostname = ''; u.pathname = dots(encodeSet(t.startsWith('/') ? t : '/' + t, '"#<>?`{}')); return u; }
      return authority(s.replace(/^[/\\]*/, ''), true) ? u : null;
    }
    if (s.startsWith('//')) return authority(s.slice(2), false) ? u : null;
    if (s.startsWith('/')) { u.pathname = dots(encodeSet(s, '"#<>?`{}')); return u; }
    u.pathname = encodeSet(s, '').replaceAll('%20', ' ');
    u.opaque = true;
    return u;
  }
  if (!base) return null;
  return relative(base);
  function relative(b) {
    if (b.opaque) { if (s === '' && query === null && hash !== null) return { ...b, hash: frag(hash) }; return null; }
    const special = b.protocol in ports;
    u.protocol = b.protocol;
    u.search = q(query, special);
    const t = special ? s.replaceAll('\\', '/') : s;
    if (t.startsWith('//')) return authority(t.slice(2), special) ? u : null;
    for (const k of ['username', 'password', 'hostname', 'port']) u[k] = b[k];
    if (t === '') { u.pathname = b.pathname; if (query === null) u.search = b.search; return u; }
    u.pathname = dots(encodeSet(t.startsWith('/') ? t : b.pathname.slice(0, b.pathname.lastIndexOf('/') + 1) + t, '"#<>?`{}'));
    return u;
  }
}
class URLSearchParams {
  #list = []; #url = null;
  constructor(init, url) {
    if (url) this.#url = url;
    if (init === undefined || init === null) return;
    if (typeof init === 'object' || typeof init === 'function') {
      if (typeof init[Symbol.iterator] === 'function') for (const p of init) { const l = [...p]; if (l.length !== 2) { const e = new TypeError('Each query pair must be an iterable [name, value] tuple'); e.code = 'ERR_INVALID_TUPLE'; throw e; } this.#list.push([String(l[0]), String(l[1])]); } else for (const k of Object.keys(init)) this.#list.push([k, String(init[k])]);
      return;
    }
    this.#parse(String(init).replace(/^\?/, ''));
  }
  #parse(s) { this.#list = s.split('&').filter(Boolean).map((p) => { const i = p.indexOf('='); return (i < 0 ? [p, ''] : [p.slice(0, i), p.slice(i + 1)]).map((x) => percent(x.replaceAll('+', ' '))); }); }
  static reset(p, s) { p.#parse(s); }
  #changed() { if (this.#url) this.#url(this.toString()); }
  get size() { return this.#list.length; }
  append(k, v) { this.#list.push([String(k), String(v)]); this.#changed(); }
  delete(k, v) { this.#list = this.#list.filter(([a, b]) => a !== String(k) || v !== undefined && b !== String(v)); this.#changed(); }
  get(k) { const p = this.#list.find(([a]) => a === String(k)); return p ? p[1] : null; }
  getAll(k) { return this.#list.filter(([a]) => a === String(k)).map(([, b]) => b); }
  has(k, v) { return this.#list.some(([a, b]) => a === String(k) && (v === undefined || b === String(v))); }
  set(k, v) { const i = this.#list.findIndex(([a]) => a === String(k)); if (i < 0) this.#list.push([String(k), String(v)]); else { this.#list[i][1] = String(v); this.#list = this.#list.filter(([a], j) => j <= i || a !== String(k)); } this.#changed(); }
  sort() { this.#list.sort(([a], [b]) => a < b ? -1 : a > b ? 1 : 0); this.#changed(); }
  forEach(f, self) { for (const [k, v] of this.#list) f.call(self, v, k, this); }
  *entries() { for (const [k, v] of this.#list) yield [k, v]; }
  *keys() { for (const [k] of this.#list) yield k; }
  *values() { for (const [, v] of this.#list) yield v; }
  [Symbol.iterator]() { return this.entries(); }
  toString() { return this.#list.map(([k, v]) => `${form(k)}=${form(v)}`).join('&'); }
  [Symbol.for('nodejs.util.inspect.custom')](d, o, inspect) { return this.#list.length ? `URLSearchParams { ${this.#list.map(([k, v]) => `${inspect(k)} => ${inspect(v)}`).join(', ')} }` : 'URLSearchParams {}'; }
}
class URL {
  #u; #params = null;
  constructor(input, base) {
    let b;
    if (base !== undefined) { b = parse(String(base)); if (!b) throw invalid(String(input), base); }
    this.#u = parse(String(input), b);
    if (!this.#u) throw invalid(String(input), base);
  }
  static canParse(i, b) { try { new URL(i, b); return true; } catch { return false; } }
  static parse(i, b) { try { return new URL(i, b); } catch { return null; } }
  get href() { const u = this.#u; return u.protocol + (u.hostname !== null ? '//' + (u.username || u.password ? u.username + (u.password ? ':' + u.password : '') + '@' : '') + this.host : '') + u.pathname + u.search + u.hash; }
  set href(v) { const u = parse(String(v)); if (!u) throw invalid(String(v)); this.#u = u; if (this.#params) URLSearchParams.reset(this.#params, u.search.slice(1)); }
  get origin() { const u = this.#u; return u.protocol in ports && u.protocol !== 'file:' ? `${u.protocol}//${this.host}` : 'null'; }
  get host() { const u = this.#u; return (u.hostname ?? '') + (u.port ? ':' + u.port : ''); }
  set host(v) { const m = /^(.*?)(?::(\d+))?$/.exec(String(v)); const h = hostOf(m[1], this.#u.protocol in ports); if (h !== null) { this.#u.hostname = h; if (m[2] !== undefined) this.port = m[2]; } }
  get hostname() { return this.#u.hostname ?? ''; } set hostname(v) { const h = hostOf(String(v), this.#u.protocol in ports); if (h !== null) this.#u.hostname = h; }
  get port() { return this.#u.port; } set port(v) { v = String(v); if (v === '' || /^\d+/.test(v) && parseInt(v, 10) < 65536) this.#u.port = v === '' || String(parseInt(v, 10)) === ports[this.#u.protocol] ? '' : String(parseInt(v, 10)); }
  get protocol() { return this.#u.protocol; } set protocol(v) { v = String(v).toLowerCase().replace(/:.*$/, '') + ':'; if (v in ports === this.#u.protocol in ports) { this.#u.protocol = v; if (this.#u.port === ports[v]) this.#u.port = ''; } }
  get username() { return this.#u.username; } set username(v) { this.#u.username = encodeSet(String(v), '"#<>?`{}/:;=@[\\]^|'); }
  get password() { return this.#u.password; } set password(v) { this.#u.password = encodeSet(String(v), '"#<>?`{}/:;=@[\\]^|'); }
  get pathname() { return this.#u.pathname; } set pathname(v) { if (!this.#u.opaque) this.#u.pathname = dots(encodeSet(String(v).startsWith('/') ? String(v) : '/' + v, '"#<>?`{}')); }
  get search() { return this.#u.search; } set search(v) { v = String(v).replace(/^\?/, ''); this.#u.search = v ? '?' + encodeSet(v, '"#<>\'') : ''; if (this.#params) URLSearchParams.reset(this.#params, v); }
  get hash() { return this.#u.hash; } set hash(v) { v = String(v).replace(/^#/, ''); this.#u.hash = v ? '#' + encodeSet(v, '"<>`') : ''; }
  get searchParams() { return this.#params ||= new URLSearchParams(this.#u.search.slice(1), (s) => { this.#u.search = s ? '?' + s : ''; }); }
  toString() { return this.href; }
  toJSON() { return this.href; }
  [Symbol.for('nodejs.util.inspect.custom')](d, o, inspect) {
    const p = {};
    for (const k of ['href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'searchParams', 'hash']) p[k] = this[k];
    return `URL ${inspect(p, o)}`;
  }
}
for (const k of ['href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'searchParams', 'hash', 'toString', 'toJSON']) Object.defineProperty(URL.prototype, k, { ...Object.getOwnPropertyDescriptor(URL.prototype, k), enumerable: true });
function fileURLToPath(u) {
  if (typeof u === 'string') u = new URL(u);
  if (u.protocol !== 'file:') { const e = new TypeError('The URL must be of scheme file'); e.code = 'ERR_INVALID_URL_SCHEME'; throw e; }
  return percent(u.pathname);
}
function old(s, query) {
  const m = /^\s*([a-zA-Z][a-zA-Z0-9+.-]*:)?(\/\/(?:([^/?#]*)@)?([^/?#:]*)(?::(\d+))?)?([^?#]*)(\?[^#]*)?(#.*)?\s*$/s.exec(s) || [];
  const path = m[6] || (m[2] && /^(https?|ftp|ws):/.test(m[1] || '') ? '/' : null) || null;
  const search = m[7] || null;
  return { protocol: m[1] || null, slashes: m[2] ? true : null, auth: m[3] || null, host: m[2] ? (m[4] || '').toLowerCase() + (m[5] ? ':' + m[5] : '') : null, port: m[5] || null, hostname: m[2] ? (m[4] || '').toLowerCase() : null, hash: m[8] || null, search, query: query ? Object.assign(Object.create(null), Object.fromEntries(new URLSearchParams(search || ''))) : search ? search.slice(1) : null, pathname: path, path: path || search ? (path || '') + (search || '') : null, href: s.trim() };
}
module.exports = {
  URL, URLSearchParams, fileURLToPath, pathToFileURL: (p) => { const u = new URL('file:///'); u.pathname = encodeSet((p.startsWith('/') ? p : host.cwd() + '/' + p).replaceAll('%', '%25'), '"#<>?`{}\\'); return u; },
  parse: old, resolve: (a, b) => { try { return new URL(b, a).href; } catch { const u = new URL(b, new URL(a, 'resolve://x/')); return u.protocol === 'resolve:' ? u.pathname + u.search + u.hash : u.href; } },
  format: (u) => typeof u === 'string' ? u : u instanceof URL ? u.href : (u.protocol ? u.protocol.replace(/:?$/, ':') : '') + (u.slashes || /^(https?|ftp|file):?$/.test(u.protocol || '') ? '//' : '') + (u.auth ? u.auth + '@' : '') + (u.host || (u.hostname || '') + (u.port ? ':' + u.port : '')) + (u.pathname || '') + (u.search || (u.query && typeof u.query === 'object' && Object.keys(u.query).length ? '?' + new URLSearchParams(u.query) : '')) + (u.hash || ''),
  domainToASCII: (s) => hostOf(s, true) ?? '', domainToUnicode: (s) => s, urlToHttpOptions: (u) => ({ protocol: u.protocol, hostname: u.hostname, path: u.pathname + u.search, href: u.href }),
};
})
