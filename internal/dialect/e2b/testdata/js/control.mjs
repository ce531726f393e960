// Every method of the control plane that a sandbox has, but for those of snapshots.
import { promise, reach, until } from './promise.mjs'
import { Sandbox, SandboxNotFoundError, AuthenticationError, TemplateError, TimeoutError } from 'e2b'
import { Sandbox as OldSandbox } from 'e2b-old'
import { randomUUID } from 'node:crypto'

const template = process.env.TEMPLATE
const mark = randomUUID()
const sandbox = await Sandbox.create(template, { metadata: { mark, 'a b': 'c&d=é %' }, envs: { FOO: 'bar' }, timeoutMs: 120_000 })

await promise('what a sandbox is told of itself is what was asked for', async (t) => {
  const info = await sandbox.getInfo()
  t.equal(info.sandboxId, sandbox.sandboxId)
  t.equal(info.templateId, 'base')
  t.equal(info.state, 'running')
  t.deepEqual(info.metadata, { mark, 'a b': 'c&d=é %' })
  t.ok(info.cpuCount >= 1 && info.memoryMB >= 128)
  const left = info.endAt.getTime() - Date.now()
  t.ok(left > 60_000 && left <= 120_000, `${left}`)
  t.deepEqual((await Sandbox.getInfo(sandbox.sandboxId)).metadata, info.metadata)
})

await promise('a variable of the sandbox is in every command, and a command has its own', async (t) => {
  t.equal((await sandbox.commands.run('echo $FOO')).stdout, 'bar\n')
  t.equal((await sandbox.commands.run('echo $FOO', { envs: { FOO: 'own' } })).stdout, 'own\n')
})

await promise('sandboxes are listed by metadata and state, in pages', async (t) => {
  const more = await Promise.all([1, 2].map(() => Sandbox.create(template, { metadata: { mark } })))
  try {
    const pages = Sandbox.list({ query: { metadata: { mark } }, limit: 2 })
    const first = await pages.nextItems()
    t.equal(first.length, 2)
    t.ok(pages.hasNext)
    const rest = await pages.nextItems()
    t.equal(rest.length, 1)
    t.ok(!pages.hasNext)
    t.equal(rest[0].sandboxId, sandbox.sandboxId) // the newest comes first
    const one = await Sandbox.list({ query: { metadata: { mark, 'a b': 'c&d=é %' }, state: ['running'] } }).nextItems()
    t.deepEqual(one.map((s) => s.sandboxId), [sandbox.sandboxId])
    t.deepEqual(await Sandbox.list({ query: { metadata: { mark }, state: ['paused'] } }).nextItems(), [])
  } finally {
    t.deepEqual(await Promise.all(more.map((s) => s.kill())), [true, true])
  }
})

await promise('the end of a sandbox moves both ways', async (t) => {
  await sandbox.setTimeout(1000_000)
  const later = (await sandbox.getInfo()).endAt.getTime() - Date.now()
  t.ok(later > 900_000, `${later}`)
  await Sandbox.setTimeout(sandbox.sandboxId, 100_000)
  const sooner = (await sandbox.getInfo()).endAt.getTime() - Date.now()
  t.ok(sooner <= 100_000, `${sooner}`)
})

await promise('connecting to a sandbox that runs never brings its end nearer', async (t) => {
  const again = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 1000 })
  t.equal((await again.commands.run('echo again')).stdout, 'again\n')
  t.ok((await again.getInfo()).endAt.getTime() - Date.now() > 30_000)
})

await promise('there are metrics soon', async (t) => {
  const metrics = await sandbox.getMetrics()
  t.ok(metrics.length > 0)
  t.ok(metrics[0].memTotal > 0 && metrics[0].cpuCount >= 1)
})

await promise('an older client works with the same sandbox', async (t) => {
  const old = await OldSandbox.create(template)
  t.equal((await old.commands.run('echo old')).stdout, 'old\n')
  const seen = await Sandbox.connect(old.sandboxId)
  t.ok(await seen.isRunning())
  t.ok(await old.kill())
  t.equal(await old.isRunning(), false)
})

