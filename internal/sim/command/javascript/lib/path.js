(function (shared, module) {
'use strict';
const check = (p, name = 'path') => { if (typeof p !== 'string') throw shared.badType(name, 'string', p); return p; };
function parts(p, absolute) {
  const out = [];
  for (const s of p.split('/')) {
    if (s === '' || s === '.') continue;
    if (s === '..') { if (out.length && out[out.length - 1] !== '..') out.pop(); else if (!absolute) out.push('..'); } else out.push(s);
  }
  return out;
}
const path = {
  sep: '/', delimiter: ':',
  normalize(p) {
    check(p);
    if (!p) return '.';
    const absolute = p[0] === '/', tail = p.endsWith('/');
    let s = parts(p, absolute).join('/');
    if (!s && !absolute) s = '.';
    if (s && tail) s += '/';
    return absolute ? '/' + s : s;
  },
  join(...list) { list.forEach((p) => check(p)); const s = list.filter(Boolean).join('/'); return s ? path.normalize(s) : '.'; },
  resolve(...list) {
    let s = '';
    for (let i = list.length - 1; i >= 0 && s[0] !== '/'; i--) { check(list[i], `paths[${i}]`); if (list[i]) s = s ? list[i] + '/' + s : list[i]; }
    if (s[0] !== '/') s = shared.host.cwd() + '/' + s;
    return '/' + parts(s, true).join('/');
  },
  isAbsolute: (p) => check(p)[0] === '/',
  relative(from, to) {
    const a = parts(path.resolve(check(from, 'from')), true), b = parts(path.resolve(check(to, 'to')), true);
    let n = 0;
    while (n < a.length && n < b.length && a[n] === b[n]) n++;
    return [...a.slice(n).map(() => '..'), ...b.slice(n)].join('/');
  },
  dirname(p) {
    check(p);
    if (!p) return '.';
    const s = p.replace(/\/+$/, '');
    if (!s) return '/';
    const i = s.lastIndexOf('/');
    if (i < 0) return '.';
    return s.slice(0, i).replace(/\/+$/, '') || (i === 1 && s[0] === '/' && s[1] === '/' ? '//' : '/');
  },
  basename(p, ext) {
    check(p);
    const s = p.replace(/\/+$/, '');
    const b = s.slice(s.lastIndexOf('/') + 1);
    return ext !== undefined && b !== ext && b.endsWith(check(ext, 'ext')) ? b.slice(0, b.length - ext.length) : b;
  },
  extname(p) { const b = path.basename(p), i = b.lastIndexOf('.'); return i <= 0 || b === '..' ? '' : b.slice(i); },
  parse(p) {
    check(p);
    const root = p[0] === '/' ? '/' : '', base = path.basename(p), ext = path.extname(p);
    let dir = path.dirname(p);
    if (dir === '.' && !p.startsWith('.')) dir = '';
    else if (dir === '.' && !p.replace(/\/+$/, '').includes('/')) dir = '';
    return { root, dir: p ? dir : '', base, ext, name: ext ? base.slice(0, base.length - ext.length) : base };
  },
  format(o) { const dir = o.dir || o.root, base = o.base || (o.name || '') + (o.ext ? (o.ext[0] === '.' ? '' : '.') + o.ext : ''); return !dir ? base : dir === o.root ? dir + base : dir + '/' + base; },
  matchesGlob: undefined, toNamespacedPath: (p) => p,
};
delete path.matchesGlob;
path.posix = path;
path.win32 = path;
module.exports = path;
})
