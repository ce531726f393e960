// Pausing, resuming, and what wakes a sandbox.
import { promise, reach, until } from './promise.mjs'
import { Sandbox } from 'e2b'

const template = process.env.TEMPLATE

const status = async (sandbox, port = 49983, path = '/health') => (await reach(sandbox, port, path)).status

await promise('a paused sandbox keeps its processes, answers nobody, and goes on when it is connected to', async (t) => {
  const sandbox = await Sandbox.create(template)
  await sandbox.files.write('here', 'still')
  const command = await sandbox.commands.run('sleep 1000', { background: true })
  t.ok(await sandbox.pause())
  t.equal(await sandbox.pause(), false)
  t.equal((await sandbox.getInfo()).state, 'paused')
  t.equal(await sandbox.isRunning(), false)
  t.equal(await status(sandbox), 502)
  const again = await sandbox.connect({ timeoutMs: 60_000 })
  t.equal(await again.files.read('here'), 'still')
  t.ok((await again.commands.list()).some((p) => p.pid === command.pid))
  t.equal((await again.getInfo()).state, 'running')
  t.ok(await again.kill())
})

await promise('a paused sandbox is listed as one, and can be killed', async (t) => {
  const sandbox = await Sandbox.create(template, { metadata: { only: 'paused' } })
  await sandbox.pause()
  const list = await Sandbox.list({ query: { metadata: { only: 'paused' }, state: ['paused'] } }).nextItems()
  t.deepEqual(list.map((s) => s.sandboxId), [sandbox.sandboxId])
  t.ok(await sandbox.kill())
  t.equal(await Sandbox.kill(sandbox.sandboxId), false)
})

await promise('a sandbox that is to be paused at its end is, and a request wakes it', async (t) => {
  const sandbox = await Sandbox.create(template, { timeoutMs: 6000, lifecycle: { onTimeout: 'pause', autoResume: true } }) // time to write, on a slow machine too
  await sandbox.files.write('here', 'still')
  t.deepEqual((await sandbox.getInfo()).lifecycle, { onTimeout: 'pause', autoResume: true })
  await until(async () => (await sandbox.getInfo()).state === 'paused')
  t.equal(await sandbox.files.read('here'), 'still')
  t.equal((await sandbox.getInfo()).state, 'running')
  t.ok(await sandbox.kill())
})

await promise('a sandbox that is to be paused at its end is not woken by a request, unless it asked for that', async (t) => {
  const sandbox = await Sandbox.create(template, { timeoutMs: 2000, lifecycle: { onTimeout: 'pause' } })
  await until(async () => (await sandbox.getInfo()).state === 'paused')
  t.equal(await status(sandbox), 502)
  const again = await Sandbox.connect(sandbox.sandboxId)
  t.equal((await again.commands.run('echo awake')).stdout, 'awake\n')
  t.ok(await again.kill())
})
