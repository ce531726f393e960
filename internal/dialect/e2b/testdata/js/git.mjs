// Every method of git, which E2B's client turns into commands.
import { promise, until } from './promise.mjs'
import { GitUpstreamError, Sandbox } from 'e2b'

const sandbox = await Sandbox.create(process.env.TEMPLATE)
const { commands, files, git } = sandbox
const repo = '/home/user/repo'
const who = { authorName: 'Ann', authorEmail: 'ann@example.com' }

await promise('a repository is made, filled and told of', async (t) => {
  await git.init(repo, { initialBranch: 'main' })
  await git.configureUser('Ann', 'ann@example.com')
  t.equal(await git.getConfig('user.name'), 'Ann')
  await git.setConfig('pull.rebase', 'false', { scope: 'local', path: repo })
  t.equal(await git.getConfig('pull.rebase', { scope: 'local', path: repo }), 'false')
  await files.write(`${repo}/README.md`, 'hello\n')
  let status = await git.status(repo)
  t.equal(status.currentBranch, 'main')
  t.ok(status.hasUntracked && !status.isClean && status.fileStatus[0].name === 'README.md')
  await git.add(repo)
  t.ok((await git.status(repo)).hasStaged)
  await git.commit(repo, 'Begin', who)
  status = await git.status(repo)
  t.ok(status.isClean, JSON.stringify(status))
  t.equal((await commands.run('git log -1 --format=%an:%s', { cwd: repo })).stdout, 'Ann:Begin\n')
})
await promise('branches are made, taken and deleted', async (t) => {
  await git.createBranch(repo, 'side')
  await git.checkoutBranch(repo, 'main')
  const { branches, currentBranch } = await git.branches(repo)
  t.deepEqual(branches.sort(), ['main', 'side'])
  t.equal(currentBranch, 'main')
  await git.deleteBranch(repo, 'side', { force: true })
  t.deepEqual((await git.branches(repo)).branches, ['main'])
})
await promise('what was changed is reset and restored', async (t) => {
  await files.write(`${repo}/README.md`, 'changed\n')
  await git.add(repo, { files: ['README.md'] })
  await git.reset(repo, { paths: ['README.md'] })
  t.ok(!(await git.status(repo)).hasStaged)
  await git.restore(repo, { paths: ['README.md'] })
  t.equal(await files.read(`${repo}/README.md`), 'hello\n')
  await files.write(`${repo}/more.md`, 'more\n')
  await git.add(repo)
  await git.commit(repo, 'More', who)
  await git.reset(repo, { mode: 'hard', target: 'HEAD~1' })
  t.equal(await files.exists(`${repo}/more.md`), false)
})
await promise('what a daemon inside serves is pushed to, cloned and pulled', async (t) => {
  await commands.run('git init --quiet --bare --initial-branch=main /home/user/far.git')
  const daemon = await commands.run('exec git daemon --reuseaddr --base-path=/home/user --export-all --enable=receive-pack --listen=127.0.0.1 --port=9418', { background: true, timeoutMs: 0 })
  const far = 'git://127.0.0.1:9418/far.git'
  await until(async () => (await commands.run(`git ls-remote ${far} >/dev/null 2>&1 && echo up || true`)).stdout === 'up\n')
  await git.remoteAdd(repo, 'origin', far)
  t.equal(await git.remoteGet(repo, 'origin'), far)
  t.equal(await git.remoteGet(repo, 'nothing'), undefined)
  await t.rejects(git.pull(repo), GitUpstreamError)
  await git.push(repo, { remote: 'origin', branch: 'main', setUpstream: true })
  await git.clone(far, { path: '/home/user/copy', branch: 'main', depth: 1 })
  t.equal(await files.read('copy/README.md'), 'hello\n')
  await files.write('copy/new.md', 'new\n')
  await git.add('/home/user/copy')
  await git.commit('/home/user/copy', 'New', who)
  await git.push('/home/user/copy')
  await git.pull(repo)
  t.equal(await files.read(`${repo}/new.md`), 'new\n')
  t.equal((await git.status(repo)).upstream, 'origin/main')
  await daemon.kill()
  await t.rejects(daemon.wait())
})
await promise('a password is kept where that is asked for', async (t) => {
  await git.dangerouslyAuthenticate({ username: 'ann', password: 'token', host: 'example.com', protocol: 'https' })
  t.match(await files.read('.git-credentials'), /ann:token@example\.com/)
})

await sandbox.kill()
