(function (shared, module, _, builtin) {
'use strict';
const Emitter = builtin('events');
class Interface extends Emitter {
  constructor(input, output) {
    super();
    const o = input && input.input ? input : { input, output };
    this.input = o.input; this.output = o.output; this.terminal = false; this.line = ''; this.closed = false;
    this.rest = ''; this.lines = []; this.questions = []; this.mark = o.prompt ?? '> '; this.over = false; this.paused = false;
    const decoder = new (builtin('string_decoder').StringDecoder)('utf8');
    this.input.on('data', (c) => {
      this.rest += typeof c === 'string' ? c : decoder.write(c);
      const l = this.rest.split(/\r\n|\n|\r(?!$)/);
      this.rest = l.pop();
      this.lines.push(...l);
      this.deliver();
    });
    this.input.on('end', () => { this.rest += decoder.end(); if (this.rest) this.lines.push(this.rest.replace(/\r$/, '')); this.rest = ''; this.over = true; this.deliver(); });
    this.input.on('error', (e) => { if (this.listenerCount('error')) this.emit('error', e); else { this.failed = e; if (this.wake) this.wake(); else if (!this.reading) throw e; } });
  }
  deliver() {
    while (this.lines.length && !this.closed && !this.paused) {
      if (this.questions.length) { this.questions.shift()(this.lines.shift()); continue; }
      if (this.reading) { if (this.wake) this.wake(); return; }
      if (!this.listenerCount('line') && !this.over) return;
      this.emit('line', this.lines.shift());
    }
    if (this.over && !this.closed && !this.lines.length) { if (this.reading && this.wake) this.wake(); else this.close(); }
  }
  on(name, f) { super.on(name, f); if (name === 'line') this.deliver(); return this; }
  question(q, o, done) {
    if (typeof o === 'function') done = o;
    if (this.output) this.output.write(q);
    this.questions.push(done);
    this.input.resume();
    this.deliver();
  }
  setPrompt(p) { this.mark = p; } getPrompt() { return this.mark; }
  prompt() { if (this.output) this.output.write(this.mark); this.input.resume(); }
  write(s) { if (s) { this.lines.push(...String(s).split('\n').filter((l, i, a) => i < a.length - 1 || l)); this.deliver(); } }
  pause() { this.paused = true; this.input.pause(); this.emit('pause'); return this; }
  resume() { this.paused = false; this.input.resume(); this.emit('resume'); this.deliver(); return this; }
  close() { if (this.closed) return; this.closed = true; this.input.pause(); if (this.input === process.stdin) this.input.destroy(); this.emit('close'); if (this.wake) this.wake(); }
  async *[Symbol.asyncIterator]() {
    this.reading = true;
    try {
      for (;;) {
        if (this.lines.length) { yield this.lines.shift(); continue; }
        if (this.failed) throw this.failed;
        if (this.over || this.closed) break;
        await new Promise((r) => { this.wake = r; });
        this.wake = null;
      }
    } finally { this.reading = false; this.close(); }
  }
}
const createInterface = (...a) => new Interface(...a);
class PromiseInterface extends Interface { question(q) { return new Promise((r) => { super.question(q, {}, r); }); } }
const nothing = () => true;
module.exports = { Interface, createInterface, clearLine: nothing, cursorTo: nothing, moveCursor: nothing, clearScreenDown: nothing, emitKeypressEvents() {}, promises: { Interface: PromiseInterface, createInterface: (...a) => new PromiseInterface(...a) } };
})
