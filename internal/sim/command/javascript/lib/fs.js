(function (shared, module, _, builtin) {
'use strict';
const { host } = shared;
const buffers = () => builtin('buffer');
const flagsOf = { r: 0, rs: 0, 'r+': 2, 'rs+': 2, w: 0o1101, wx: 0o1301, xw: 0o1301, 'w+': 0o1102, 'wx+': 0o1302, 'xw+': 0o1302, a: 0o2101, ax: 0o2301, xa: 0o2301, 'a+': 0o2102, 'ax+': 0o2302, as: 0o2101 };
function flags(f, fallback) {
  if (f == null) return flagsOf[fallback];
  if (typeof f === 'number') return f;
  if (!(f in flagsOf)) { const e = new TypeError(`The argument 'flags' is invalid. Received '${f}'`); e.code = 'ERR_INVALID_ARG_VALUE'; throw e; }
  return flagsOf[f];
}
function name(p, what = 'path') {
  if (p instanceof Uint8Array) p = buffers().Buffer.from(p).toString();
  if (p && typeof p === 'object' && typeof p.href === 'string') p = builtin('url').fileURLToPath(p);
  if (typeof p !== 'string') throw shared.badType(what, ['string', 'Buffer', 'URL'], p);
  if (p.includes('\0')) { const e = new TypeError(`The argument '${what}' must be a string, Uint8Array, or URL without null bytes. Received ${shared.inspect(p)}`); e.code = 'ERR_INVALID_ARG_VALUE'; throw e; }
  return p;
}
const mode = (m, fallback) => m == null ? fallback : typeof m === 'string' ? parseInt(m, 8) : m;
const options = (o) => typeof o === 'string' ? { encoding: o } : o || {};
function out(ab, encoding) { const b = buffers().wrap(ab); return encoding && encoding !== 'buffer' ? b.toString(encoding) : b; }
function data(d, encoding) {
  if (typeof d === 'string') { const e = buffers ? encoding : ''; return !e || /^utf-?8$/i.test(e) ? d : buffers().Buffer.from(d, e); }
  if (ArrayBuffer.isView(d)) return d;
  throw shared.badType('data', ['string', 'Buffer', 'TypedArray', 'DataView'], d);
}
function put(d) { return typeof d === 'string' ? [d] : [d.buffer, d.byteOffset, d.byteLength]; }

class Stats {
  constructor(a, big) {
    const n = big ? (v) => BigInt(Math.trunc(v)) : (v) => v;
    [this.dev, this.mode, this.nlink, this.uid, this.gid, this.rdev, this.blksize, this.ino, this.size, this.blocks] = [a[0], a[1], a[2], a[3], a[4], a[5], 4096, a[6], a[7], a[8]].map(n);
    for (const [i, k] of ['atime', 'mtime', 'ctime', 'birthtime'].entries()) {
      const ms = a[9 + Math.min(i, 2)];
      this[k + 'Ms'] = n(ms);
      if (big) this[k + 'Ns'] = BigInt(Math.round(ms * 1e3)) * 1000n;
    }
    for (const [i, k] of ['atime', 'mtime', 'ctime', 'birthtime'].entries()) this[k] = new Date(Math.floor(a[9 + Math.min(i, 2)]));
  }
  isFile() { return kind(this) === 0o100000; } isDirectory() { return kind(this) === 0o040000; } isSymbolicLink() { return kind(this) === 0o120000; }
  isFIFO() { return kind(this) === 0o010000; } isSocket() { return kind(this) === 0o140000; } isCharacterDevice() { return kind(this) === 0o020000; } isBlockDevice() { return kind(this) === 0o060000; }
}
const kind = (s) => Number(s.mode) & 0o170000;
class Dirent {
  constructor(n, dir, k) { this.name = n; this.parentPath = dir; this.path = dir; Object.defineProperty(this, 'kind', { value: k, enumerable: false }); }
  isFile() { return this.kind === 0o100000; } isDirectory() { return this.kind === 0o040000; } isSymbolicLink() { return this.kind === 0o120000; }
  isFIFO() { return this.kind === 0o010000; } isSocket() { return this.kind === 0o140000; } isCharacterDevice() { return this.kind === 0o020000; } isBlockDevice() { return this.kind === 0o060000; }
}
const join = (a, b) => a === '' ? b : a.endsWith('/') ? a + b : a + '/' + b;
function stat(p, o, follow) {
  const a = host.stat(name(p), follow, !!o && o.throwIfNoEntry === false);
  return a === undefined ? undefined : new Stats(a, o && o.bigint);
}
const seconds = (t) => typeof t === 'object' ? t.getTime() / 1000 : Number(t);

const sync = {
  readFile(p, o) {
    o = options(o);
    const f = flags(o.flag, 'r');
    if (typeof p !== 'number') p = name(p);
    if (o.encoding && /^utf-?8$/i.test(o.encoding) && f === 0) return host.readText(p);
    if (o.encoding) buffers().encodingOf(o.encoding);
    return out(host.readFile(p, f), o.encoding);
  },
  writeFile(p, d, o) { o = options(o); host.writeFile(typeof p === 'number' ? p : name(p), flags(o.flag, 'w'), mode(o.mode, 0o666), ...put(data(d, o.encoding))); },
  appendFile(p, d, o) { o = options(o); host.writeFile(typeof p === 'number' ? p : name(p), flags(o.flag, 'a'), mode(o.mode, 0o666), ...put(data(d, o.encoding))); },
  open: (p, f, m) => host.open(name(p), flags(f, 'r'), mode(m, 0o666)),
  close: (fd) => host.close(fd),
  read(fd, b, offset, length, position) {
    if (offset !== null && typeof offset === 'object') ({ offset, length, position } = offset);
    offset ??= 0; length ??= b.byteLength - offset;
    return host.read(fd, b.buffer, b.byteOffset + offset, Math.min(length, b.byteLength - offset), position == null ? -1 : Number(position));
  },
  write(fd, d, offset, length, position) {
    if (typeof d === 'string') { position = offset; d = buffers().Buffer.from(d, typeof length === 'string' ? length : 'utf8'); offset = 0; length = d.length; }
    if (offset !== null && typeof offset === 'object') ({ offset, length, position } = offset);
    offset ??= 0; length ??= d.byteLength - offset;
    return host.write(fd, d.buffer, d.byteOffset + offset, length, typeof position === 'number' ? position : -1);
  },
  readv: (fd, list, pos) => list.reduce((n, b) => n + sync.read(fd, b, 0, b.byteLength, pos == null ? null : pos + n), 0),
  writev: (fd, list, pos) => list.reduce((n, b) => n + sync.write(fd, b, 0, b.byteLength, pos == null ? null : pos + n), 0),
  stat: (p, o) => stat(p, o, true), lstat: (p, o) => stat(p, o, false), fstat: (fd, o) => new Stats(host.fstat(fd), o && o.bigint),
  access: (p, m = 0) => host.access(name(p), m),
  readdir(p, o) {
    o = options(o);
    p = name(p);
    const list = [];
    const walk = (dir, rel) => {
      const a = host.readdir(dir);
      for (let i = 0; i < a.length; i += 2) {
        const r = join(rel, a[i]), k = +a[i + 1];
        list.push(o.withFileTypes ? new Dirent(a[i], dir, k) : o.encoding === 'buffer' ? buffers().Buffer.from(r) : r);
        if (o.recursive && k === 0o040000) walk(join(dir, a[i]), r);
      }
    };
    walk(p, '');
    return list;
  },
  opendir(p) { const l = sync.readdir(p, { withFileTypes: true }); return { path: p, readSync: () => l.shift() ?? null, read: async () => l.shift() ?? null, closeSync() {}, close: async () => {}, async *[Symbol.asyncIterator]() { yield* l; } }; },
  mkdir(p, o) { const r = typeof o === 'object' && o ? o.recursive : false; return host.mkdir(name(p), mode(typeof o === 'object' && o ? o.mode : o, 0o777), !!r); },
  mkdtemp: (p, o) => host.mkdtemp(name(p, 'prefix'), o),
  rmdir: (p, o) => o && o.recursive ? host.rm(name(p), true, false) : host.rmdir(name(p)),
  rm: (p, o) => host.rm(name(p), !!(o && o.recursive), !!(o && o.force)),
  unlink: (p) => host.unlink(name(p)), rename: (a, b) => host.rename(name(a, 'oldPath'), name(b, 'newPath')), link: (a, b) => host.link(name(a, 'existingPath'), name(b, 'newPath')),
  symlink: (t, p) => host.symlink(name(t, 'target'), name(p)), readlink: (p) => host.readlink(name(p)), realpath: (p) => host.realpath(name(p)),
  chmod: (p, m) => host.chmod(name(p), mode(m)), fchmod: (fd, m) => host.chmod(`/dev/fd/${fd}`, mode(m)), lchmod: (p, m) => host.chmod(name(p), mode(m)),
  chown: (p, u, g) => host.chown(name(p), u, g, true), lchown: (p, u, g) => host.chown(name(p), u, g, false), fchown() {},
  utimes: (p, a, m) => host.utimes(name(p), seconds(a), seconds(m), true), lutimes: (p, a, m) => host.utimes(name(p), seconds(a), seconds(m), false), futimes() {},
  truncate: (p, n = 0) => typeof p === 'number' ? host.ftruncate(p, n) : host.truncate(name(p), n), ftruncate: (fd, n = 0) => host.ftruncate(fd, n),
  copyFile: (a, b, m = 0) => host.copyFile(name(a, 'src'), name(b, 'dest'), !!(m & 1)),
  cp(a, b, o = {}) {
    const s = sync.lstat(a);
    if (s.isDirectory()) {
      if (!o.recursive) { const e = new Error(`Recursive option not enabled, cannot copy a directory: cp returned EISDIR (${a} is a directory (not copied)) ${a}`); e.name = 'SystemError'; e.code = 'ERR_FS_EISDIR'; throw e; }
      if (o.filter && !o.filter(a, b)) return;
      host.mkdir(name(b), 0o777, true);
      for (const n of sync.readdir(a)) sync.cp(join(name(a), n), join(name(b), n), o);
    } else {
      if (o.filter && !o.filter(a, b)) return;
      const there = host.stat(name(b), false, true) !== undefined;
      if (there && o.force === false) { if (o.errorOnExist) { const e = new Error(`Target already exists: cp returned EEXIST (${b} already exists) ${b}`); e.code = 'ERR_FS_CP_EEXIST'; throw e; } return; }
      if (s.isSymbolicLink()) { if (there) host.unlink(name(b)); host.symlink(host.readlink(name(a)), name(b)); } else sync.copyFile(a, b);
    }
  },
  fsync() {}, fdatasync() {},
  statfs: () => ({ type: 0, bsize: 4096, blocks: 0, bfree: 0, bavail: 0, files: 0, ffree: 0 }),
};

const fs = { constants: { F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1, COPYFILE_EXCL: 1, COPYFILE_FICLONE: 2, O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, O_CREAT: 64, O_EXCL: 128, O_TRUNC: 512, O_APPEND: 1024, O_DIRECTORY: 65536, O_NOFOLLOW: 131072, O_SYNC: 1052672, S_IFMT: 61440, S_IFREG: 32768, S_IFDIR: 16384, S_IFLNK: 40960, S_IRUSR: 256, S_IWUSR: 128, S_IXUSR: 64 }, F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1, Stats, Dirent };
const promises = { constants: fs.constants };
for (const k of Object.keys(sync)) {
  const f = sync[k];
  fs[k + 'Sync'] = Object.defineProperty((...args) => f(...args), 'name', { value: k + 'Sync' });
  fs[k] = Object.defineProperty((...args) => {
    const done = args.pop();
    if (typeof done !== 'function') throw shared.badType('cb', 'function', done);
    let r, e = null;
    const late = () => { try { r = f(...args); } catch (x) { e = x; } if (e) done(e); else if (k === 'read' || k === 'write') done(null, r, args[1]); else done(null, r); };
    setImmediate(late);
  }, 'name', { value: k });
  promises[k] = Object.defineProperty(async (...args) => { if (args[0] instanceof FileHandle) args[0] = args[0].fd; return f(...args); }, 'name', { value: k });
}
fs.realpathSync.native = fs.realpathSync;
fs.existsSync = (p) => { try { return host.stat(name(p), true, true) !== undefined; } catch { return false; } };
fs.exists = (p, done) => setImmediate(() => done(fs.existsSync(p)));
class FileHandle {
  constructor(fd) { this.fd = fd; }
  async read(b, ...a) { if (b === undefined || !ArrayBuffer.isView(b)) { const o = b || {}; b = o.buffer || buffers().Buffer.alloc(16384); a = [o]; } return { bytesRead: sync.read(this.fd, b, ...a), buffer: b }; }
  async write(d, ...a) { return { bytesWritten: sync.write(this.fd, d, ...a), buffer: d }; }
  async readFile(o) { return sync.readFile(this.fd, o); } async writeFile(d, o) { return sync.writeFile(this.fd, d, o); } async appendFile(d, o) { return sync.appendFile(this.fd, d, o); }
  async stat(o) { return sync.fstat(this.fd, o); } async truncate(n) { sync.ftruncate(this.fd, n); } async sync() {} async datasync() {} async chmod(m) { sync.fchmod(this.fd, m); }
  async close() { if (this.fd >= 0) { host.close(this.fd); this.fd = -1; } }
  readLines(o) { return builtin('readline').createInterface({ input: this.createReadStream(o) }); }
  createReadStream(o) { return fs.createReadStream('', { ...o, fd: this.fd }); } createWriteStream(o) { return fs.createWriteStream('', { ...o, fd: this.fd }); }
  [Symbol.asyncDispose || Symbol.for('nodejs.asyncDispose')]() { return this.close(); }
}
promises.open = async (p, f, m) => new FileHandle(sync.open(p, f, m));
promises.exists = undefined;
delete promises.exists; delete promises.close; delete promises.read; delete promises.write; delete promises.fstat;
fs.promises = promises;
fs.createReadStream = (p, o) => builtin('stream').fileReader(fs, p, options(o));
fs.createWriteStream = (p, o) => builtin('stream').fileWriter(fs, p, options(o));
fs.watch = fs.watchFile = () => { const e = new Error('watching files is not supported in this sandbox'); e.code = 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM'; throw e; };
fs.unwatchFile = () => {};
module.exports = fs;
})
