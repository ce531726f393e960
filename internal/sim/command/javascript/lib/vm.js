(function (shared, module) {
'use strict';
const run = (code) => (0, eval)(String(code));
class Script { constructor(code) { this.code = String(code); } runInThisContext() { return run(this.code); } runInNewContext(o) { return inContext(this.code, o); } runInContext(o) { return inContext(this.code, o); } }
function inContext(code, o = {}) {
  const names = Object.keys(o);
  return new Function(...names, '__code', 'return eval(__code)')(...names.map((n) => o[n]), String(code));
}
module.exports = { Script, runInThisContext: run, runInNewContext: inContext, runInContext: inContext, createContext: (o = {}) => o, isContext: () => true };
})
