// only: jail
// What a tier cannot do is refused in words, and leaves the sandbox as it is.
import { promise } from './promise.mjs'
import { AuthenticationError, Sandbox, Secret, SecretNotFoundError, Template, Volume, VolumeNotFoundError } from 'e2b'

const sandbox = await Sandbox.create(process.env.TEMPLATE)

await promise('a snapshot where the tier keeps none', async (t) => {
  await t.rejects(sandbox.createSnapshot(), /400: the tier jail cannot take this snapshot/)
  t.ok(await sandbox.isRunning())
})

await promise('a fork where the tier keeps no memory', async (t) => {
  await t.rejects(sandbox.fork(), /the tier jail cannot take this snapshot/)
  t.ok(await sandbox.isRunning())
})

await promise('a pause without memory when the time is over', async (t) => {
  await t.rejects(Sandbox.create(process.env.TEMPLATE, { lifecycle: { onTimeout: { action: 'pause', keepMemory: false } } }), /autoPauseMemory false/)
})

await promise('files of another user where the tier has none', async (t) => {
  for (const call of [() => sandbox.files.write('/tmp/x', 'x', { user: 'root' }), () => sandbox.files.read('/etc/passwd', { user: 'root' }), () => sandbox.files.list('/tmp', { user: 'root' })]) {
    await t.rejects(call(), (e) => e instanceof AuthenticationError && e.message.includes("invalid username: 'root': files are read and written as user in this sandbox, whose tier is jail"))
  }
})

await promise('volumes', async (t) => {
  await t.rejects(Volume.create('data'), /volumes are not offered by this server/)
  t.deepEqual(await Volume.list(), [])
  await t.rejects(Volume.connect('data'), VolumeNotFoundError)
  t.equal(await Volume.destroy('data'), false)
  await t.rejects(Sandbox.create(process.env.TEMPLATE, { volumeMounts: { '/data': 'data' } }), /volumes are not offered by this server/)
})

await promise('secrets and identities', async (t) => {
  await t.rejects(Secret.create('name', 'value'), /secrets are not offered over this API/)
  await t.rejects(Secret.update('name', 'value'), SecretNotFoundError)
  t.deepEqual(await Secret.list().nextItems(), [])
  t.equal(await Secret.exists('name'), false)
  t.equal(await Secret.destroy('name'), false)
  await t.rejects(Sandbox.create(process.env.TEMPLATE, { iam: { tokens: { a: { audience: 'x', tokenType: 'JWT-SVID' } } } }), /workload identities are not offered/)
})

await promise('private addresses, and a proxy', async (t) => {
  await t.rejects(sandbox.updateNetwork({ allowOut: ['10.0.0.0/8'], denyOut: ['0.0.0.0/0'] }), /403: this key may not ask for the address/)
  await t.rejects(Sandbox.create(process.env.TEMPLATE, { network: { egressProxy: { address: 'proxy.example.com:1080' } } }), /403: this key may not ask for an upstream proxy/)
})

await sandbox.kill()
