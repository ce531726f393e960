// only: domain
// By name, encrypted: the client is told a domain and nothing else.
import './resolve.mjs'
import https from 'node:https'
import { promise, until } from './promise.mjs'
import { Sandbox } from 'e2b'

const sandbox = await Sandbox.create(process.env.TEMPLATE)

// get asks over HTTPS with what node trusts: status and body.
const get = (url, head = {}) =>
  new Promise((done, fail) => {
    const req = https.get(url, { headers: head }, (res) => {
      let text = ''
      res.on('data', (part) => (text += part)).on('end', () => done([res.statusCode, text]))
    })
    req.on('error', fail)
  })

await promise('commands and files work by name', async (t) => {
  t.equal((await sandbox.commands.run('echo named')).stdout, 'named\n')
  await sandbox.files.write('here', 'still')
  t.equal(await sandbox.files.read('here'), 'still')
})

await promise('the host of a port leads to it', async (t) => {
  t.equal(sandbox.getHost(8123), `8123-${sandbox.sandboxId}.${process.env.E2B_DOMAIN}`)
  const server = await sandbox.commands.run('python3 -m http.server 8123', { background: true })
  await until(async () => (await get(`https://${sandbox.getHost(8123)}/`))[0] === 200)
  const [status, text] = await get(`https://${sandbox.getHost(8124)}/`)
  t.equal(status, 502)
  t.equal(JSON.parse(text).message, 'The sandbox is running but port is not open')
  await server.kill()
})

await promise('a path of the control plane at the host of a port is the port’s', async (t) => {
  const [status] = await get(`https://${sandbox.getHost(8124)}/sandboxes`, { 'X-API-KEY': process.env.E2B_API_KEY })
  t.equal(status, 502)
})

await promise('a signed URL by name gives a file', async (t) => {
  t.deepEqual(await get(await sandbox.downloadUrl('here')), [200, 'still'])
})

await promise('a killed sandbox is 502 by name, too', async (t) => {
  t.ok(await sandbox.kill())
  t.equal((await get(`https://${sandbox.getHost(49983)}/health`))[0], 502)
})
