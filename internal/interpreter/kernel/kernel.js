"use strict";
// The kernel for JavaScript and TypeScript on node. The program that calls it gives
// `require`, `mark` (what messages begin with) and `language`; requests are lines of
// JSON on descriptor 3. Cells are evaluated as the lines of V8's own consoles are:
// with await, and names that may be declared again. A second thread reads the
// requests, so that it can stop code that never returns.
//
// What is stopped ends at once, with everything that called it, and no catch or finally
// runs. That must not happen to the kernel's own work, so the two threads share four
// numbers:
//  - HEARD: the last interrupt that this thread has handled.
//  - OPEN: 1 while code may be stopped.
//  - FLYING: 1 while the reader is about to stop code, or the stop has not arrived.
//  - TAKEN: the last request that this thread has queued.
// The reader sets FLYING before it reads OPEN. whole clears OPEN before it reads FLYING. So
// either the reader sees that it may not, or whole waits for the stop, in code that it may end.
// What is stopped outside of whole is repeated: after each stop the reader sends again what
// was not handled.
const fs = require("fs"), path = require("path"), util = require("util"), module_ = require("module");
const { Worker } = require("worker_threads");
const inspector = require("inspector");

const HEARD = 0, OPEN = 1, FLYING = 2, TAKEN = 3;
const shared = new Int32Array(new SharedArrayBuffer(16));
const session = new inspector.Session();
session.connect();

const internal = {}; // what evaluated code needs of the kernel
Object.defineProperty(globalThis, Symbol.for("paddock.internal"), { value: internal });
internal.wait = until => { while (Atomics.load(shared, FLYING) && Date.now() < until) Atomics.wait(shared, FLYING, 1, 10); };

let depth = 0; // of calls of whole
Atomics.store(shared, OPEN, 1);

// whole calls work, which is not stopped. It answers what work returns, or throws if a stop
// arrived for the cell that called it.
function whole(work, cell = false) {
  let stopped = false;
  Atomics.store(shared, OPEN, 0);
  for (const until = Date.now() + 5000; Atomics.load(shared, FLYING) && Date.now() < until;) {
    stopped = true;
    session.post("Runtime.evaluate", { expression: `globalThis[Symbol.for("paddock.internal")].wait(${until})` }, () => {});
  }
  depth++;
  let value;
  try { value = work(); } finally { if (--depth === 0) Atomics.store(shared, OPEN, 1); }
  if (cell && stopped && depth === 0) throw Object.assign(new Error(INTERRUPTED), { name: "Interrupted" });
  return value;
}

const INTERRUPTED = "the cell was interrupted";

// A stream that is stopped in the middle of a write stays silent from then on.
for (const stream of [process.stdout, process.stderr]) {
  const original = stream.write;
  stream.write = function (...args) { return whole(() => original.apply(this, args), true); };
}

// Node ends if a timer's callback is stopped. The inspector survives that.
function evaluated(callback) {
  if (typeof callback !== "function") return callback;
  return function (...args) {
    let failed = false, error;
    internal.call = () => { try { callback.apply(this, args); } catch (e) { failed = true; error = e; } };
    session.post("Runtime.evaluate", { expression: "void globalThis[Symbol.for('paddock.internal')].call()" }, () => {});
    if (failed) throw error;
  };
}
const timers = require("timers");
for (const name of ["setTimeout", "setInterval", "setImmediate"]) {
  const original = globalThis[name];
  const changed = { [name](callback, ...rest) { return original.call(this, evaluated(callback), ...rest); } }[name];
  Object.defineProperties(changed, Object.getOwnPropertyDescriptors(original));
  globalThis[name] = timers[name] = changed;
}
module_.syncBuiltinESMExports();

