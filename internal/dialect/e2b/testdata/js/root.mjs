// only: gvisor
// Files as root, who has no capabilities here: what is root's is root's alone.
import { promise } from './promise.mjs'
import { AuthenticationError, FileNotFoundError, InvalidArgumentError, NotFoundError, Sandbox } from 'e2b'

const sandbox = await Sandbox.create(process.env.TEMPLATE)
const { commands, files } = sandbox
const user = 'root'

await promise('what root writes is root’s, and nobody else reads what is root’s alone', async (t) => {
  const info = await files.write('/tmp/of/root/a.txt', 'mine', { user })
  t.deepEqual([info.path, info.name, info.type], ['/tmp/of/root/a.txt', 'a.txt', 'file'])
  t.equal((await files.getInfo('/tmp/of/root/a.txt', { user })).owner, 'root')
  t.equal((await commands.run('stat -c "%U %a" /tmp/of/root/a.txt /tmp/of/root')).stdout, 'root 644\nroot 755\n')
  await commands.run('chmod 700 /tmp/of/root', { user })
  await t.rejects(files.read('/tmp/of/root/a.txt'), /permission denied/i)
  await t.rejects(files.write('/tmp/of/root/b', 'x'), /permission denied/i)
  t.equal(await files.read('/tmp/of/root/a.txt', { user }), 'mine')
  t.deepEqual((await files.list('/tmp/of/root', { user })).map((e) => [e.name, e.owner, e.size]), [['a.txt', 'root', 4]])
  t.equal(await files.exists('/tmp/of/root/a.txt', { user }), true)
})
await promise('root’s files are described, moved, listed in depth and removed', async (t) => {
  t.equal(await files.makeDir('/tmp/r/x/y', { user }), true)
  t.equal(await files.makeDir('/tmp/r/x/y', { user }), false)
  await files.write('/tmp/r/with\nline "quoted"', '', { user })
  await commands.run('ln -s x/y /tmp/r/link; chmod 1777 /tmp/r', { user })
  const link = await files.getInfo('/tmp/r/link', { user })
  t.deepEqual([link.type, link.symlinkTarget], ['dir', '/tmp/r/x/y'])
  t.deepEqual((await files.list('/tmp/r', { user, depth: 2 })).map((e) => e.name), ['link', 'with\nline "quoted"', 'x', 'y'])
  t.equal((await files.rename('/tmp/r/x', '/tmp/r/new/dir', { user })).owner, 'root')
  await files.remove('/tmp/r', { user })
  await files.remove('/tmp/r', { user })
  t.equal(await files.exists('/tmp/r', { user }), false)
})
await promise('each form of a file passes, and its parts', async (t) => {
  const data = Buffer.alloc(5 << 20, 'paddock ')
  await files.write('/tmp/large', new Blob([data]), { user })
  t.ok(data.equals(Buffer.from(await files.read('/tmp/large', { user, format: 'bytes' }))))
  await files.write('/tmp/large', 'short', { user, useOctetStream: true, gzip: true })
  t.equal(await files.read('/tmp/large', { user, gzip: true }), 'short')
  const part = await fetch(await sandbox.downloadUrl('/tmp/large', { user }), { headers: { Range: 'bytes=1-3' } })
  t.deepEqual([part.status, await part.text()], [206, 'hor'])
  await files.write('/tmp/large', '', { user })
  t.equal(await files.read('/tmp/large', { user }), '')
  const metadata = { author: 'root' }
  t.deepEqual((await files.write('/tmp/told', 'x', { user, metadata })).metadata, metadata)
  t.deepEqual((await files.getInfo('/tmp/told', { user })).metadata, metadata)
  t.deepEqual((await files.write([{ path: '/tmp/m1', data: '1' }, { path: '/tmp/m2', data: '2' }], { user })).map((e) => e.path), ['/tmp/m1', '/tmp/m2'])
  t.equal((await commands.run('stat -c %U /tmp/m1 /tmp/m2')).stdout, 'root\nroot\n')
})
await promise('what is wrong is told by its exception', async (t) => {
  await t.rejects(files.read('/tmp/nope', { user }), FileNotFoundError)
  await t.rejects(files.list('/tmp/nope', { user }), NotFoundError)
  await t.rejects(files.list('/tmp/large', { user }), InvalidArgumentError)
  await t.rejects(files.read('/tmp', { user }), InvalidArgumentError)
  await t.rejects(files.rename('/tmp/nope', '/tmp/other', { user }), NotFoundError)
  await t.rejects(files.makeDir('/tmp/large', { user }), InvalidArgumentError)
  await t.rejects(files.write('/etc/of-nobody', 'x', { user }), /permission denied/i)
  await t.rejects(files.write('/tmp/x', 'x', { user: 'zork' }), AuthenticationError)
  await t.rejects(files.read('/tmp/x', { user: 'zork' }), /invalid username: 'zork'/)
})
await promise('a signed address is for the user that it was signed for', async (t) => {
  const url = new URL(await sandbox.downloadUrl('/tmp/m1'))
  t.equal((await fetch(url, { headers: { Authorization: 'Basic ' + btoa('root:') } })).status, 401)
  url.searchParams.set('username', 'root')
  t.equal((await fetch(url)).status, 401)
  t.equal((await fetch(await sandbox.downloadUrl('/tmp/m1', { user }))).status, 200)
})
await promise('a watch that root asks for tells what changes', async (t) => {
  const watch = await files.watchDir('/tmp', () => {}, { user })
  await watch.stop()
})
await sandbox.kill()
