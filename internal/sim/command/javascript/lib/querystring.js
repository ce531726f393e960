(function (shared, module) {
'use strict';
const escape = (s) => encodeURIComponent(s);
const unescape = (s) => { try { return decodeURIComponent(s); } catch { return s; } };
const text = (v) => typeof v === 'string' ? v : typeof v === 'number' && isFinite(v) || typeof v === 'bigint' || typeof v === 'boolean' ? String(v) : '';
const stringify = (o, sep = '&', eq = '=', { encodeURIComponent: e = escape } = {}) => Object.keys(o || {}).map((k) => Array.isArray(o[k]) ? o[k].map((v) => e(k) + eq + e(text(v))).join(sep) : e(k) + eq + e(text(o[k]))).filter(Boolean).join(sep);
function parse(s, sep = '&', eq = '=', { maxKeys = 1000, decodeURIComponent: d = unescape } = {}) {
  const out = Object.create(null);
  const l = String(s).split(sep).filter(Boolean);
  for (const p of maxKeys > 0 ? l.slice(0, maxKeys) : l) {
    const i = p.indexOf(eq);
    const [k, v] = (i < 0 ? [p, ''] : [p.slice(0, i), p.slice(i + eq.length)]).map((x) => d(x.replaceAll('+', ' ')));
    if (k in out) out[k] = [].concat(out[k], v); else out[k] = v;
  }
  return out;
}
module.exports = { escape, unescape, stringify, parse, encode: stringify, decode: parse };
})
