// Every method of @e2b/code-interpreter.
import { promise, until } from './promise.mjs'
import { Sandbox } from '@e2b/code-interpreter'

const sandbox = await Sandbox.create(process.env.CODE_TEMPLATE, { envs: { OURS: 'here' } })

await promise('a cell gives its value, its output and its number', async (t) => {
  const heard = []
  const got = await sandbox.runCode("print('out')\nimport sys\nprint('bad', file=sys.stderr)\nx = 41\n'te' + 'xt'", {
    onStdout: (m) => heard.push(m.line ?? m), onStderr: (m) => heard.push(m.line ?? m), onResult: (r) => heard.push(r.text),
  })
  t.equal(got.text, 'text')
  t.deepEqual(got.logs, { stdout: ['out\n'], stderr: ['bad\n'] })
  t.equal(got.executionCount, 1)
  t.equal(got.error, undefined)
  t.equal(heard.length, 3)
})
await promise('state is kept', async (t) => {
  t.equal((await sandbox.runCode('x + 1')).text, '42')
})
await promise('an error is the language’s own', async (t) => {
  let heard
  const { error } = await sandbox.runCode('1 / 0', { onError: (e) => (heard = e) })
  t.equal(error.name, 'ZeroDivisionError')
  t.equal(error.value, 'division by zero')
  t.match(error.traceback, /Traceback/)
  t.equal(heard.name, error.name)
})
await promise('results come in their forms', async (t) => {
  const { results } = await sandbox.runCode(`
class Rich:
    def _repr_html_(self): return '<b>x</b>'
    def _repr_png_(self): return b'png'
    def _repr_json_(self): return {'a': 1}
Rich()`)
  t.equal(results[0].html, '<b>x</b>')
  t.equal(results[0].png, Buffer.from('png').toString('base64'))
  t.deepEqual(results[0].json, { a: 1 })
  t.equal(results[0].isMainResult, true)
})
await promise('variables are the sandbox’s, and for one cell those of the cell', async (t) => {
  t.equal((await sandbox.runCode("import os; os.environ['OURS']")).text, 'here')
  t.equal((await sandbox.runCode("os.environ['MINE']", { envs: { MINE: 'now' } })).text, 'now')
  t.equal((await sandbox.runCode("os.environ.get('MINE', 'none')")).text, 'none')
})
await promise('contexts are made, listed, restarted and removed', async (t) => {
  const context = await sandbox.createCodeContext({ language: 'python', cwd: '/tmp' })
  t.equal(context.language, 'python')
  t.equal(context.cwd, '/tmp')
  t.equal((await sandbox.runCode('import os; y = 1; os.getcwd()', { context })).text, '/tmp')
  const languages = (await sandbox.listCodeContexts()).map((c) => c.language)
  t.ok(languages.includes('python') && languages.includes('javascript'))
  await sandbox.restartCodeContext(context)
  t.equal((await sandbox.runCode('y', { context })).error.name, 'NameError')
  await sandbox.removeCodeContext(context.id)
  t.ok(!(await sandbox.listCodeContexts()).some((c) => c.id === context.id))
  await t.rejects(sandbox.runCode('1', { context }))
})
await promise('JavaScript and bash run too', async (t) => {
  t.equal((await sandbox.runCode('const z = await Promise.resolve([1, 2]); z.length', { language: 'js' })).text, '2')
  t.equal((await sandbox.runCode('const z = 3; console.log(z)', { language: 'javascript' })).logs.stdout.join(''), '3\n')
  t.equal((await sandbox.runCode('echo $((6 * 7))', { language: 'bash' })).logs.stdout.join(''), '42\n')
})
await promise('a language that is not known is refused', async (t) => {
  await t.rejects(sandbox.runCode('1', { language: 'cobol' }), /400/)
})
await promise('a client that stops waiting interrupts its cell', async (t) => {
  await t.rejects(sandbox.runCode('import time; time.sleep(1000)', { timeoutMs: 500 }))
  t.equal((await sandbox.runCode('x')).text, '41')
})
await promise('a kernel that ends is told, and the next cell runs', async (t) => {
  t.equal((await sandbox.runCode('os._exit(1)')).error.name, 'UnexpectedEndOfExecution')
  await until(async () => (await sandbox.runCode('1 + 1')).text === '2')
})
await sandbox.kill()
process.exit() // a timer of the client's, of the cell that it stopped waiting for, has a minute left