function write(fd, data) {
  for (;;) {
    try { return fs.writeSync(fd, data); } catch (e) {
      if (e.code !== "EAGAIN") throw e;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

// send is called inside whole.
function send(message, fd = 1) {
  const data = Buffer.from(JSON.stringify(message).replace(/[\u007f-\uffff]/g, c => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")), "latin1");
  const size = 4096 - 38;
  for (let at = 0; at < data.length; at += size) {
    const piece = data.subarray(at, at + size);
    const head = "\x1e" + mark + (at + size >= data.length ? "." : "+") + piece.length.toString(16).padStart(4, "0");
    write(fd, Buffer.concat([Buffer.from(head, "latin1"), piece]));
  }
}

// What is evaluated in the console's way has no require and no import of its own.
const here = () => path.join(process.cwd(), "<cell>");
let from = null, base = null;
const required = name => {
  if (from !== process.cwd()) { from = process.cwd(); base = module_.createRequire(here()); }
  return base(name);
};
const hidden = { writable: true, configurable: true, enumerable: false };
const loader = new Function("name", "return import(name)");
const resolve = name => {
  name = String(name).replace(/^npm:/, "").replace(/^(@?[^@]+)@[^/]*/, "$1");
  if (/^(node|file|data|https?):/.test(name)) return name;
  const { pathToFileURL } = require("url");
  if (path.isAbsolute(name)) return pathToFileURL(name).href;
  if (/^\.\.?(\/|$)/.test(name)) return pathToFileURL(path.resolve(name)).href;
  if (module_.builtinModules.includes(name)) return "node:" + name;
  return null;
};
async function imported(name) {
  const place = resolve(name);
  if (place) return importer(place);
  const bare = String(name).replace(/^npm:/, "").replace(/^(@?[^@]+)@[^/]*/, "$1");
  let file;
  try { file = required.resolve ? required.resolve(bare) : (required("module"), base.resolve(bare)); } catch (e) {
    throw Object.assign(new Error(`the package ${bare} is not installed in ${process.cwd()} or above: install it with npm`), { name: "ImportError", cause: e });
  }
  return importer(require("url").pathToFileURL(file).href);
}
let importer = loader;

Object.defineProperties(globalThis, {
  require: { ...hidden, value: Object.assign(name => required(name), { resolve: name => (required("module"), base.resolve(name)) }) },
  module: { ...hidden, value: { exports: {} } },
  exports: { ...hidden, value: {} },
  __filename: { ...hidden, value: here() },
  __dirname: { ...hidden, value: process.cwd() },
  __paddock_import: { ...hidden, value: imported },
  display: { ...hidden, value: (...values) => { for (const v of values) { const message = form(v, false); whole(() => send({ ...message, n: seq }), true); } } },
});

const DATA = { html: "text/html", markdown: "text/markdown", svg: "image/svg+xml", png: "image/png", jpeg: "image/jpeg", pdf: "application/pdf", latex: "text/latex", json: "application/json" };
let seq = "0", count = 0;

// form gives the message that shows a value. It calls methods of the value, which are the
// cell's code.
function form(value, main) {
  const data = {};
  if (value !== null && typeof value === "object") {
    for (const [name, kind] of Object.entries(DATA)) {
      for (const method of [`_to${name[0].toUpperCase()}${name.slice(1)}`, `_repr_${name}_`]) {
        if (typeof value[method] !== "function") continue;
        const form = value[method]();
        if (form === undefined || form === null) continue;
        if (Buffer.isBuffer(form) || form instanceof Uint8Array) data[kind] = Buffer.from(form).toString("base64");
        else data[kind] = kind === "application/json" ? JSON.parse(JSON.stringify(form)) : String(form);
      }
    }
    for (const method of ["_toMime", "_repr_mimebundle_"]) {
      if (typeof value[method] === "function") Object.assign(data, JSON.parse(JSON.stringify(value[method]() || {})));
    }
  }
  if (!("text/plain" in data)) data["text/plain"] = util.inspect(value);
  for (const kind of Object.keys(data)) if (data[kind] === undefined || (typeof data[kind] === "string" && data[kind].length > 6 << 20)) delete data[kind];
  if (!Object.keys(data).length) data["text/plain"] = "(too large to be shown)";
  return { t: "result", main, data };
}

// scan walks over the code of a cell and gives its tokens that matter: words and
// signs outside of strings, comments, templates and regular expressions.
function scan(code) {
  const tokens = [], depth = [];
  let at = 0, last = "";
  const skip = end => { while (at < code.length && code[at] !== end) at += code[at] === "\\" ? 2 : 1; at++; };
  const template = () => {
    while (at < code.length) {
      if (code[at] === "\\") at += 2;
      else if (code[at] === "`") { at++; return; }
      else if (code[at] === "$" && code[at + 1] === "{") { at += 2; depth.push("${"); return; }
      else at++;
    }
  };
  while (at < code.length) {
    const c = code[at], start = at;
    if (/\s/.test(c)) { at++; continue; }
    if (c === "/" && code[at + 1] === "/") { while (at < code.length && code[at] !== "\n") at++; continue; }
    if (c === "/" && code[at + 1] === "*") { at = code.indexOf("*/", at + 2); at = at < 0 ? code.length : at + 2; continue; }
    if (c === "'" || c === '"') { at++; skip(c); tokens.push({ start, end: at, kind: "string", depth: depth.length }); last = "string"; continue; }
    if (c === "`") { at++; template(); last = "string"; continue; }
    if (/[\p{L}_$\d#]/u.test(c)) {
      while (at < code.length && /[\p{L}\p{N}_$#.]/u.test(code[at]) && !(code[at] === "." && !/\d/.test(c))) at++;
      last = code.slice(start, at);
      tokens.push({ start, end: at, kind: "word", text: last, depth: depth.length });
      continue;
    }
    if (c === "/" && (last === "" || /^[([{,;=:!&|?+\-*%~^<>]$/.test(last) || /^(return|typeof|case|in|of|delete|void|throw|new|await|yield)$/.test(last))) {
      let set = false;
      for (at++; at < code.length && (set || code[at] !== "/") && code[at] !== "\n"; at++) {
        if (code[at] === "\\") at++; else if (code[at] === "[") set = true; else if (code[at] === "]") set = false;
      }
      at++; last = "string"; continue;
    }
    at++;
    if (c === "{" || c === "(" || c === "[") depth.push(c);
    if (c === "}" || c === ")" || c === "]") { if (depth.pop() === "${") { template(); last = "string"; continue; } }
    tokens.push({ start, end: at, kind: "sign", text: c, depth: depth.length });
    last = c;
  }
  return tokens;
}

// rewrite makes expressions of imports, which only modules have as statements.
function rewrite(code) {
  if (!/\b(import|export)\b/.test(code)) return code;
  const tokens = scan(code);
  const changes = [];
  for (let i = 0; i < tokens.length; i++) {
    const t = tokens[i], next = tokens[i + 1], before = tokens[i - 1];
    if (t.kind !== "word" || (before && before.text === ".")) continue;
    if (t.text === "import" && next && next.text === "(") { changes.push([t.start, t.end, "__paddock_import"]); continue; }
    if (t.depth !== 0) continue;
    if (t.text === "export" && next) {
      if (next.text === "default") changes.push([t.start, next.end, "globalThis.__default ="]);
      else if (/^(const|let|var|function|class|async)$/.test(next.text || "")) changes.push([t.start, t.end, ""]);
      continue;
    }
    if (t.text !== "import" || !next || next.text === ".") continue;
    let j = i + 1;
    while (j < tokens.length && tokens[j].kind !== "string") j++;
    if (j === tokens.length) continue;
    const head = tokens[j].start > tokens[i + 1].start ? code.slice(t.end, tokens[j].start) : "";
    changes.push([t.start, tokens[j].end, binding(head.replace(/\bfrom\s*$/, "").trim(), code.slice(tokens[j].start, tokens[j].end))]);
    i = j;
  }
  for (const [start, end, text] of changes.reverse()) code = code.slice(0, start) + text + code.slice(end);
  return code;
}

function binding(head, name) {
  const load = `await __paddock_import(${name})`;
  if (!head) return `void (${load})`;
  const parts = [];
  const all = head.match(/\*\s*as\s+([\p{L}_$][\p{L}\p{N}_$]*)/u);
  const some = head.match(/\{([^}]*)\}/);
  const whole = head.replace(/\{[^}]*\}|\*\s*as\s+\S+/gu, "").replace(/[,\s]/g, "");
  if (all) return `const ${all[1]} = ${load}` + (whole ? `, ${whole} = ${all[1]}.default` : "");
  if (whole) parts.push(`default: ${whole}`);
  if (some) for (const one of some[1].split(",")) if (one.trim()) parts.push(one.trim().replace(/\s+as\s+/, ": "));
  return `const { ${parts.join(", ")} } = ${load}`;
}

let strip = null;
if (language === "typescript") {
  if (typeof module_.stripTypeScriptTypes === "function") strip = code => module_.stripTypeScriptTypes(code, { mode: "transform" });
  else {
    process.stderr.write("TypeScript needs node 22.13, 23.2 or later, which can strip types: this is node " + process.version + "\n");
    process.exit(127);
  }
}

// Requests wait here and not in a chain of promises: a stop drops promises' reactions.
const queue = [];
let current = null; // the cell that runs
const { port1: later, port2: turns } = new MessageChannel();
turns.on("message", next);

// next begins the next cell, if none runs.
function next() {
  const cell = whole(begin);
  if (cell) session.post("Runtime.evaluate", { expression: `${cell.code}\n//# sourceURL=cell-${count}.js`, replMode: true, userGesture: false, generatePreview: false }, (e, r) => answered(cell, e, r));
}

function begin() {
  while (!current && queue.length) {
    const request = queue.shift();
    seq = request.n;
    if (request.ping) { end(); continue; }
    send({ t: "begun", n: seq, count: ++count });
    current = { before: {}, code: "" };
    for (const [name, value] of Object.entries(request.env || {})) { current.before[name] = process.env[name]; process.env[name] = value; }
    try {
      current.code = rewrite(strip ? strip(request.code) : request.code);
      return current;
    } catch (e) { finish([failure(e)]); }
  }
  return null;
}

// answered ends a cell with what the inspector says of it.
function answered(cell, error, answer) {
  if (cell !== current) return; // it was interrupted
  const messages = [];
  try {
    if (error) messages.push(/terminated/.test(error.message) ? interrupted() : failure(new Error(error.message)));
    else if (answer.exceptionDetails) messages.push(failure(taken(answer.exceptionDetails.exception), answer.exceptionDetails));
    else if (answer.result.type !== "undefined") messages.push(form(taken(answer.result), true));
  } catch (e) { messages.push(failure(e)); }
  whole(() => { if (cell === current) finish(messages); });
}

const interrupted = () => ({ t: "error", name: "Interrupted", value: INTERRUPTED, traceback: "" });

// finish ends the current cell. It is called inside whole.
function finish(messages) {
  for (const message of messages) send({ ...message, n: seq });
  for (const [name, value] of Object.entries(current.before)) if (value === undefined) delete process.env[name]; else process.env[name] = value;
  current = null;
  end();
  later.postMessage(null);
}

function end() {
  send({ t: "end", n: seq });
  send({ t: "end", n: seq }, 2);
}

// taken gives the value that an answer of the inspector stands for.
function taken(object) {
  if (!object) return undefined;
  if (object.objectId) {
    let value;
    internal.put = v => { value = v; };
    session.post("Runtime.callFunctionOn", { objectId: object.objectId, functionDeclaration: "function (v) { globalThis[Symbol.for('paddock.internal')].put(v) }", arguments: [{ objectId: object.objectId }] }, () => {});
    session.post("Runtime.releaseObject", { objectId: object.objectId });
    return value;
  }
  switch (object.unserializableValue) {
    case undefined: return object.value;
    case "NaN": return NaN;
    case "Infinity": return Infinity;
    case "-Infinity": return -Infinity;
    case "-0": return -0;
  }
  return BigInt(object.unserializableValue.slice(0, -1));
}

// failure gives the message that tells an error. It reads the error, which may be the
// cell's code.
function failure(error, details) {
  let name = "Error", value = "", trace = "";
  if (error !== null && typeof error === "object" && "message" in error) {
    name = String(error.name || "Error");
    value = String(error.message);
    trace = String(error.stack || "");
  } else {
    name = "Uncaught";
    value = trace = util.inspect(error);
  }
  const lines = trace.split("\n"), own = lines.findIndex(l => /Session\.post \(|\[eval|node:inspector|at whole \(|at next \(|new Function/.test(l));
  if (own > 0) trace = lines.slice(0, own).join("\n");
  if (name === "SyntaxError" && details && details.lineNumber >= 0) trace = `cell-${count}.js:${details.lineNumber + 1}\n${trace}`;
  return { t: "error", name, value: value.slice(0, 60000), traceback: trace.slice(0, 250000) };
}

process.on("SIGINT", () => {});
process.on("uncaughtException", e => { process.stderr.write(util.inspect(e) + "\n"); });
process.on("unhandledRejection", e => { process.stderr.write("unhandled rejection: " + util.inspect(e) + "\n"); });

// The reader passes requests on. If an interrupt is not handled soon, something does not
// return, and is stopped.
const reader = new Worker(`
  const { parentPort, workerData } = require("worker_threads");
  const inspector = require("inspector");
  const net = require("net");
  const { shared, HEARD, OPEN, FLYING, TAKEN } = workerData;
  const session = new inspector.Session();
  session.connectToMainThread();
  let rest = "", interrupts = 0, requests = 0, unread = [];
  const pass = request => {
    unread = unread.filter(r => r.number > Atomics.load(shared, TAKEN));
    unread.push({ ...request, number: ++requests });
    parentPort.postMessage(unread[unread.length - 1]);
  };
  const landed = () => {
    Atomics.store(shared, FLYING, 0);
    Atomics.notify(shared, FLYING);
  };
  const stop = number => {
    Atomics.store(shared, FLYING, 1);
    if (!Atomics.load(shared, OPEN) || Atomics.load(shared, HEARD) >= number) return landed();
    session.post("Runtime.terminateExecution", () => { // called when something was stopped
      landed();
      for (const request of unread) parentPort.postMessage(request);
      parentPort.postMessage({ interrupt: interrupts });
    });
  };
  const insist = number => {
    if (Atomics.load(shared, HEARD) >= number) return;
    if (!Atomics.load(shared, FLYING)) stop(number);
    setTimeout(insist, 100, number);
  };
  const input = new net.Socket({ fd: 3, readable: true, writable: false });
  input.setEncoding("utf8");
  input.on("data", text => {
    const lines = (rest + text).split("\\n");
    rest = lines.pop();
    for (const line of lines) {
      const request = JSON.parse(line);
      if (!request.interrupt) { pass(request); continue; }
      parentPort.postMessage({ interrupt: ++interrupts });
      setTimeout(insist, 100, interrupts);
    }
  });
  input.on("error", () => process.exit(0));
  input.on("end", () => pass({ over: true }));
`, { eval: true, workerData: { shared, HEARD, OPEN, FLYING, TAKEN }, stdout: false, stderr: false, execArgv: ["--no-warnings"] });

reader.on("message", message => {
  depth = 0; // a stop may have ended what counted
  whole(() => {
    if (message.interrupt) {
      if (message.interrupt <= Atomics.load(shared, HEARD)) return;
      if (current) finish([interrupted()]); // it waits, or was stopped
      Atomics.store(shared, HEARD, message.interrupt);
    } else if (message.number === Atomics.load(shared, TAKEN) + 1) {
      if (message.over) process.exit(0);
      queue.push(message);
      Atomics.store(shared, TAKEN, message.number);
    }
  });
  next();
});
reader.once("online", () => whole(() => {
  send({ t: "ready", n: "0" });
  send({ t: "ready", n: "0" }, 2);
}));
