(function (shared, module) {
'use strict';
class AsyncLocalStorage {
  run(store, f, ...args) { const old = this.store; this.store = store; try { return f(...args); } finally { this.store = old; } }
  getStore() { return this.store; } enterWith(s) { this.store = s; } exit(f, ...a) { return this.run(undefined, f, ...a); } disable() { this.store = undefined; }
}
class AsyncResource { constructor(type) { this.type = type; } runInAsyncScope(f, self, ...a) { return f.apply(self, a); } static bind(f) { return f; } emitDestroy() { return this; } }
module.exports = { AsyncLocalStorage, AsyncResource, createHook: () => ({ enable() { return this; }, disable() { return this; } }), executionAsyncId: () => 1 };
})
