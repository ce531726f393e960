// Options that the other scripts leave out.
import { promise, reach, until } from './promise.mjs'
import { AuthenticationError, FileNotFoundError, Sandbox } from 'e2b'
import { randomUUID } from 'node:crypto'

const template = process.env.TEMPLATE
const mark = randomUUID()
const sandbox = await Sandbox.create(template, { metadata: { mark }, timeoutMs: 120_000 })

await promise('sandboxes are listed by their template, their start and in either order', async (t) => {
  const second = await Sandbox.create(template, { metadata: { mark } })
  const ids = async (opts, query) => (await Sandbox.list({ ...opts, query: { metadata: { mark }, ...query } }).nextItems()).map((s) => s.sandboxId)
  t.deepEqual(await ids({ order: 'asc' }), [sandbox.sandboxId, second.sandboxId])
  t.deepEqual(await ids({ order: 'desc' }), [second.sandboxId, sandbox.sandboxId])
  t.deepEqual(await ids({}, { startedAfter: (await second.getInfo()).startedAt }), [second.sandboxId])
  t.deepEqual(await ids({}, { startedAfter: new Date(Date.now() + 60_000) }), [])
  t.equal((await ids({}, { template: 'base' })).length, 2)
  t.deepEqual(await ids({}, { template: 'none' }), [])
  const first = Sandbox.list({ limit: 1, order: 'asc', query: { metadata: { mark } } })
  await first.nextItems()
  t.deepEqual((await Sandbox.list({ limit: 1, order: 'asc', nextToken: first.nextToken, query: { metadata: { mark } } }).nextItems()).map((s) => s.sandboxId), [second.sandboxId])
  t.ok(await second.kill())
})
await promise('metrics are those of a time', async (t) => {
  await until(async () => (await sandbox.getMetrics()).length > 0)
  t.ok((await sandbox.getMetrics({ start: new Date(Date.now() - 60_000), end: new Date(Date.now() + 60_000) })).length > 0)
  t.deepEqual(await sandbox.getMetrics({ start: new Date(Date.now() - 120_000), end: new Date(Date.now() - 60_000) }), [])
  const [one] = await Sandbox.getMetrics(sandbox.sandboxId)
  t.ok(one.memTotal > 0 && one.cpuCount >= 1 && one.timestamp instanceof Date)
})
await promise('what listens inside sees the host that it is to see', async (t) => {
  const other = await Sandbox.create(template, { network: { maskRequestHost: 'localhost:${PORT}' } })
  await other.files.write('show.py', `import http.server
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(self.headers['Host'].encode())
http.server.HTTPServer(('', 8130), H).serve_forever()`)
  await other.commands.run('python3 show.py', { background: true })
  await until(async () => (await reach(other, 8130, '/')).status === 200)
  t.equal(await (await reach(other, 8130, '/')).text(), 'localhost:8130')
  t.ok(await other.kill())
})
await promise('a port that speaks TLS answers as one', async (t) => {
  const other = await Sandbox.create(template, { network: { httpsPorts: [8131] } })
  await other.files.write('tls.py', `import http.server, ssl
s = http.server.HTTPServer(('', 8131), http.server.SimpleHTTPRequestHandler)
c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); c.load_cert_chain('cert.pem', 'key.pem')
s.socket = c.wrap_socket(s.socket, server_side=True); s.serve_forever()`)
  await other.commands.run('openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -subj /CN=inside -days 2 2>/dev/null')
  await other.commands.run('python3 tls.py', { background: true })
  await until(async () => (await reach(other, 8131, '/')).status === 200)
  t.ok(await other.kill())
})
await promise('a network object tells what it holds', async (t) => {
  const network = { allowOut: ['api.example.com'], denyOut: ['0.0.0.0/0'], rules: { 'api.example.com': [{ transform: { headers: { 'X-A': 'b' } } }] } }
  const other = await Sandbox.create(template, { network })
  const info = await other.getInfo()
  t.deepEqual([info.network.allowOut, info.network.denyOut, info.network.rules['api.example.com'][0].transform.headers], [network.allowOut, network.denyOut, { 'X-A': 'b' }])
  t.equal((await Sandbox.getInfo(sandbox.sandboxId)).allowInternetAccess ?? null, null)
  t.ok(await other.kill())
  await t.rejects(Sandbox.create(template, { network: { denyOut: ['example.com'] } }), /400/)
})
await promise('a terminal has a time, a directory and variables of its own', async (t) => {
  await sandbox.files.makeDir('in')
  let out = ''
  const terminal = await sandbox.pty.create({ cols: 80, rows: 24, cwd: 'in', user: 'user', envs: { MINE: 'here' }, timeoutMs: 0, onData: (data) => { out += Buffer.from(data) } })
  await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode('echo "$MINE:$PWD:$TERM:$(id -un)"\n'))
  await until(() => out.includes('here:/home/user/in:xterm-256color:user'))
  t.equal(await terminal.kill(), true)
  let short
  for (let ms = 500; !short; ms *= 2) { // a slow machine starts it later
    try {
      short = await sandbox.pty.create({ cols: 80, rows: 24, timeoutMs: ms, onData: () => {} })
    } catch (error) {
      if (error.name !== 'TimeoutError' || ms > 60_000) throw error
    }
  }
  await t.rejects(short.wait(), { name: 'TimeoutError' })
  await t.rejects(sandbox.pty.create({ cols: 80, rows: 24, cwd: '/nowhere', onData: () => {} }), /does not exist/)
})
await promise('a request is given up by its signal', async (t) => {
  await t.rejects(sandbox.commands.run('sleep 1000', { signal: AbortSignal.timeout(300) }))
  await t.rejects(sandbox.files.read('a', { signal: AbortSignal.abort() }))
  t.equal((await sandbox.commands.run('echo still', { requestTimeoutMs: 30_000 })).stdout, 'still\n')
})
await promise('a watch tells of what was there already below, and ends by its time', async (t) => {
  await sandbox.commands.run('mkdir -p w/a/b')
  const seen = []
  let over
  const watch = await sandbox.files.watchDir('w', (e) => { seen.push(`${e.type} ${e.name}`) }, { recursive: true, allowNetworkMounts: true, timeoutMs: 3000, onExit: (error) => { over = error ?? 'ended' } })
  await sandbox.files.write('w/a/b/c', 'x')
  await until(() => seen.includes('write a/b/c'))
  await until(() => over)
  await watch.stop()
})
await promise('a token of MCP is read where a gateway left it', async (t) => {
  t.equal(sandbox.getMcpUrl(), `https://${sandbox.getHost(50005)}/mcp`)
  if (process.env.TIER === 'gvisor') await t.rejects(sandbox.getMcpToken(), FileNotFoundError)
  else await t.rejects(sandbox.getMcpToken(), AuthenticationError)
})
await sandbox.kill()
process.exit() // timers of requests that were given up have their time left
