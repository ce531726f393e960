(function (shared, module) {
'use strict';
const { host } = shared;
const custom = Symbol.for('nodejs.util.inspect.custom');
const tag = (v) => Object.prototype.toString.call(v).slice(8, -1);
const isNamespace = (v) => v !== null && typeof v === 'object' && Object.getPrototypeOf(v) === null && tag(v) === 'Module';
const identifier = /^[a-zA-Z_$][a-zA-Z0-9_$]*$/;

function quote(s) {
  let q = "'";
  if (s.includes("'")) { if (!s.includes('"')) q = '"'; else if (!s.includes('`') && !s.includes('${')) q = '`'; }
  let out = q;
  for (const c of s) {
    const n = c.codePointAt(0);
    if (c === q || c === '\\') out += '\\' + c;
    else if (n >= 32 && n !== 127 && !(n > 127 && n < 160) && !(n >= 0xd800 && n <= 0xdfff)) out += c;
    else out += ({ 8: '\\b', 9: '\\t', 10: '\\n', 12: '\\f', 13: '\\r' })[n] || (n > 255 ? '\\u' + n.toString(16).toUpperCase().padStart(4, '0') : '\\x' + n.toString(16).toUpperCase().padStart(2, '0'));
  }
  return out + q;
}
const colours = { number: [33, 39], bigint: [33, 39], boolean: [33, 39], string: [32, 39], symbol: [32, 39], undefined: [90, 39], null: [1, 22], special: [36, 39], date: [35, 39], regexp: [31, 39], module: [4, 24] };
function paint(c, s, kind) { return c.colors && colours[kind] ? `\u001b[${colours[kind][0]}m${s}\u001b[${colours[kind][1]}m` : s; }

function primitive(c, v) {
  switch (typeof v) {
    case 'string': {
      let s = v, more = '';
      if (s.length > c.maxStringLength) { more = `... ${s.length - c.maxStringLength} more character${s.length - c.maxStringLength > 1 ? 's' : ''}`; s = s.slice(0, c.maxStringLength); }
      if (c.compact !== true && s.length > 16 && s.length > c.breakLength - c.indent - 4 && s.includes('\n')) {
        return s.split(/(?<=\n)/).map((l) => paint(c, quote(l), 'string')).join(` +\n${' '.repeat(c.indent + 2)}`) + more;
      }
      return paint(c, quote(s), 'string') + more;
    }
    case 'number': return paint(c, number(v, c), 'number');
    case 'bigint': return paint(c, grouped(String(v), c) + 'n', 'bigint');
    case 'boolean': return paint(c, String(v), 'boolean');
    case 'symbol': return paint(c, symbolText(v), 'symbol');
    case 'undefined': return paint(c, 'undefined', 'undefined');
  }
  return paint(c, 'null', 'null');
}
function symbolText(v) { return String(v); }
function grouped(s, c) { return c.numericSeparator ? s.replace(/\B(?=(\d{3})+(?!\d))/g, '_') : s; }
function number(v, c) { return Object.is(v, -0) ? '-0' : c.numericSeparator && Number.isInteger(v) ? grouped(String(v), c) : String(v); }

function constructorName(v) {
  for (let o = v, first = true; o !== null; o = Object.getPrototypeOf(o), first = false) {
    const d = Object.getOwnPropertyDescriptor(o, 'constructor');
    if (d && typeof d.value === 'function' && d.value.name !== '' && (!first || v instanceof d.value || Object.getPrototypeOf(v) === null || o !== v)) {
      try { if (v instanceof d.value) return d.value.name; } catch { return d.value.name; }
    }
  }
  return null;
}
function prefix(v, name, fallback, size = '') {
  if (name === null) return `[${fallback}${size}: null prototype] `;
  const t = v[Symbol.toStringTag];
  const extra = typeof t === 'string' && t !== '' && t !== name ? ` [${t}]` : '';
  return `${name}${size}${extra} `;
}

function inspect(v, o, depth, colors) {
  const c = { depth: 2, showHidden: false, colors: false, breakLength: 80, compact: 3, sorted: false, getters: false, maxArrayLength: 100, maxStringLength: 10000, customInspect: true, numericSeparator: false, ...(typeof o === 'object' ? o : typeof o === 'boolean' ? { showHidden: o, ...(depth !== undefined && { depth }), ...(colors !== undefined && { colors }) } : {}) };
  if (c.depth === null) c.depth = Infinity;
  if (c.maxArrayLength === null) c.maxArrayLength = Infinity;
  if (c.maxStringLength === null) c.maxStringLength = Infinity;
  c.indent = 0; c.seen = []; c.circular = new Map(); c.level = 0; c.used = 0; c.o = o;
  return value(c, v, 0);
}
inspect.custom = custom;
inspect.defaultOptions = {};
inspect.colors = Object.fromEntries(Object.entries({ reset: [0, 0], bold: [1, 22], dim: [2, 22], italic: [3, 23], underline: [4, 24], inverse: [7, 27], black: [30, 39], red: [31, 39], green: [32, 39], yellow: [33, 39], blue: [34, 39], magenta: [35, 39], cyan: [36, 39], white: [37, 39], gray: [90, 39], grey: [90, 39] }));
inspect.styles = {};

function value(c, v, level) {
  if (v === null || typeof v !== 'object' && typeof v !== 'function') return primitive(c, v);
  const target = host.proxied(v);
  if (target !== undefined) return value(c, target, level);
  if (c.customInspect && typeof v[custom] === 'function' && v[custom] !== inspect) {
    const r = v[custom](c.depth - level, { ...c, stylize: (s, k) => paint(c, s, k), depth: c.depth === Infinity ? null : c.depth - level }, inspect);
    if (r !== v) return typeof r === 'string' ? r.replaceAll('\n', '\n' + ' '.repeat(c.indent)) : value(c, r, level);
  }
  if (c.seen.includes(v)) {
    if (!c.circular.has(v)) c.circular.set(v, c.circular.size + 1);
    return paint(c, `[Circular *${c.circular.get(v)}]`, 'special');
  }
  return object(c, v, level);
}

const isError = (v) => v instanceof Error || tag(v) === 'Error';
function keysOf(c, v) {
  const symbols = Object.getOwnPropertySymbols(v);
  if (c.showHidden) return [...Object.getOwnPropertyNames(v), ...symbols];
  return [...Object.keys(v), ...symbols.filter((s) => Object.prototype.propertyIsEnumerable.call(v, s))];
}
const index = (k) => typeof k === 'string' && /^(0|[1-9]\d*)$/.test(k) && +k < 4294967295;

function object(c, v, level) {
  const name = constructorName(v);
  let keys, base = '', braces = ['{', '}'], items = null, array = false;
  const keyless = () => keys.length === 0;
  if (Array.isArray(v)) {
    keys = keysOf(c, v).filter((k) => !index(k));
    const p = name !== 'Array' || v[Symbol.toStringTag] ? prefix(v, name, 'Array', `(${v.length})`) : '';
    braces = [p + '[', ']'];
    if (v.length === 0 && keyless()) return braces[0] + ']';
    items = arrayItems; array = true;
  } else if (v instanceof Set || tag(v) === 'Set') {
    const size = v.size;
    keys = keysOf(c, v);
    braces[0] = prefix(v, name, 'Set', `(${size})`) + '{';
    if (size === 0 && keyless()) return braces[0] + '}';
    items = (cc, x, l) => { cc.indent += 2; const out = []; let n = 0; for (const e of Set.prototype.values.call(x)) { if (n++ >= cc.maxArrayLength) { out.push(more(x.size - cc.maxArrayLength)); break; } out.push(value(cc, e, l)); } cc.indent -= 2; return out; };
  } else if (v instanceof Map || tag(v) === 'Map') {
    keys = keysOf(c, v);
    braces[0] = prefix(v, name, 'Map', `(${v.size})`) + '{';
    if (v.size === 0 && keyless()) return braces[0] + '}';
    items = (cc, x, l) => { cc.indent += 2; const out = []; let n = 0; for (const [k, e] of Map.prototype.entries.call(x)) { if (n++ >= cc.maxArrayLength) { out.push(more(x.size - cc.maxArrayLength)); break; } out.push(`${value(cc, k, l)} => ${value(cc, e, l)}`); } cc.indent -= 2; return out; };
  } else if (ArrayBuffer.isView(v) && !(v instanceof DataView)) {
    keys = keysOf(c, v).filter((k) => !index(k));
    braces = [prefix(v, name, tag(v), `(${v.length})`) + '[', ']'];
    if (v.length === 0 && keyless()) return braces[0] + ']';
    items = (cc, x) => { const out = []; const n = Math.min(x.length, cc.maxArrayLength); for (let i = 0; i < n; i++) out.push(primitive(cc, x[i])); if (x.length > n) out.push(more(x.length - n)); return out; };
    array = true;
  } else if (/^(Map|Set) Iterator$/.test(tag(v))) {
    keys = keysOf(c, v);
    return `[${tag(v)}] {  }`;
  } else {
    keys = keysOf(c, v);
    const t = tag(v);
    if (t === 'Arguments') {
      braces[0] = '[Arguments] {';
      if (keyless()) return '[Arguments] {}';
    } else if (typeof v === 'function') {
      base = functionBase(v, name);
      if (keyless()) return paint(c, base, 'special');
    } else if (v instanceof RegExp) {
      base = RegExp.prototype.toString.call(v);
      if (name !== 'RegExp') base = `${prefix(v, name, 'RegExp')}${base}`;
      if (keyless() || c.depth !== null && level > c.depth) return paint(c, base, 'regexp');
      base = paint(c, base, 'regexp');
    } else if (v instanceof Date) {
      base = Number.isNaN(v.getTime()) ? 'Invalid Date' : v.toISOString();
      if (name !== 'Date') base = `${prefix(v, name, 'Date')}${base}`;
      if (keyless()) return paint(c, base, 'date');
      base = paint(c, base, 'date');
    } else if (isError(v)) {
      base = errorBase(c, v, name, keys);
      keys = keys.filter((k) => k !== 'stack' && k !== 'message' && !(k === 'name' && typeof v.name === 'string' && base.includes(v.name)));
      for (const k of ['cause', 'errors']) if (Object.prototype.hasOwnProperty.call(v, k) && !keys.includes(k)) keys.push(k);
      if (keyless()) return base;
    } else if (t === 'ArrayBuffer' || t === 'SharedArrayBuffer') {
      braces[0] = prefix(v, name, t) + '{';
      const bytes = new Uint8Array(v), n = Math.min(bytes.length, 50);
      const hex = [...bytes.subarray(0, n)].map((b) => b.toString(16).padStart(2, '0')).join(' ') + (bytes.length > n ? ` ... ${bytes.length - n} more byte${bytes.length - n > 1 ? 's' : ''}` : '');
      items = () => [`[Uint8Contents]: <${hex}>`, `byteLength: ${paint(c, String(v.byteLength), 'number')}`];
    } else if (v instanceof DataView) {
      braces[0] = prefix(v, name, 'DataView') + '{';
      items = (cc, x, l) => [`byteLength: ${x.byteLength}`, `byteOffset: ${x.byteOffset}`, `buffer: ${value(cc, x.buffer, l)}`];
    } else if (v instanceof Promise) {
      braces[0] = prefix(v, name, 'Promise') + '{';
      items = (cc, x, l) => {
        const [state, result] = host.promise(x);
        if (state === 0) return [paint(cc, '<pending>', 'special')];
        cc.indent += 2;
        const s = value(cc, result, l);
        cc.indent -= 2;
        return [state === 2 ? `${paint(cc, '<rejected>', 'special')} ${s}` : s];
      };
    } else if (v instanceof WeakSet || v instanceof WeakMap) {
      braces[0] = prefix(v, name, t) + '{';
      items = () => [paint(c, '<items unknown>', 'special')];
    } else if (v instanceof WeakRef) {
      braces[0] = prefix(v, name, 'WeakRef') + '{';
      items = (cc, x, l) => [value(cc, x.deref(), l)];
    } else if (v instanceof Number || v instanceof String || v instanceof Boolean || t === 'BigInt' && typeof v.valueOf() === 'bigint' || t === 'Symbol' && typeof v.valueOf() === 'symbol') {
      const kind = v instanceof Number ? 'Number' : v instanceof String ? 'String' : v instanceof Boolean ? 'Boolean' : t;
      if (kind === 'String') keys = keys.filter((k) => !index(k));
      base = `[${kind}${name !== kind ? name === null ? ' (null prototype)' : ` (${name})` : ''}: ${primitive({ ...c, colors: false }, v.valueOf())}]`;
      if (keyless()) return paint(c, base, kind.toLowerCase());
    } else if (/^(Async)?Generator$/.test(t)) {
      braces[0] = `Object [${t}] {`;
    } else if (isNamespace(v)) {
      braces[0] = '[Module: null prototype] {';
    } else {
      const p = name === 'Object' && !(typeof v[Symbol.toStringTag] === 'string' && v[Symbol.toStringTag] !== '' && v[Symbol.toStringTag] !== name) ? '' : prefix(v, name, 'Object');
      braces[0] = p + '{';
      if (keyless()) return braces[0] + '}';
    }
  }
  if (level > c.depth) {
    const label = Array.isArray(v) ? 'Array' : name === null ? `${tag(v)}: null prototype` : (typeof v[Symbol.toStringTag] === 'string' && v[Symbol.toStringTag] !== name && v[Symbol.toStringTag] !== '' ? `${name} [${v[Symbol.toStringTag]}]` : name);
    return paint(c, `[${label}]`, 'special');
  }
  const next = level + 1;
  c.seen.push(v);
  c.level = next;
  const out = items ? items(c, v, next) : [];
  for (const k of keys) out.push(property(c, v, k, next, array));
  c.seen.pop();
  if (c.sorted && !array) out.sort(typeof c.sorted === 'function' ? c.sorted : undefined);
  if (c.circular.has(v)) {
    const ref = paint(c, `<ref *${c.circular.get(v)}>`, 'special');
    if (c.compact !== true) base = base === '' ? ref : `${ref} ${base}`;
    else braces[0] = `${ref} ${braces[0]}`;
  }
  return reduce(c, out, base, braces, array, next, v);
}
const more = (n) => `... ${n} more item${n > 1 ? 's' : ''}`;

function arrayItems(c, v, level) {
  const out = [];
  const n = v.length;
  let shown = 0;
  for (let i = 0; i < n && shown < c.maxArrayLength;) {
    if (!(i in v)) {
      let j = i;
      const keys = Object.keys(v);
      const following = keys.find((k) => index(k) && +k > i);
      j = following === undefined ? n : +following;
      out.push(paint(c, `<${j - i} empty item${j - i > 1 ? 's' : ''}>`, 'undefined'));
      i = j;
      shown++;
      if (shown >= c.maxArrayLength && i < n) break;
      continue;
    }
    out.push(property(c, v, i, level, 2));
    i++;
    shown++;
    if (shown >= c.maxArrayLength && i < n) out.push(more(n - i));
  }
  if (c.maxArrayLength === 0 && n) out.push(more(n));
  return out;
}

function property(c, v, k, level, kind) {
  const d = Object.getOwnPropertyDescriptor(v, k) || { value: v[k], enumerable: true };
  let s, join = ' ';
  if ('value' in d) {
    const diff = c.compact !== true || kind !== false ? 2 : 3;
    c.indent += diff;
    s = value(c, d.value, level);
    if (diff === 3 && c.breakLength < s.length) join = `\n${' '.repeat(c.indent)}`;
    c.indent -= diff;
  } else if (d.get) {
    s = paint(c, d.set ? '[Getter/Setter]' : '[Getter]', 'special');
    if (c.getters) { try { s = paint(c, d.set ? '[Getter/Setter:' : '[Getter:', 'special') + ' ' + value(c, v[k], level) + paint(c, ']', 'special'); } catch (e) { s = `[Getter: <Inspection threw (${e.message})>]`; } }
  } else s = paint(c, d.set ? '[Setter]' : 'undefined', d.set ? 'special' : 'undefined');
  if (kind === 2) return s;
  let name;
  if (typeof k === 'symbol') name = `[${paint(c, symbolText(k), 'symbol')}]`;
  else if (k === '__proto__') name = "['__proto__']";
  else if (d.enumerable === false) name = `[${k}]`;
  else name = identifier.test(k) ? k : paint(c, quote(k), 'string');
  return `${name}:${join}${s}`;
}

function functionBase(f, name) {
  const text = Function.prototype.toString.call(f);
  if (text.startsWith('class') && text.endsWith('}')) {
    const own = Object.prototype.hasOwnProperty.call(f, 'name') && f.name;
    let s = `[class ${own || '(anonymous)'}`;
    if (name !== 'Function' && name !== null) s += ` [${name}]`;
    if (name === null) s += ' [null prototype]';
    const up = Object.getPrototypeOf(f);
    if (up && up.name) s += ` extends ${up.name}`;
    else if (up === null) s += ' extends [null prototype]';
    return s + ']';
  }
  const t = tag(f);
  let kind = /Function$/.test(t) ? t : 'Function';
  let s = `[${kind}`;
  if (name === null) s += ' (null prototype)';
  s += f.name === '' || typeof f.name !== 'string' ? ' (anonymous)' : `: ${f.name}`;
  s += ']';
  if (name !== kind && name !== null && !/Function$/.test(name)) s += ` ${name}`;
  return s;
}

function header(e) {
  let name, message;
  try { name = e.name; message = e.message; } catch { return 'Error'; }
  name = name === undefined ? 'Error' : String(name);
  message = message === undefined ? '' : String(message);
  return !name ? message : !message ? name : `${name}: ${message}`;
}
function errorBase(c, e, name) {
  let head = header(e);
  const own = name && e.name !== undefined && name !== 'Error' && !head.includes(name) && typeof e.name === 'string' && head.startsWith(e.name) ? name : null;
  if (own) head = own.endsWith(e.name) || e.name === 'Error' ? own + head.slice(e.name.length) : `${head.slice(0, e.name.length)} [${own}]${head.slice(e.name.length)}`;
  if (e.code && typeof e.code === 'string' && /^ERR_/.test(e.code) && !head.includes(`[${e.code}]`) && typeof e.name === 'string' && head.startsWith(e.name)) head = `${e.name} [${e.code}]${head.slice(e.name.length)}`;
  let stack = '';
  if (typeof e.stack === 'string' && e.stack) {
    stack = e.stack.replace(/\n$/, '');
    if (!/^ {4}at /.test(stack)) { // somebody wrote it
      return stack.includes('\n    at ') || stack.startsWith(String(e.name)) ? indentLines(c, stack) : `[${stack}]`;
    }
    stack = stack.split('\n').filter((l) => !/^ {4}at .*\(?(lib:|native\))/.test(l)).join('\n');
    stack = stack.replace(/^( {4}at )<anonymous> \((.*)\)$/gm, '$1$2');
  }
  if (!stack) return indentLines(c, `[${head}]`);
  return indentLines(c, `${head}\n${stack}`);
}
const indentLines = (c, s) => c.indent ? s.replaceAll('\n', '\n' + ' '.repeat(c.indent)) : s;

const length = (c, s) => c.colors ? s.replace(/\u001b\[\d\d?m/g, '').length : s.length;
function reduce(c, out, base, braces, array, level, v) {
  if (c.compact !== true) {
    const compact = c.compact === false ? 0 : c.compact;
    const entries = out.length;
    if (array && compact >= 1 && entries > 6) out = columns(c, out, v);
    if (compact >= 1 && c.level - level < compact && entries === out.length) {
      const start = out.length + c.indent + braces[0].length + base.length + 10;
      let total = out.length + start;
      let fits = total + out.length <= c.breakLength;
      if (fits) {
        for (const s of out) { total += length(c, s); if (total > c.breakLength) { fits = false; break; } }
      }
      if (fits && (base === '' || !base.includes('\n'))) {
        const joined = out.join(', ');
        if (!joined.includes('\n')) return `${base ? `${base} ` : ''}${braces[0]} ${joined} ${braces[1]}`;
      }
    }
    const pad = `\n${' '.repeat(c.indent)}`;
    return `${base ? `${base} ` : ''}${braces[0]}${pad}  ${out.join(`,${pad}  `)}${pad}${braces[1]}`;
  }
  const total = out.reduce((n, s) => n + length(c, s), 0) + out.length;
  if (total <= c.breakLength && !out.some((s) => s.includes('\n'))) return `${braces[0]}${base ? ` ${base}` : ''} ${out.join(', ')} ${braces[1]}`;
  const pad = `\n${' '.repeat(c.indent)}`;
  return `${base ? `${base} ` : ''}${braces[0]}${base === '' && braces[0].length === 1 ? ' ' : `${pad}  `}${out.join(`,${pad}  `)} ${braces[1]}`;
}
// columns puts the elements of a long array side by side.
function columns(c, out, v) {
  let total = 0, widest = 0, n = out.length;
  const extra = v.length !== undefined && /^\.\.\. \d+ more item/.test(out[n - 1] || '') ? 1 : 0;
  n -= extra;
  const gap = 2, widths = new Array(n);
  for (let i = 0; i < n; i++) {
    const w = length(c, out[i]);
    widths[i] = w;
    total += w + gap;
    if (widest < w) widest = w;
  }
  const cell = widest + gap;
  if (cell * 3 + c.indent < c.breakLength && (total / cell > 5 || widest <= 6)) {
    const bias = Math.sqrt(cell - total / out.length);
    const biased = Math.max(cell - 3 - bias, 1);
    const count = Math.min(Math.round(Math.sqrt(2.5 * biased * n) / biased), Math.floor((c.breakLength - c.indent) / cell), c.compact * 4, 15);
    if (count <= 1) return out;
    const lines = [], sizes = [];
    for (let i = 0; i < count; i++) {
      let w = 0;
      for (let j = i; j < n; j += count) if (widths[j] > w) w = widths[j];
      sizes.push(w + gap);
    }
    let left = false;
    if (v !== undefined && Array.isArray(v) || ArrayBuffer.isView(v)) for (let i = 0; i < n; i++) if (typeof v[i] !== 'number' && typeof v[i] !== 'bigint') { left = true; break; }
    for (let i = 0; i < n; i += count) {
      const end = Math.min(i + count, n);
      let s = '', j = i;
      for (; j < end - 1; j++) {
        const cellText = `${out[j]}, `;
        const space = ' '.repeat(Math.max(sizes[j - i] - widths[j] - 2, 0));
        s += left ? cellText + space : space + cellText;
      }
      s += left ? out[j] : ' '.repeat(Math.max(sizes[j - i] - gap - widths[j], 0)) + out[j];
      lines.push(s);
    }
    if (extra) lines.push(out[n]);
    return lines;
  }
  return out;
}

function format(...args) { return formatWithOptions({}, ...args); }
function formatWithOptions(o, ...args) {
  const first = args[0];
  let out = '', i = 0;
  if (typeof first === 'string') {
    i = 1;
    if (args.length === 1) return first;
    out = first.replace(/%([%sdifjoOc])/g, (all, k) => {
      if (k === '%') return '%';
      if (i >= args.length) return all;
      const v = args[i++];
      switch (k) {
        case 's': return typeof v === 'number' ? number(v, {}) : typeof v === 'bigint' ? `${v}n` : typeof v !== 'object' && typeof v !== 'function' || v === null ? String(v)
          : typeof v === 'function' && !Object.prototype.hasOwnProperty.call(v, 'toString') ? String(v) : hasOwnText(v) ? String(v) : inspect(v, { ...o, depth: 0, colors: false, compact: 3 });
        case 'd': return typeof v === 'bigint' ? `${v}n` : typeof v === 'symbol' ? 'NaN' : typeof v === 'object' && v !== null ? number(Number(v), {}) : number(Number(v), {});
        case 'i': return typeof v === 'bigint' ? `${v}n` : typeof v === 'symbol' ? 'NaN' : number(Number.parseInt(v), {});
        case 'f': return typeof v === 'symbol' ? 'NaN' : number(Number.parseFloat(v), {});
        case 'j': try { return JSON.stringify(v); } catch (e) { if (/circular/i.test(e.message)) return '[Circular]'; throw e; }
        case 'o': return inspect(v, { ...o, showHidden: true, showProxy: true, depth: 4 });
        case 'O': return inspect(v, o);
        case 'c': return '';
      }
      return all;
    });
  }
  for (; i < args.length; i++) {
    if (i > 0) out += ' ';
    out += typeof args[i] === 'string' ? args[i] : inspect(args[i], { ...o, compact: 3 });
  }
  return out;
}
function hasOwnText(v) {
  if (isError(v)) return true;
  for (let o = v; o && o !== Object.prototype && o !== Array.prototype && o !== Error.prototype; o = Object.getPrototypeOf(o)) {
    if (Object.prototype.hasOwnProperty.call(o, 'toString') && typeof o.toString === 'function') {
      return !(v instanceof Map || v instanceof Set || v instanceof Array) || o !== Object.getPrototypeOf(v);
    }
  }
  return false;
}

const width = (s) => { let n = 0; for (const c of s.normalize('NFC')) { const p = c.codePointAt(0); if (p < 32 || p >= 0x300 && p <= 0x36f || p === 0x200d || p >= 0xfe00 && p <= 0xfe0f) continue; n += p >= 0x1100 && (p <= 0x115f || p >= 0x2e80 && p <= 0xa4cf || p >= 0xac00 && p <= 0xd7a3 || p >= 0xf900 && p <= 0xfaff || p >= 0xfe30 && p <= 0xfe6f || p >= 0xff00 && p <= 0xff60 || p >= 0xffe0 && p <= 0xffe6 || p >= 0x1f300 && p <= 0x1faff || p >= 0x20000 && p <= 0x3fffd) ? 2 : 1; } return n; };
function table(data, only) {
  if (data === null || typeof data !== 'object') return format(data);
  const cell = (v) => inspect(v, { maxArrayLength: 3, breakLength: Infinity, depth: v !== null && typeof v === 'object' && !Array.isArray(v) && Object.keys(v).length > 2 ? -1 : 0 });
  const isMap = data instanceof Map, isSet = data instanceof Set;
  const rows = isMap ? [...data].map(([k, v], i) => [String(i), v, k]) : isSet ? [...data].map((v, i) => [String(i), v]) : Object.keys(data).map((k) => [k, data[k]]);
  const names = [], cells = [];
  let values = false;
  const valueCells = [];
  for (const [, v] of rows) {
    const row = {};
    if (v !== null && typeof v === 'object') {
      for (const k of only || Object.keys(v)) {
        if (!names.includes(k)) names.push(k);
        if (Object.prototype.hasOwnProperty.call(v, k)) row[k] = cell(v[k]);
      }
      valueCells.push('');
    } else { values = true; valueCells.push(cell(v)); }
    cells.push(row);
  }
  const head = [isMap || isSet ? '(iteration index)' : '(index)', ...(isMap ? ['Key'] : []), ...names, ...(values ? ['Values'] : [])];
  const body = rows.map(([k, , key], i) => [k, ...(isMap ? [cell(key)] : []), ...names.map((n) => cells[i][n] ?? ''), ...(values ? [valueCells[i]] : [])]);
  const widths = head.map((h, i) => Math.max(width(h), ...body.map((r) => width(r[i]))) + 2);
  const row = (r) => `│${r.map((s, i) => ` ${s}${' '.repeat(widths[i] - width(s) - 1)}`).join('│')}│`;
  const rule = (a, b, d) => a + widths.map((w) => '─'.repeat(w)).join(b) + d;
  return [rule('┌', '┬', '┐'), row(head), rule('├', '┼', '┤'), ...body.map(row), rule('└', '┴', '┘')].join('\n');
}

// Equality.
function equal(a, b, strict, seen = []) {
  if (strict ? Object.is(a, b) : a == b || a !== a && b !== b) return true;
  if (a === null || b === null || typeof a !== 'object' || typeof b !== 'object') return false;
  if (strict && Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (tag(a) !== tag(b) || Array.isArray(a) !== Array.isArray(b)) return false;
  if (seen.some(([x, y]) => x === a && y === b)) return true;
  seen = [...seen, [a, b]];
  if (a instanceof Date && a.getTime() !== b.getTime() && !(Number.isNaN(a.getTime()) && Number.isNaN(b.getTime()))) return false;
  if (a instanceof RegExp && (String(a) !== String(b) || a.lastIndex !== b.lastIndex)) return false;
  if (isError(a) && (a.message !== b.message || a.name !== b.name)) return false;
  if (a instanceof Number || a instanceof String || a instanceof Boolean) { if (!Object.is(a.valueOf(), b.valueOf())) return false; }
  if (ArrayBuffer.isView(a)) { if (a.length !== b.length) return false; for (let i = 0; i < a.length; i++) if (!(strict ? Object.is(a[i], b[i]) : a[i] == b[i])) return false; return true; }
  if (a instanceof ArrayBuffer) return equal(new Uint8Array(a), new Uint8Array(b), strict);
  if (a instanceof Set) { if (a.size !== b.size) return false; outer: for (const x of a) { if (b.has(x)) continue; if (x === null || typeof x !== 'object' && strict) return false; for (const y of b) if (equal(x, y, strict, seen)) continue outer; return false; } }
  if (a instanceof Map) { if (a.size !== b.size) return false; outer2: for (const [k, x] of a) { if (b.has(k) && equal(x, b.get(k), strict, seen)) continue; if (b.has(k) && typeof k !== 'object') return false; for (const [l, y] of b) if (equal(k, l, strict, seen) && equal(x, y, strict, seen)) continue outer2; return false; } }
  if (Array.isArray(a) && a.length !== b.length) return false;
  const own = (o) => strict ? [...Object.keys(o), ...Object.getOwnPropertySymbols(o).filter((s) => Object.prototype.propertyIsEnumerable.call(o, s))] : Object.keys(o);
  const ka = own(a), kb = own(b);
  if (ka.length !== kb.length) return false;
  for (const k of ka) if (!Object.prototype.hasOwnProperty.call(b, k) || !equal(a[k], b[k], strict, seen)) return false;
  return true;
}

class TextEncoder {
  get encoding() { return 'utf-8'; }
  encode(s = '') { return new Uint8Array(host.encode(String(s), 'utf8')); }
  encodeInto(s, into) { const b = this.encode(s); const n = Math.min(b.length, into.length); into.set(b.subarray(0, n)); return { read: n === b.length ? s.length : host.decode(b.buffer, 0, n, 'utf8').length, written: n }; }
}
class TextDecoder {
  constructor(encoding = 'utf-8', o = {}) {
    this.encoding = { utf8: 'utf-8', 'utf-8': 'utf-8', 'utf-16le': 'utf-16le', utf16le: 'utf-16le', latin1: 'windows-1252', 'iso-8859-1': 'windows-1252', ascii: 'windows-1252' }[String(encoding).toLowerCase()];
    if (!this.encoding) { const e = new RangeError(`The "${encoding}" encoding is not supported`); e.code = 'ERR_ENCODING_NOT_SUPPORTED'; throw e; }
    this.fatal = !!o.fatal; this.ignoreBOM = !!o.ignoreBOM; this.rest = new Uint8Array(0);
  }
  decode(input = new Uint8Array(0), { stream = false } = {}) {
    let b = ArrayBuffer.isView(input) ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength) : new Uint8Array(input);
    if (this.rest.length) { const j = new Uint8Array(this.rest.length + b.length); j.set(this.rest); j.set(b, this.rest.length); b = j; this.rest = new Uint8Array(0); }
    if (stream && this.encoding === 'utf-8') { const n = host.whole(b.buffer, b.byteOffset, b.byteLength); this.rest = b.slice(n); b = b.subarray(0, n); }
    if (this.fatal && this.encoding === 'utf-8' && !host.valid(b.buffer, b.byteOffset, b.byteLength)) { const e = new TypeError('The encoded data was not valid for encoding utf-8'); e.code = 'ERR_ENCODING_INVALID_ENCODED_DATA'; throw e; }
    const s = host.decode(b.buffer, b.byteOffset, b.byteLength, this.encoding === 'utf-8' ? 'utf8' : this.encoding === 'utf-16le' ? 'utf16le' : 'latin1');
    return !this.ignoreBOM && s.charCodeAt(0) === 0xfeff ? s.slice(1) : s;
  }
}
function promisify(f) {
  if (typeof f !== 'function') throw shared.badType('original', 'function', f);
  if (f[promisify.custom]) return f[promisify.custom];
  return Object.defineProperties(function (...args) { return new Promise((yes, no) => { Reflect.apply(f, this, [...args, (e, ...v) => { if (e) no(e); else yes(v[0]); }]); }); }, Object.getOwnPropertyDescriptors(f));
}
promisify.custom = Symbol.for('nodejs.util.promisify.custom');
const types = {
  isDate: (v) => v instanceof Date, isRegExp: (v) => v instanceof RegExp, isPromise: (v) => v instanceof Promise, isMap: (v) => v instanceof Map, isSet: (v) => v instanceof Set,
  isNativeError: (v) => v instanceof Error, isProxy: (v) => host.proxied(v) !== undefined, isTypedArray: (v) => ArrayBuffer.isView(v) && !(v instanceof DataView), isUint8Array: (v) => v instanceof Uint8Array,
  isArrayBuffer: (v) => v instanceof ArrayBuffer, isAnyArrayBuffer: (v) => v instanceof ArrayBuffer || v instanceof SharedArrayBuffer, isAsyncFunction: (f) => tag(f) === 'AsyncFunction', isGeneratorFunction: (f) => /GeneratorFunction$/.test(tag(f)),
  isGeneratorObject: (v) => tag(v) === 'Generator', isWeakMap: (v) => v instanceof WeakMap, isWeakSet: (v) => v instanceof WeakSet, isDataView: (v) => v instanceof DataView, isBoxedPrimitive: (v) => v instanceof Number || v instanceof String || v instanceof Boolean,
  isModuleNamespaceObject: (v) => isNamespace(v),
};
module.exports = {
  inspect, format, formatWithOptions, table, promisify, types, TextEncoder, TextDecoder, isDeepStrictEqual: (a, b) => equal(a, b, true), equal,
  callbackify: (f) => (...args) => { const done = args.pop(); f(...args).then((v) => process.nextTick(done, null, v), (e) => process.nextTick(done, e)); },
  inherits(c, s) { c.super_ = s; Object.setPrototypeOf(c.prototype, s.prototype); },
  deprecate: (f) => f, debuglog: () => Object.assign(() => {}, { enabled: false }), debug: () => () => {}, stripVTControlCharacters: (s) => s.replace(/[\u001B\u009B][[\]()#;?]*(?:(?:(?:(?:;[-a-zA-Z\d/#&.:=?%@~_]+)*|[a-zA-Z\d]+(?:;[-a-zA-Z\d/#&.:=?%@~_]*)*)?\u0007)|(?:(?:\d{1,4}(?:;\d{0,4})*)?[\dA-PR-TZcf-nq-uy=><~]))/g, ''),
  toUSVString: (s) => String(s).toWellFormed(), isArray: Array.isArray,
  styleText: (f, s) => [].concat(f).reduceRight((t, k) => `\u001b[${inspect.colors[k][0]}m${t}\u001b[${inspect.colors[k][1]}m`, s),
  parseArgs,
};
function parseArgs({ args = process.argv.slice(2), options = {}, strict = true, allowPositionals = !strict } = {}) {
  const values = Object.create(null), positionals = [];
  const fail = (code, text) => { const e = new TypeError(text); e.code = code; throw e; };
  const put = (name, v) => { if (options[name] && options[name].multiple) (values[name] ||= []).push(v); else values[name] = v; };
  const rest = [...args];
  while (rest.length) {
    const a = rest.shift();
    if (a === '--') { positionals.push(...rest); break; }
    let name, given;
    if (a.startsWith('--')) { const i = a.indexOf('='); name = a.slice(2, i < 0 ? undefined : i); if (i >= 0) given = a.slice(i + 1); } else if (a.length > 1 && a[0] === '-') {
      const short = a[1];
      name = Object.keys(options).find((k) => options[k].short === short) || short;
      if (a.length > 2) { if (options[name] && options[name].type === 'string') given = a.slice(2); else rest.unshift('-' + a.slice(2)); }
    } else { if (!allowPositionals) fail('ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL', `Unexpected argument '${a}'. This command does not take positional arguments`); positionals.push(a); continue; }
    const o = options[name];
    if (!o && strict) fail('ERR_PARSE_ARGS_UNKNOWN_OPTION', `Unknown option '${a.startsWith('--') ? '--' + name : '-' + name}'`);
    if (o && o.type === 'string') {
      if (given === undefined) { if (!rest.length || strict && rest[0].startsWith('-') && rest[0].length > 1) fail('ERR_PARSE_ARGS_INVALID_OPTION_VALUE', `Option '${o.short ? `-${o.short}, ` : ''}--${name} <value>' argument missing`); given = rest.shift(); }
      put(name, given);
    } else { if (given !== undefined && o && strict) fail('ERR_PARSE_ARGS_INVALID_OPTION_VALUE', `Option '--${name}' does not take an argument`); put(name, given ?? true); }
  }
  for (const k in options) if ('default' in options[k] && !(k in values)) values[k] = options[k].default;
  return { values, positionals };
}
})
