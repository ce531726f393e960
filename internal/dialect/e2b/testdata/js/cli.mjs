// only: jail
// E2B's command line.
import { promise } from './promise.mjs'
import { Sandbox } from 'e2b'
import { execFile } from 'node:child_process'

// It reads its input to the end before it runs a command.
const run = (...args) =>
  new Promise((done, fail) => {
    const child = execFile(process.env.CLI, args, { env: { ...process.env, NO_COLOR: '1' } }, (error, out, said) => (error ? fail(new Error(`${error}\n${out}${said}`)) : done(out)))
    child.stdin.end()
  })

const sandbox = await Sandbox.create(process.env.TEMPLATE, { metadata: { mark: 'cli' } })

await promise('it lists sandboxes', async (t) => {
  t.ok(JSON.parse(await run('sandbox', 'list', '--format', 'json')).some((s) => s.sandboxId === sandbox.sandboxId))
  t.ok((await run('sandbox', 'info', sandbox.sandboxId)).includes(sandbox.sandboxId))
})

await promise('it runs a command', async (t) => {
  t.equal((await run('sandbox', 'exec', sandbox.sandboxId, 'echo', 'hello')).trim(), 'hello')
})

await promise('it shows metrics and logs', async (t) => {
  t.ok((await run('sandbox', 'metrics', sandbox.sandboxId)).length > 0)
  t.match(await run('sandbox', 'logs', sandbox.sandboxId), /the sandbox was made from/)
})

await promise('it makes and kills a sandbox', async (t) => {
  const out = await run('sandbox', 'create', process.env.TEMPLATE, '--detach')
  const id = out.match(/i[a-z2-7]{20}/)[0]
  await run('sandbox', 'kill', id)
  t.equal(await Sandbox.kill(id), false)
})

await promise('it lists templates', async (t) => {
  await run('template', 'list')
})

await sandbox.kill()
