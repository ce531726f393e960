// only: gvisor
// Snapshots, forks and templates.
import { promise, until } from './promise.mjs'
import { Sandbox, Template, waitForFile } from 'e2b'
import { mkdtempSync, writeFileSync, mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const template = process.env.TEMPLATE

await promise('a snapshot keeps files and processes, and sandboxes are made from it', async (t) => {
  const sandbox = await Sandbox.create(template, { envs: { FOO: 'bar' } })
  await sandbox.files.write('here', 'still')
  const command = await sandbox.commands.run('sleep 1000', { background: true })
  const snapshot = await sandbox.createSnapshot({ name: 'rig-snapshot' })
  t.match(snapshot.snapshotId, /rig-snapshot/)
  t.ok(await sandbox.isRunning())
  const listed = await sandbox.listSnapshots().nextItems()
  t.deepEqual(listed.map((s) => s.snapshotId), [snapshot.snapshotId])
  const copy = await Sandbox.create(snapshot.snapshotId)
  t.equal(await copy.files.read('here'), 'still')
  t.ok((await copy.commands.list()).some((p) => p.pid === command.pid))
  t.equal((await copy.commands.run('echo $FOO')).stdout, 'bar\n')
  t.ok(await copy.kill())
  t.ok(await Sandbox.deleteSnapshot(snapshot.snapshotId))
  t.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), false)
  t.ok(await sandbox.kill())
})

await promise('a fork goes on by itself', async (t) => {
  const sandbox = await Sandbox.create(template)
  await sandbox.files.write('here', 'one')
  const forks = await sandbox.fork({ count: 2 })
  t.equal(forks.length, 2)
  await forks[0].files.write('here', 'other')
  t.equal(await forks[0].files.read('here'), 'other')
  t.equal(await forks[1].files.read('here'), 'one')
  t.equal(await sandbox.files.read('here'), 'one')
  t.deepEqual(await Promise.all([sandbox, ...forks].map((s) => s.kill())), [true, true, true])
})

const dir = mkdtempSync(join(tmpdir(), 'rig-'))
mkdirSync(join(dir, 'src/deep'), { recursive: true })
writeFileSync(join(dir, 'src/a.txt'), 'a')
writeFileSync(join(dir, 'src/deep/b.txt'), 'b')
writeFileSync(join(dir, 'one.txt'), 'one')

await promise('a template is built in steps, and a sandbox of it has what they made', async (t) => {
  const built = Template({ fileContextPath: dir })
    .fromTemplate(template)
    .setEnvs({ GREETING: 'hello' })
    .setWorkdir('/home/user/app')
    .copy('src', 'code')
    .copy('one.txt', 'two.txt')
    .runCmd('echo "$GREETING from $(pwd)" > said; echo loud')
  const logs = []
  await Template.build(built, 'rig-template', { onBuildLogs: (entry) => logs.push(entry.message) })
  t.ok(logs.some((line) => line.includes('loud')), logs.join('\n'))
  t.ok(await Template.exists('rig-template'))
  t.equal(await Template.exists('rig-nothing'), false)
  const sandbox = await Sandbox.create('rig-template')
  const app = '/home/user/app'
  t.equal((await sandbox.commands.run('pwd; cat said code/a.txt code/deep/b.txt two.txt; echo; echo $GREETING', { cwd: app })).stdout, `${app}\nhello from ${app}\nabone\nhello\n`)
  t.ok(await sandbox.kill())
})

await promise('what a template started runs in each sandbox of it', async (t) => {
  const built = Template().fromTemplate(template).setStartCmd('touch /tmp/started; exec sleep 1000', waitForFile('/tmp/started'))
  await Template.build(built, 'rig-started', {})
  const sandbox = await Sandbox.create('rig-started')
  t.equal((await sandbox.commands.run('pgrep -x sleep | wc -l')).stdout.trim(), '1')
  t.ok(await sandbox.kill())
})

await promise('a step that fails ends the build, with its words', async (t) => {
  const logs = []
  await t.rejects(
    Template.build(Template().fromTemplate(template).runCmd('echo why >&2; exit 3'), 'rig-broken', { onBuildLogs: (entry) => logs.push(entry.message) }),
    /failed to run command .*exit status 3/,
  )
  t.ok(logs.some((line) => line.includes('why')))
  await t.rejects(Sandbox.create('rig-broken'), /rig-broken|not ready|default/)
  await t.rejects(Template.build(Template().fromTemplate(template).runCmd('whoami', { user: 'root123' }), 'rig-broken', {}), /failed to run command 'whoami': command failed: unauthenticated: invalid username: 'root123'/)
})

await promise('a registry of this host is not for an ordinary key', async (t) => {
  await t.rejects(Template.build(Template().fromImage('127.0.0.1:1/a/b'), 'rig-image', {}), /127\.0\.0\.1 is loopback/)
})

await promise('credentials of a kind that is not known are refused in words', async (t) => {
  const built = Template().fromAWSRegistry('127.0.0.1:1/a/b', { accessKeyId: 'a', secretAccessKey: 'b', region: 'c' })
  await t.rejects(Template.build(built, 'rig-image', {}), /credentials of the type aws/)
})

await promise('a template asks for free space on its disk', async (t) => {
  const name = 'rig-js-disk'
  await Template.build(Template().fromTemplate(template).runCmd('true'), name, { minFreeDiskMb: 1500 })
  const sandbox = await Sandbox.create(name)
  const free = Number((await sandbox.commands.run("df --output=avail -m /home/user | tail -1")).stdout)
  t.ok(free >= 1500, `${free} MB`)
  await sandbox.kill()
})

await promise('tags lead to builds', async (t) => {
  const made = await Template.assignTags('rig-template:default', ['v1', 'stable'])
  t.deepEqual(made.tags, ['v1', 'stable'])
  t.deepEqual((await Template.getTags('rig-template')).map((x) => x.tag), ['default', 'stable', 'v1'])
  const sandbox = await Sandbox.create('rig-template:v1')
  t.ok(await sandbox.kill())
  await Template.removeTags('rig-template', 'stable')
  t.deepEqual((await Template.getTags('rig-template')).map((x) => x.tag), ['default', 'v1'])
  await t.rejects(Sandbox.create('rig-template:stable'), /tag 'stable' does not exist for template 'rig-template'/)
  await t.rejects(Template.assignTags('rig-template', ['v2']), /not name:tag/)
})
