// The first source of every engine: globals, modules, and what the loop of
// events asks for. Everything that is not always needed is loaded when it is.
(function (host, info) {
'use strict';
const builtins = new Set(info.builtins);
const loaded = Object.create(null);
const shared = { host, info, builtin, inspect: lazy(() => builtin('util').inspect), format: lazy(() => builtin('util').format) };

function lazy(get) { return (...args) => get()(...args); }

function builtin(name) {
  if (name in loaded) return loaded[name];
  if (name === 'process') return loaded.process = process;
  if (name === 'console') return loaded.console = console;
  if (name === 'module') return loaded.module = { createRequire: (from) => makeRequire(String(from).replace(/^file:\/\//, '')), builtinModules: info.builtins, isBuiltin };
  if (name === 'timers') return loaded.timers = { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate };
  if (name === 'timers/promises') return loaded[name] = {
    setTimeout: (ms, v) => new Promise((r) => setTimeout(r, ms, v)), setImmediate: (v) => new Promise((r) => setImmediate(r, v)),
    scheduler: { wait: (ms) => new Promise((r) => setTimeout(r, ms)), yield: () => new Promise((r) => setImmediate(r)) },
  };
  if (name === 'perf_hooks') return loaded.perf_hooks = { performance };
  const slash = { 'fs/promises': ['fs', 'promises'], 'path/posix': ['path', 'posix'], 'path/win32': ['path', 'posix'], 'assert/strict': ['assert', 'strict'],
    'stream/promises': ['stream', 'promises'], 'readline/promises': ['readline', 'promises'], 'util/types': ['util', 'types'] }[name];
  if (slash) return loaded[name] = builtin(slash[0])[slash[1]];
  const module = { exports: {} };
  loaded[name] = module.exports;
  host.library(name)(shared, module, module.exports, builtin);
  return loaded[name] = module.exports;
}
const bare = (name) => name.startsWith('node:') ? name.slice(5) : name;
const isBuiltin = (name) => builtins.has(bare(name));

// What costs by a length that a script invents, and never looks up from it,
// must not run on lengths that nothing stands behind. A script may change any
// global: nothing here looks at one later.
const longest = 1 << 24;
const { apply, get } = Reflect, { isArray } = Array, { isView } = ArrayBuffer, { getOwnPropertyDescriptor } = Object;
const toNumber = Number, Through = Proxy, OutOfRange = RangeError, spreads = Symbol.isConcatSpreadable;
const isObject = (o) => typeof o === 'object' && o !== null || typeof o === 'function';

// even gives what has the same length whenever it is asked, which is the one
// that was looked at: a getter, what becomes a number, and a proxy may answer
// the engine otherwise.
function even(o) {
  if (!isObject(o)) return o;
  const length = toNumber(o.length);
  if (length > longest) throw new OutOfRange('Invalid array length');
  if (host.proxied(o) === undefined) {
    if (isArray(o) || isView(o)) return o;
    const own = getOwnPropertyDescriptor(o, 'length');
    if (own && typeof own.value === 'number') return o;
  }
  return new Through(o, { get: (target, key) => key === 'length' ? length : get(target, key) });
}
for (const name of ['concat', 'copyWithin', 'every', 'fill', 'filter', 'find', 'findIndex', 'findLast', 'findLastIndex', 'flat', 'flatMap', 'forEach',
  'includes', 'indexOf', 'join', 'lastIndexOf', 'map', 'reduce', 'reduceRight', 'reverse', 'shift', 'slice', 'some', 'sort', 'splice', 'toReversed',
  'toSorted', 'toSpliced', 'unshift', 'with']) {
  const original = Array.prototype[name];
  const f = { [name](...args) {
    const self = even(this);
    if (name === 'concat') { // each is spread or not for good
      for (let i = 0; i < args.length; i++) {
        if (isObject(args[i])) args[i] = args[i][spreads] ?? isArray(args[i]) ? even(args[i]) : [args[i]];
      }
    }
    const result = apply(original, self, args);
    return result === self ? this : result;
  } }[name];
  Object.defineProperty(f, 'length', { value: original.length, configurable: true });
  Object.defineProperty(Array.prototype, name, { value: f, writable: true, configurable: true, enumerable: false });
}
const slow = (s, p) => typeof s === 'string' && typeof p === 'string' && p.length > 32 && s.length > 4096;
function guardString(name, mine) {
  const original = String.prototype[name];
  const f = { [name](p, ...rest) { return slow(typeof this === 'string' ? this : this.valueOf(), p) ? mine(String(this), p, ...rest) : apply(original, this, arguments.length ? [p, ...rest] : []); } }[name];
  Object.defineProperty(f, 'length', { value: original.length, configurable: true });
  Object.defineProperty(String.prototype, name, { value: f, writable: true, configurable: true, enumerable: false });
}
guardString('indexOf', (s, p, from = 0) => host.find(s, p, from, false));
guardString('includes', (s, p, from = 0) => host.find(s, p, from, false) >= 0);
guardString('lastIndexOf', (s, p, from = Infinity) => host.find(s, p, from === Infinity || from !== from ? s.length : from, true));
guardString('split', (s, p, limit = 2 ** 32 - 1) => {
  const out = [];
  for (let at = 0; out.length < limit;) {
    const i = host.find(s, p, at, false);
    out.push(s.slice(at, i < 0 ? s.length : i));
    if (i < 0) break;
    at = i + p.length;
  }
  return out;
});
function replacing(all) {
  return (s, p, by) => {
    let out = '', at = 0;
    for (;;) {
      const i = host.find(s, p, at, false);
      if (i < 0) return out + s.slice(at);
      out += s.slice(at, i) + (typeof by === 'function' ? by(p, i, s) : p.replace(p, by));
      at = i + p.length;
      if (!all) return out + s.slice(at);
    }
  };
}
guardString('replaceAll', replacing(true));
guardString('replace', replacing(false));

// Events of the process.
const listeners = new Map();
const process = {
  title: info.name, version: info.version, versions: { node: info.version.slice(1), quickjs: info.engine }, arch: 'x64', platform: 'linux',
  release: { name: 'node' }, pid: info.pid, ppid: info.ppid, argv: info.argv, argv0: info.name, execArgv: [], execPath: '/usr/bin/node', env: info.env,
  exitCode: undefined, config: { variables: {} }, features: {}, allowedNodeEnvironmentFlags: new Set(),
  cwd: () => host.cwd(), chdir: (d) => host.chdir(String(d)), umask: (m) => host.umask(m === undefined ? -1 : typeof m === 'string' ? parseInt(m, 8) : m),
  getuid: () => info.uid, geteuid: () => info.uid, getgid: () => info.gid, getegid: () => info.gid, getgroups: () => [info.gid],
  uptime: () => host.now() / 1e3, memoryUsage: () => { const n = host.memory(); return { rss: n, heapTotal: n, heapUsed: n, external: 0, arrayBuffers: 0 }; },
  cpuUsage: () => ({ user: Math.round(host.now() * 1e3), system: 0 }), emitWarning(w) { printError(`(node:${info.pid}) ${w && w.stack ? w.name + ': ' + w.message : 'Warning: ' + w}\n`); },
  hrtime(prev) {
    const ns = host.now() * 1e6, s = Math.floor(ns / 1e9), n = Math.floor(ns % 1e9);
    if (!prev) return [s, n];
    const d = (s - prev[0]) * 1e9 + n - prev[1];
    return [Math.floor(d / 1e9), d % 1e9];
  },
  nextTick(f, ...args) { if (typeof f !== 'function') throw badType('callback', 'function', f); ticks.push([f, args]); },
  exit(code) { if (code !== undefined) process.exitCode = code; leave(); },
  reallyExit(code) { host.exit(code | 0); },
  abort() { host.exit(134); },
  kill(pid, signal) { host.kill(pid, signal === undefined ? 15 : typeof signal === 'number' ? signal : signals[signal] ?? unknownSignal(signal)); return true; },
  on(name, f) {
    if (!listeners.has(name)) listeners.set(name, []);
    listeners.get(name).push(f);
    if (name in signals) host.catch(signals[name], true);
    return process;
  },
  once(name, f) { const g = (...a) => { process.off(name, g); f.apply(process, a); }; g.listener = f; return process.on(name, g); },
  off(name, f) {
    const l = listeners.get(name);
    const i = l ? l.findIndex((g) => g === f || g.listener === f) : -1;
    if (i >= 0) l.splice(i, 1);
    if (l && !l.length && name in signals) host.catch(signals[name], false);
    return process;
  },
  emit(name, ...args) { const l = listeners.get(name); if (!l || !l.length) return false; for (const f of [...l]) f.apply(process, args); return true; },
  listeners: (name) => [...(listeners.get(name) || [])],
  listenerCount: (name) => (listeners.get(name) || []).length,
  removeAllListeners(name) { if (name === undefined) listeners.clear(); else listeners.delete(name); return process; },
  setMaxListeners: () => process, getMaxListeners: () => 0, eventNames: () => [...listeners.keys()],
  binding() { throw new Error('No such module'); },
};
process.hrtime.bigint = () => BigInt(Math.floor(host.now() * 1e6));
process.addListener = process.on;
process.prependListener = process.on;
process.removeListener = process.off;
Object.defineProperty(process, Symbol.toStringTag, { value: 'process', configurable: true });
const signals = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGABRT: 6, SIGKILL: 9, SIGUSR1: 10, SIGUSR2: 12, SIGPIPE: 13, SIGALRM: 14, SIGTERM: 15, SIGCHLD: 17, SIGCONT: 18, SIGSTOP: 19, SIGTSTP: 20, SIGWINCH: 28 };
shared.signals = signals;
function unknownSignal(s) { const e = new TypeError(`Unknown signal: ${s}`); e.code = 'ERR_UNKNOWN_SIGNAL'; throw e; }
for (const [i, name] of ['stdin', 'stdout', 'stderr'].entries()) {
  Object.defineProperty(process, name, { configurable: true, enumerable: true, get() {
    const value = builtin('stream').standard(i);
    Object.defineProperty(process, name, { value, configurable: true, enumerable: true, writable: true });
    return value;
  } });
}

let leaving = false;
function leave() {
  if (!leaving) {
    leaving = true;
    try { process.emit('exit', Number(process.exitCode ?? 0)); } catch (e) { report(e); process.exitCode = 7; }
  }
  const code = Number(process.exitCode ?? 0);
  host.exit(Number.isInteger(code) ? code & 255 : 1);
}

function badType(name, want, got) {
  const kind = got == null ? ` Received ${got}` : typeof got === 'function' ? ` Received function ${got.name}` : typeof got === 'object'
    ? got.constructor && got.constructor.name ? ` Received an instance of ${got.constructor.name}` : ` Received ${shared.inspect(got, { depth: -1 })}`
    : ` Received type ${typeof got} (${shared.inspect(typeof got === 'string' && got.length > 28 ? got.slice(0, 25) + '...' : got)})`;
  const listed = Array.isArray(want) ? want : [want];
  const types = listed.filter((w) => /^[a-z]/.test(w)), classes = listed.filter((w) => /^[A-Z]/.test(w));
  const or = (l) => l.length < 3 ? l.join(' or ') : l.slice(0, -1).join(', ') + ', or ' + l[l.length - 1];
  const e = new TypeError(`The "${name}" ${name.includes('.') ? 'property' : 'argument'} must be ${[types.length ? (types.length > 1 ? 'one of type ' : 'of type ') + or(types) : '',
    classes.length ? 'an instance of ' + or(classes) : ''].filter(Boolean).join(' or ')}.${kind}`);
  e.code = 'ERR_INVALID_ARG_TYPE';
  return e;
}
shared.badType = badType;

// Timers: a heap by time and number. Immediates and ticks: queues.
const ticks = [], heap = [];
let immediates = [], serial = 0, tickAt = 0;
class Timeout {
  constructor(f, ms, args, repeat) {
    if (typeof f !== 'function') throw badType('callback', 'function', f);
    ms = Number(ms);
    this.ms = ms >= 1 && ms <= 2147483647 ? Math.trunc(ms) : 1;
    this.f = f; this.args = args; this.repeat = repeat; this.id = ++serial; this.live = true; this.held = true;
    byID.set(this.id, this);
    this.due = host.now() + this.ms;
    push(this);
  }
  ref() { this.held = true; return this; }
  unref() { this.held = false; return this; }
  hasRef() { return this.held; }
  refresh() { this.due = host.now() + this.ms; this.live = true; if (!heap.includes(this)) push(this); else { heap.splice(heap.indexOf(this), 1); heap.sort((a, b) => before(a, b) ? -1 : 1); push(this); } return this; }
  close() { clearTimeout(this); return this; }
  [Symbol.toPrimitive]() { return this.id; }
}
const byID = new Map();
const before = (a, b) => a.due < b.due || a.due === b.due && a.id < b.id;
function push(t) {
  let i = heap.length;
  heap.push(t);
  for (; i > 0; ) {
    const up = (i - 1) >> 1;
    if (!before(t, heap[up])) break;
    heap[i] = heap[up];
    i = up;
  }
  heap[i] = t;
}
function pop() {
  const top = heap[0], last = heap.pop();
  if (heap.length) {
    let i = 0;
    for (;;) {
      let c = 2 * i + 1;
      if (c >= heap.length) break;
      if (c + 1 < heap.length && before(heap[c + 1], heap[c])) c++;
      if (!before(heap[c], last)) break;
      heap[i] = heap[c];
      i = c;
    }
    heap[i] = last;
  }
  return top;
}
function setTimeout(f, ms, ...args) { return new Timeout(f, ms, args, false); }
function setInterval(f, ms, ...args) { return new Timeout(f, ms, args, true); }
function clearTimeout(t) { if (t != null && !(t instanceof Timeout)) t = byID.get(Number(t)); if (t) { t.live = false; byID.delete(t.id); } }
const clearInterval = clearTimeout;
class Immediate {
  constructor(f, args) { if (typeof f !== 'function') throw badType('callback', 'function', f); this.f = f; this.args = args; this.live = true; immediates.push(this); }
  ref() { return this; } unref() { return this; } hasRef() { return true; }
}
function setImmediate(f, ...args) { return new Immediate(f, args); }
function clearImmediate(t) { if (t) t.live = false; }

// Modules.
const cache = Object.create(null);
class Module {
  constructor(id) { this.id = id; this.path = dirname(id); this.exports = {}; this.filename = id; this.loaded = false; this.children = []; this.paths = []; }
  require(name) { return makeRequire(this.filename)(name); }
}
const dirname = (p) => p.slice(0, Math.max(p.lastIndexOf('/'), 0)) || '/';
function makeRequire(from) {
  const require = (name) => {
    if (typeof name !== 'string') throw badType('id', 'string', name);
    if (isBuiltin(name)) return builtin(bare(name));
    const file = host.resolve(name, from, false);
    return load(file);
  };
  require.resolve = (name) => isBuiltin(name) ? name : host.resolve(name, from, false);
  require.cache = cache;
  require.main = mainModule;
  require.extensions = {};
  return require;
}
let mainModule;
function load(file, main) {
  if (file in cache) return cache[file].exports;
  const m = new Module(file);
  if (main) { mainModule = m; m.id = '.'; process.mainModule = m; }
  cache[file] = m;
  let ok = false;
  try {
    if (file.endsWith('.json')) {
      const text = host.readText(file);
      try { m.exports = JSON.parse(text.replace(/^\uFEFF/, '')); } catch (e) { e.message = `${file}: ${e.message}`; throw e; }
    } else {
      const f = host.compile(file);
      if (typeof f === 'function') {
        Reflect.apply(f, m.exports, [m.exports, makeRequire(file), m, file, dirname(file)]);
      } else {
        m.exports = f;
      }
    }
    ok = true;
  } finally {
    if (!ok) delete cache[file];
  }
  m.loaded = true;
  return m.exports;
}

// Printing.
const printError = (s) => host.print(2, s);
let indent = '';
function line(fd, args) {
  let s = args.length === 1 && typeof args[0] === 'string' ? args[0] : args.length === 0 ? '' : args.length === 1 && typeof args[0] === 'number' && args[0] === args[0] && (args[0] !== 0)
    ? String(args[0]) : shared.format(...args);
  if (indent) s = indent + s.replaceAll('\n', '\n' + indent);
  host.print(fd, s + '\n');
}
const counts = new Map(), clocks = new Map();
const elapsed = (ms) => ms >= 1000 ? `${(ms / 1000).toFixed(3)}s` : `${Number(ms.toFixed(3))}ms`;
const console = {
  log(...a) { line(1, a); }, info(...a) { line(1, a); }, debug(...a) { line(1, a); },
  error(...a) { line(2, a); }, warn(...a) { line(2, a); },
  trace(...a) { const e = new Error(); line(2, ['Trace' + (a.length ? ': ' + shared.format(...a) : '') + '\n' + String(e.stack).replace(/\n$/, '')]); },
  dir(v, o) { line(1, [shared.inspect(v, { customInspect: false, ...o })]); }, dirxml(...a) { line(1, a); },
  assert(ok, ...a) { if (!ok) { if (typeof a[0] === 'string') a[0] = 'Assertion failed: ' + a[0]; else a.unshift('Assertion failed'); line(2, a); } },
  group(...a) { if (a.length) line(1, a); indent += '  '; }, groupCollapsed(...a) { console.group(...a); }, groupEnd() { indent = indent.slice(2); },
  count(l = 'default') { const n = (counts.get(`${l}`) || 0) + 1; counts.set(`${l}`, n); line(1, [`${l}: ${n}`]); }, countReset(l = 'default') { counts.delete(`${l}`); },
  time(l = 'default') { clocks.set(`${l}`, host.now()); },
  timeEnd(l = 'default') { if (clocks.has(`${l}`)) { line(1, [`${l}: ${elapsed(host.now() - clocks.get(`${l}`))}`]); clocks.delete(`${l}`); } },
  timeLog(l = 'default', ...a) { if (clocks.has(`${l}`)) line(1, [`${l}: ${elapsed(host.now() - clocks.get(`${l}`))}`, ...a]); },
  table(data, columns) { line(1, [builtin('util').table(data, columns)]); }, clear() {},
};
Object.defineProperty(console, Symbol.toStringTag, { value: 'console', configurable: true });
Object.defineProperty(console, 'Console', { configurable: true, writable: true, value: class Console {
  constructor(out, err) {
    const o = out && out.stdout ? out : { stdout: out, stderr: err };
    for (const [name, s] of [['log', o.stdout], ['info', o.stdout], ['debug', o.stdout], ['error', o.stderr || o.stdout], ['warn', o.stderr || o.stdout]]) {
      this[name] = (...a) => { s.write(shared.format(...a) + '\n'); };
    }
  }
} });

// Errors that nobody catches.
function report(e) {
  let text;
  try {
    text = e instanceof Error || e && typeof e === 'object' && typeof e.stack === 'string' ? shared.inspect(e) : shared.inspect(e);
    if (!(e instanceof Error)) text = 'Uncaught:\n' + text + '\n(Use `node --trace-uncaught ...` to show where the exception was thrown)';
  } catch { text = 'Uncaught exception'; }
  printError(`${text}\n\nNode.js ${info.version}\n`);
}
function fatal(e, origin = 'uncaughtException') {
  try {
    if (process.emit('uncaughtException', e, origin)) return;
  } catch (again) { e = again; }
  report(e);
  process.exitCode = 1;
  leave();
}
const rejected = new Map();
function rejection(promise, reason, handled) {
  if (handled) rejected.delete(promise); else rejected.set(promise, reason);
}
function unhandled() {
  if (!rejected.size) return;
  const list = [...rejected];
  rejected.clear();
  for (const [promise, reason] of list) {
    if (process.listenerCount('unhandledRejection')) { process.emit('unhandledRejection', reason, promise); continue; }
    if (reason instanceof Error) fatal(reason, 'unhandledRejection');
    else {
      const e = new Error(`This error originated either by throwing inside of an async function without a catch block, or by rejecting a promise which was not handled with .catch(). The promise rejected with the reason "${shared.inspect(reason)}".`);
      e.code = 'ERR_UNHANDLED_REJECTION';
      fatal(e, 'unhandledRejection');
    }
  }
}

// What the loop asks for.
const sources = [];
shared.sources = sources; // things that wait for the outside: {poll() → ran, waits() → truth}
const hooks = {
  tick() {
    if (tickAt >= ticks.length) { ticks.length = tickAt = 0; return false; }
    if (tickAt > 1024) { ticks.splice(0, tickAt); tickAt = 0; }
    const [f, args] = ticks[tickAt++];
    f(...args);
    return true;
  },
  unhandled, fatal, rejection, leave, load: (file) => { load(file, true); },
  // wait tells for how long there is nothing to do: -1 is for ever, -2 that
  // there never will be.
  wait() {
    if (immediates.length) return 0;
    while (heap.length && !heap[0].live) pop();
    let held = heap.some((t) => t.live && t.held) || sources.some((s) => s.waits());
    if (!held) return -2;
    if (sources.some((s) => s.ready && s.ready())) return 0;
    return heap.length ? Math.max(0, heap[0].due - host.now()) : -1;
  },
  timer() {
    while (heap.length && !heap[0].live) pop();
    if (!heap.length || heap[0].due > host.now()) return false;
    const t = pop();
    if (t.repeat) { t.due = Math.max(t.due + t.ms, host.now()); push(t); } else { t.live = false; byID.delete(t.id); }
    t.f(...t.args);
    return true;
  },
  immediates() {
    const now = immediates;
    immediates = [];
    return now;
  },
  immediate(t) { if (t.live) { t.live = false; t.f(...t.args); } },
  poll() { for (const s of sources) if (s.poll()) return true; return false; },
  signal(n) { for (const name in signals) if (signals[name] === n) process.emit(name, name, n); },
  beforeExit() { process.emit('beforeExit', Number(process.exitCode ?? 0)); },
  names(b) { return b !== null && (typeof b === 'object' || typeof b === 'function') ? Object.keys(b) : []; },
  expose: (name) => isBuiltin(name) ? builtin(bare(name)) : load(name), require(name) { makeRequire(host.cwd() + '/[require]')(name); }, leaveNow() { leaving = true; try { process.emit('exit', 13); } catch (e) { report(e); } },
  show(v) { host.print(1, (typeof v === 'string' ? v : shared.inspect(v)) + '\n'); },
  script(file) { // of -e: what a script finds among the globals
    const m = new Module(file);
    m.paths = [];
    Object.assign(globalThis, { require: makeRequire(host.cwd() + '/' + file), module: m, exports: m.exports, __filename: file, __dirname: '.' });
    for (const name of info.builtins) {
      if (name.includes('/') || name in globalThis) continue;
      Object.defineProperty(globalThis, name, { configurable: true, enumerable: false, get: () => builtin(name), set(v) { Object.defineProperty(globalThis, name, { value: v, writable: true, configurable: true }); } });
    }
  },
};

// Globals.
const performance = { now: () => host.now(), timeOrigin: Date.now(), mark() {}, measure() {}, toJSON() { return {}; } };
const define = (name, value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
const defer = (name, get) => Object.defineProperty(globalThis, name, { configurable: true, enumerable: false, get() { const v = get(); define(name, v); return v; }, set(v) { define(name, v); } });
define('global', globalThis);
define('process', process);
define('console', console);
define('performance', performance);
for (const [name, f] of Object.entries({ setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate })) define(name, f);
define('queueMicrotask', (f) => { if (typeof f !== 'function') throw badType('callback', 'function', f); Promise.resolve().then(() => { try { f(); } catch (e) { fatal(e); } }); });
for (const name of ['Buffer', 'atob', 'btoa', 'Blob']) defer(name, () => builtin('buffer')[name]);
for (const name of ['URL', 'URLSearchParams']) defer(name, () => builtin('url')[name]);
for (const name of ['TextEncoder', 'TextDecoder']) defer(name, () => builtin('util')[name]);
for (const name of ['Event', 'EventTarget', 'AbortController', 'AbortSignal', 'structuredClone', 'DOMException']) defer(name, () => builtin('web')[name]);
defer('crypto', () => builtin('crypto').webcrypto);
define('fetch', async (url) => { host.refused(String(url && url.url || url)); const e = new TypeError('fetch failed'); e.cause = new Error('there is no network in this sandbox'); throw e; });
define('navigator', { hardwareConcurrency: 1, userAgent: 'Node.js/' + info.version.slice(1, 3), language: 'en-US' });
if (info.tools) {
  const call = async (path, input) => {
    const text = host.tool(path, input === undefined ? '{}' : JSON.stringify(input));
    return text === undefined ? undefined : JSON.parse(text);
  };
  const at = (path) => new Proxy(function () {}, {
    get: (_, name) => typeof name !== 'string' || path === '' && name === 'then' || name === 'then' && path !== '' ? undefined : at(path ? path + '/' + name : name),
    apply: (_, __, args) => call(path, args[0]),
    ownKeys: () => [], has: () => true, set: () => false, getPrototypeOf: () => Object.prototype,
  });
  define('tools', at(''));
}
return hooks;
})
