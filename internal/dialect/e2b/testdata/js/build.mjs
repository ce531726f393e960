// only: gvisor
// Every step of a template, and every way to be ready.
import { promise, until } from './promise.mjs'
import { Sandbox, Template, waitForPort, waitForProcess, waitForTimeout, waitForURL } from 'e2b'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const template = process.env.TEMPLATE
const dir = mkdtempSync(join(tmpdir(), 'rig-'))
mkdirSync(join(dir, 'src'))
writeFileSync(join(dir, 'src/a.txt'), 'a')
writeFileSync(join(dir, 'package.json'), '{}')

await promise('each step does what it says, and each user runs what is its own', async (t) => {
  const built = Template({ fileContextPath: dir }).fromTemplate(template)
    .copyItems([{ src: 'src', dest: '/home/user/one' }, { src: 'package.json', dest: 'two/', mode: 0o600 }])
    .makeDir('made', { mode: 0o700 }).makeDir(['m1', 'm2/deep']).makeSymlink('one/a.txt', 'link').makeSymlink('one/a.txt', 'link', { force: true })
    .rename('m1', 'm3').remove('m2', { recursive: true }).remove('nothing', { force: true })
    .runCmd(['echo 1 > n', 'echo 2 >> n']).runCmd('id -un > /tmp/who', { user: 'root' })
    .setUser('root').setWorkdir('/home/user/shared').runCmd('id -un > of-root').setUser('user')
    .setWorkdir('/home/user/app').setEnvs({ ONE: '1', TWO: '$ONE 2' }).runCmd('echo "$TWO" > said')
    .setStartCmd('exec python3 -m http.server 8300', waitForPort(8300))
  await Template.build(built, 'rig-steps:v1', { tags: ['t2'], cpuCount: 1, memoryMB: 1024, skipCache: true })
  const sandbox = await Sandbox.create('rig-steps:t2')
  const { stdout } = await sandbox.commands.run('cat n /tmp/who shared/of-root app/said one/a.txt; echo; cat link; echo; stat -c "%n %a" made two/package.json; ls -d m1 m2 m3 2>/dev/null; id -un', { cwd: '/home/user' })
  t.equal(stdout, '1\n2\nroot\nroot\n1 2\na\na\nmade 700\ntwo/package.json 600\nm3\nuser\n')
  t.equal((await sandbox.commands.run('curl -s -o /dev/null -w "%{http_code}" http://127.0.0.1:8300/')).stdout, '200')
  t.equal((await sandbox.getInfo()).cpuCount, 1)
  t.ok(await sandbox.kill())
})

await promise('sandboxes of a template whose steps end as root run commands as root', async (t) => {
  await Template.build(Template().fromTemplate(template).setUser('root').runCmd('test "$(whoami)" = root'), 'rig-root', {})
  const sandbox = await Sandbox.create('rig-root')
  t.equal((await sandbox.commands.run('whoami')).stdout, 'root\n')
  t.equal((await sandbox.commands.run('whoami', { user: 'user' })).stdout, 'user\n')
  await sandbox.files.write('/home/user/a', 'b')
  t.equal(await sandbox.files.read('/home/user/a'), 'b')
  t.ok(await sandbox.kill())
})

await promise('a template is ready when its command says so', async (t) => {
  for (const wait of [waitForURL('http://localhost:8300/', 200), waitForProcess('sleep'), waitForTimeout(1000)]) {
    const build = await Template.buildInBackground(Template().fromTemplate(template).setStartCmd('python3 -m http.server 8300 & exec sleep 1000', wait), 'rig-ready')
    const goesOn = ({ status }) => status === 'building' || status === 'waiting' // for the builds of other scripts
    let now = await Template.getBuildStatus(build)
    t.ok(goesOn(now), JSON.stringify(now))
    await until(async () => !goesOn((now = await Template.getBuildStatus(build))))
    t.equal(now.status, 'ready', JSON.stringify(now))
  }
  await Template.build(Template().fromTemplate(template).setReadyCmd('test -e /tmp'), 'rig-readyonly', {})
})

await promise('tags are given and taken, and what is no tag is refused', async (t) => {
  const build = await Template.build(Template().fromTemplate(template), `rig-tags:v1-${randomUUID()}`, {})
  const first = `rig-tags:${build.tags[0]}`
  t.deepEqual((await Template.assignTags(first, ['production', 'latest'])).tags, ['production', 'latest'])
  await t.rejects(Template.assignTags(first, ':invalid-tag'), /400/)
  await t.rejects(Template.assignTags(first, 'rig-tags:'), /400/)
  await Template.removeTags('rig-tags', ['production'])
  await t.rejects(Template.removeTags('rig-tags', ['production']), /tag 'production' does not exist/)
  t.equal(await Sandbox.deleteSnapshot(build.templateId), true)
  t.equal(await Sandbox.deleteSnapshot(build.templateId), false)
})

await promise('a pause without memory starts anew from the files, under the same name', async (t) => {
  const sandbox = await Sandbox.create(template, { envs: { A: 'b' } })
  const boot = (await sandbox.commands.run('cat /proc/sys/kernel/random/boot_id')).stdout
  await sandbox.files.write('here', 'still')
  t.equal(await sandbox.pause({ keepMemory: false }), true)
  t.equal(await sandbox.isRunning(), false)
  t.equal((await sandbox.getInfo()).state, 'paused')
  await sandbox.connect()
  t.equal(await sandbox.files.read('here'), 'still')
  t.notEqual((await sandbox.commands.run('cat /proc/sys/kernel/random/boot_id')).stdout, boot)
  t.equal((await sandbox.commands.run('echo $A $(id -un) $PWD')).stdout, 'b user /home/user\n')
  t.ok(await sandbox.kill())
})

await promise('a gateway for MCP that is not installed is told, and its sandbox killed', async (t) => {
  const metadata = { mark: randomUUID() }
  await t.rejects(Sandbox.create({ metadata, mcp: { exa: { apiKey: 'x' } } }), /Failed to start MCP gateway: .*mcp-gateway: command not found/)
  t.deepEqual(await Sandbox.list({ query: { metadata } }).nextItems(), [])
})
