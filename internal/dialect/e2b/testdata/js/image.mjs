// only: image
// Templates that begin with an image of a registry, which IMAGE and PRIVATE name.
import { promise } from './promise.mjs'
import { Sandbox, Template } from 'e2b'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

await promise('a template begins with an image', async (t) => {
  const logs = []
  const built = Template().fromImage(process.env.IMAGE).setEnvs({ MORE: '$FROM too' }).runCmd('cat /marker; echo "$MORE" > made')
  await Template.build(built, 'rig-image', { onBuildLogs: (entry) => logs.push(entry.message) })
  t.ok(logs.some((line) => line.includes('of the image')), logs.join('\n'))
  const sandbox = await Sandbox.create('rig-image')
  t.equal((await sandbox.commands.run('cat /marker made; echo $FROM; pwd; cat /etc/passwd | while IFS=: read name rest; do echo $name; done')).stdout,
    'of the image\nthe image too\nthe image\n/home/user\nroot\nuser\n')
  t.ok(await sandbox.kill())
})

await promise('a Dockerfile begins with an image', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'rig-'))
  writeFileSync(join(dir, 'a.txt'), 'a\n')
  const text = `FROM ${process.env.IMAGE}\nWORKDIR /app\nCOPY a.txt b.txt\nRUN mkdir -p /data/of/root && echo root > /data/of/root/it\nUSER user\nRUN id -un > who\nCMD echo started > /tmp/started`
  await Template.build(Template({ fileContextPath: dir }).fromDockerfile(text).setReadyCmd('test -e /tmp/started'), 'rig-image-file', {})
  const sandbox = await Sandbox.create('rig-image-file')
  t.equal((await sandbox.commands.run('cd /app; cat /marker b.txt /data/of/root/it who /tmp/started')).stdout, 'of the image\na\nroot\nuser\nstarted\n')
  t.ok(await sandbox.kill())
})

await promise('credentials open an image for the build that has them', async (t) => {
  await Template.build(Template().fromImage(process.env.PRIVATE, { username: 'u', password: 'right' }), 'rig-private', {})
  const logs = []
  const wrong = Template().fromImage(process.env.PRIVATE, { username: 'u', password: 'wrong-word' })
  await t.rejects(Template.build(wrong, 'rig-wrong', { onBuildLogs: (entry) => logs.push(entry.message) }), /does not take these credentials/)
  t.ok(logs.some((line) => line.includes('does not take these credentials')) && !logs.join().includes('wrong-word'), logs.join('\n'))
  await t.rejects(Template.build(Template().fromImage(process.env.PRIVATE), 'rig-wrong', {}), /wants credentials/)
})

await promise('an image that is not there ends the build, with its words', async (t) => {
  await t.rejects(Template.build(Template().fromImage(process.env.IMAGE + '-none'), 'rig-none', {}), /no such image/)
})