await promise('a sandbox that is not there is not found', async (t) => {
  const id = 'i' + 'a'.repeat(20)
  await t.rejects(Sandbox.getInfo(id), SandboxNotFoundError)
  await t.rejects(Sandbox.connect(id), SandboxNotFoundError)
  await t.rejects(Sandbox.setTimeout(id, 1000), SandboxNotFoundError)
  await t.rejects(Sandbox.pause(id), SandboxNotFoundError)
  t.equal(await Sandbox.kill(id), false)
})

await promise('what is wrong is refused in the words that clients know', async (t) => {
  await t.rejects(Sandbox.create(template, { apiKey: 'e2b_' + '0'.repeat(40) }), AuthenticationError)
  await t.rejects(Sandbox.create('desktop'), /template 'desktop' not found/)
  await t.rejects(Sandbox.create('base:nonsense'), /tag 'nonsense' does not exist for template 'base'/)
  await t.rejects(Sandbox.create(template, { timeoutMs: 0 }), /Timeout must be greater than 0/)
})

await promise('a port inside answers through the server, and one where nothing listens is 502', async (t) => {
  const port = 8123
  const server = await sandbox.commands.run(`${process.env.SERVER ?? 'python3 -m http.server'} ${port}`, { background: true })
  const ask = (port) => reach(sandbox, port, '/')
  await until(async () => (await ask(port)).status === 200)
  const closed = await ask(8124)
  t.equal(closed.status, 502)
  t.deepEqual(await closed.json(), { sandboxId: sandbox.sandboxId, message: 'The sandbox is running but port is not open', port: 8124, code: 502 })
  await server.kill()
})

await promise('a path of the agent that is internal is not there', async (t) => {
  const res = await reach(sandbox, 49983, '/init', { method: 'POST' })
  t.equal(res.status, 404)
})

await promise('a private sandbox answers who has its traffic token alone', async (t) => {
  const closed = await Sandbox.create(template, { network: { allowPublicTraffic: false } })
  t.ok(closed.trafficAccessToken)
  const ask = async (headers) => (await reach(closed, 8125, '/', { headers })).status
  t.equal(await ask({}), 403)
  t.equal(await ask({ 'E2B-Traffic-Access-Token': 'x' }), 403)
  t.equal(await ask({ 'E2B-Traffic-Access-Token': closed.trafficAccessToken }), 502)
  await closed.kill()
})

await promise('the network of a living sandbox is replaced', async (t) => {
  await sandbox.updateNetwork({ allowOut: ['example.com'], denyOut: ['0.0.0.0/0'] })
  t.deepEqual((await sandbox.getInfo()).network?.allowOut, ['example.com'])
  await sandbox.updateNetwork({ denyOut: ['192.0.2.0/24'] })
  t.equal((await sandbox.getInfo()).network?.allowOut, undefined)
  await t.rejects(sandbox.updateNetwork({ allowOut: ['example.com'] }), /needs 0.0.0.0\/0 in denyOut/)
})

await promise('a living sandbox without a network gets one, and loses it again', async (t) => {
  const closed = await Sandbox.create(template, { allowInternetAccess: false })
  const name = async () => (await closed.commands.run('getent hosts example.com || true')).stdout
  t.equal(await name(), '')
  await closed.updateNetwork({ allowOut: ['example.com'], denyOut: ['0.0.0.0/0'] })
  t.match(await name(), /example.com/)
  await closed.updateNetwork({ denyOut: ['0.0.0.0/0'] })
  t.equal(await name(), '')
  await closed.kill()
})

await promise('a sandbox that is killed while a command runs cuts it', async (t) => {
  const doomed = await Sandbox.create(template)
  // In the background, because a client that is cut before it hears of the start says something else.
  const command = await doomed.commands.run('sleep 1000', { background: true, timeoutMs: 0 })
  const cut = t.rejects(command.wait(), TimeoutError)
  t.ok(await doomed.kill())
  await cut
})

await promise('a sandbox ends by itself', async (t) => {
  const short = await Sandbox.create(template, { timeoutMs: 2000 })
  await until(async () => !(await short.isRunning()))
  await until(async () => (await Sandbox.kill(short.sandboxId)) === false)
})

await sandbox.kill()
