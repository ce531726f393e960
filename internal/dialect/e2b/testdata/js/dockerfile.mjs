// only: gvisor
// Templates from the text of a Dockerfile.
import { promise } from './promise.mjs'
import { Sandbox, Template } from 'e2b'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const dir = mkdtempSync(join(tmpdir(), 'rig-'))
mkdirSync(join(dir, 'src'))
writeFileSync(join(dir, 'src/a.txt'), 'a\n')
writeFileSync(join(dir, 'b.txt'), 'b\n')

await promise('a Dockerfile that works right below the root does what it says', async (t) => {
  const logs = []
  const built = Template({ fileContextPath: dir }).fromDockerfile(`FROM e2bdev/base
WORKDIR /app
COPY src ./src
COPY b.txt /app/
COPY b.txt /srv/deep/c.txt
ENV WHERE=/app/data MORE="$HOME more"
RUN pwd > pwd.txt && mkdir data && echo $WHERE > data/where
WORKDIR data
RUN pwd > pwd.txt
USER root
WORKDIR /srv/tool
RUN id -un > who && echo root > /app/of-root
USER user
WORKDIR /app
RUN id -un > who
USER root
RUN mkdir -p /made/by/root /home/user/of && echo root > /made/by/root/it && echo root > /home/user/of/root
USER user
RUN test "$(stat -c %a /)" = 777 && touch /made-too
`)
  await Template.build(built, 'rig-dockerfile', { onBuildLogs: (entry) => logs.push(entry.message) }).catch((error) => { throw new Error(`${error}\n${logs.join('\n')}`) })
  const sandbox = await Sandbox.create('rig-dockerfile')
  t.equal((await sandbox.commands.run('pwd; cat src/a.txt b.txt /srv/deep/c.txt pwd.txt data/where data/pwd.txt who of-root /srv/tool/who /made/by/root/it /home/user/of/root; ls /made-too; stat -c "%a %U" /home/user; id -un')).stdout,
    '/app\na\nb\nb\n/app\n/app/data\n/app/data\nuser\nroot\nroot\nroot\nroot\n/made-too\n700 user\nuser\n')
  t.ok(await sandbox.kill())
})
