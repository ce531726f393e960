(function (shared, module, _, builtin) {
'use strict';
const { host, signals } = shared;
const Emitter = builtin('events');
const signalName = (n) => Object.keys(signals).find((k) => signals[k] === n) || null;
const strings = (l) => l.map((a) => String(a));
const pairs = (env) => env ? Object.keys(env).filter((k) => env[k] !== undefined).map((k) => `${k}=${env[k]}`) : null;
function command(file, args, o) {
  if (typeof file !== 'string') throw shared.badType('file', 'string', file);
  if (o.shell) return [typeof o.shell === 'string' ? o.shell : '/bin/sh', '-c', [file, ...args].join(' ')];
  return [file, ...strings(args)];
}
const modes = (stdio, fallback) => {
  const l = typeof stdio === 'string' ? [stdio, stdio, stdio] : Array.isArray(stdio) ? stdio : [];
  return [0, 1, 2].map((i) => { const m = l[i] ?? fallback[i]; return typeof m === 'number' ? m : m === 'inherit' ? i : m === 'ignore' ? -2 : m && typeof m === 'object' && typeof m.fd === 'number' ? m.fd : -1; });
};
const text = (ab, o) => { if (ab === undefined) return null; const b = builtin('buffer').wrap(ab); return o.encoding && o.encoding !== 'buffer' ? b.toString(o.encoding) : b; };
const input = (v) => v === undefined || v === null ? undefined : typeof v === 'string' ? Buffer.from(v) : v;
const timeoutOf = (o) => o.timeout > 0 ? o.timeout : 0;
function run(argv, o, fallback) {
  const b = input(o.input);
  const stdio = modes(o.stdio, fallback);
  if (b) stdio[0] = -1;
  const limit = o.maxBuffer ?? 1024 * 1024;
  const r = host.run(argv, pairs(o.env || process.env), o.cwd ? String(o.cwd.href ? builtin('url').fileURLToPath(o.cwd) : o.cwd) : '', stdio[0], stdio[1], stdio[2], b ? b.buffer : undefined, b ? b.byteOffset : 0, b ? b.byteLength : 0, timeoutOf(o), typeof o.killSignal === 'string' ? signals[o.killSignal] : o.killSignal ?? 15);
  const [status, signal, timed, pid, error] = r;
  const result = { pid, output: [null, text(r[5], o), text(r[6], o)], stdout: text(r[5], o), stderr: text(r[6], o), status: signal ? null : status, signal: signal ? signalName(signal) : null };
  const fail = (code, errno) => Object.assign(new Error(`spawnSync ${argv[0]} ${code}`), { errno, code, syscall: `spawnSync ${argv[0]}`, path: argv[0], spawnargs: argv.slice(1) });
  if (error) { result.error = fail(error, r[7]); result.status = null; result.stdout = result.stderr = null; result.output = null; result.pid = 0; } else if (timed) { result.error = fail('ETIMEDOUT', -110); } else if ((result.stdout && result.stdout.length > limit) || (result.stderr && result.stderr.length > limit)) { result.error = fail('ENOBUFS', -105); }
  return result;
}
function spawnSync(file, args, o) {
  if (!Array.isArray(args)) { o = args; args = []; }
  o = o || {};
  return run(command(file, args, o), o, ['pipe', 'pipe', 'pipe']);
}
function checked(r, what, o) {
  if (r.stderr && r.stderr.length && !o.stdio) process.stderr.write(r.stderr);
  if (!r.error && r.status === 0) return r.stdout;
  const message = r.stderr && r.stderr.length ? `Command failed: ${what}\n${r.stderr.toString()}` : `Command failed: ${what}`;
  throw Object.assign(r.error || new Error(message), r, r.error ? { error: undefined } : {});
}
function execSync(cmd, o = {}) { return checked(run([typeof o.shell === 'string' ? o.shell : '/bin/sh', '-c', cmd], { ...o, shell: undefined }, ['pipe', 'pipe', 'pipe']), cmd, o); }
function execFileSync(file, args, o) { if (!Array.isArray(args)) { o = args; args = []; } o = o || {}; const argv = command(file, args, o); return checked(run(argv, o, ['pipe', 'pipe', 'pipe']), [file, ...args].join(' '), o); }

class ChildProcess extends Emitter {
  kill(s = 'SIGTERM') { if (this.exitCode !== null || this.signalCode !== null || !this.id) return false; host.killChild(this.id, typeof s === 'number' ? s : signals[s] ?? 15); this.killed = true; return true; }
  ref() {} unref() { this.loose = true; }
  disconnect() {}
}
const running = new Map();
shared.sources.push({
  waits: () => [...running.values()].some((c) => !c.loose),
  poll() {
    if (!running.size) return false;
    const e = host.event();
    if (e === undefined) return false;
    const [id, what, a, b] = e;
    const c = running.get(id);
    if (!c) return true;
    if (what === 'out') { const s = a === 1 ? c.stdout : c.stderr; s.push(b === undefined ? null : builtin('buffer').wrap(b)); return true; }
    running.delete(id);
    c.exitCode = b ? null : a;
    c.signalCode = b ? signalName(b) : null;
    if (c.timer) clearTimeout(c.timer);
    c.emit('exit', c.exitCode, c.signalCode);
    let open = 0;
    const close = () => { if (--open <= 0) setImmediate(() => c.emit('close', c.exitCode, c.signalCode)); };
    for (const s of [c.stdout, c.stderr]) if (s && !s.readableEnded && !s.destroyed && (s.listenerCount('data') || s._r.manual || s._r.poke)) { open++; s.once('end', close); }
    if (!open) { open = 1; close(); }
    return true;
  },
});
function spawn(file, args, o) {
  if (!Array.isArray(args)) { o = args; args = []; }
  o = o || {};
  const argv = command(file, args, o), stdio = modes(o.stdio, ['pipe', 'pipe', 'pipe']);
  const c = new ChildProcess();
  const { Readable, Writable } = builtin('stream');
  c.spawnfile = argv[0]; c.spawnargs = argv; c.exitCode = null; c.signalCode = null; c.killed = false; c.connected = false;
  const [id, pid, error, errno] = host.spawn(argv, pairs(o.env || process.env), o.cwd ? String(o.cwd.href ? builtin('url').fileURLToPath(o.cwd) : o.cwd) : '', ...stdio);
  c.stdin = stdio[0] === -1 ? new Writable({ write(b, e, done) { if (id) host.feed(id, b.buffer, b.byteOffset, b.byteLength); done(); }, final(done) { if (id) host.feedEnd(id); done(); } }) : null;
  c.stdout = stdio[1] === -1 ? new Readable({ read() {} }) : null;
  c.stderr = stdio[2] === -1 ? new Readable({ read() {} }) : null;
  c.stdio = [c.stdin, c.stdout, c.stderr];
  if (error) {
    c.pid = undefined;
    const e = Object.assign(new Error(`spawn ${argv[0]} ${error}`), { errno, code: error, syscall: `spawn ${argv[0]}`, path: argv[0], spawnargs: argv.slice(1) });
    setImmediate(() => { for (const s of [c.stdout, c.stderr]) if (s) s.push(null); c.emit('error', e); c.emit('close', errno, null); });
    return c;
  }
  c.id = id; c.pid = pid;
  running.set(id, c);
  process.nextTick(() => c.emit('spawn'));
  if (timeoutOf(o)) c.timer = setTimeout(() => c.kill(o.killSignal), o.timeout);
  if (o.signal) o.signal.addEventListener('abort', () => c.kill(o.killSignal));
  return c;
}
function execFile(file, args, o, done) {
  if (typeof args === 'function') { done = args; args = []; o = {}; } else if (!Array.isArray(args)) { done = o; o = args; args = []; }
  if (typeof o === 'function') { done = o; o = {}; }
  o = { encoding: 'utf8', maxBuffer: 1024 * 1024, ...o };
  const c = spawn(file, args, { ...o, stdio: undefined });
  const got = [[], []];
  c.stdout.on('data', (b) => got[0].push(b));
  c.stderr.on('data', (b) => got[1].push(b));
  let over = false;
  const cmd = o.command || [file, ...args].join(' ');
  const finish = (e) => { if (over) return; over = true; if (done) done(e, ...got.map((l) => { const b = Buffer.concat(l); return o.encoding === 'buffer' || o.encoding === null ? b : b.toString(o.encoding); })); };
  c.on('error', (e) => { e.cmd = cmd; finish(e); });
  c.on('close', (code, signal) => {
    if (code === 0) { finish(null); return; }
    const err = Buffer.concat(got[1]).toString();
    finish(Object.assign(new Error(`Command failed: ${cmd}\n${err}`), { code, killed: c.killed, signal, cmd }));
  });
  return c;
}
function exec(cmd, o, done) { if (typeof o === 'function') { done = o; o = {}; } return execFile(o && typeof o.shell === 'string' ? o.shell : '/bin/sh', ['-c', cmd], { ...o, shell: false, command: cmd }, done); }
const custom = (f) => Object.defineProperty(f, Symbol.for('nodejs.util.promisify.custom'), { value: (...a) => { let c; const p = new Promise((yes, no) => { c = f(...a, (e, stdout, stderr) => { if (e) no(Object.assign(e, { stdout, stderr })); else yes({ stdout, stderr }); }); }); p.child = c; return p; } });
module.exports = { spawnSync, execSync, execFileSync, spawn, exec: custom(exec), execFile: custom(execFile), ChildProcess, fork() { throw new Error('fork is not supported in this sandbox: there are no other node processes to talk to'); } };
})
