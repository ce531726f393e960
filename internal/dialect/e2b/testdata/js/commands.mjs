// Every method of commands and pty.
import { promise, until } from './promise.mjs'
import { AuthenticationError, CommandExitError, InvalidArgumentError, NotFoundError, Sandbox, SandboxError, TimeoutError } from 'e2b'

const sandbox = await Sandbox.create(process.env.TEMPLATE, { envs: { GLOBAL: 'global' } })
const { commands, files, pty } = sandbox

// exit is what a command's failure has to be.
const exit = (code, more = () => true) => (e) => e instanceof CommandExitError && e.exitCode === code && more(e)

await promise('output, error output and exit of a command are told', async (t) => {
  t.equal((await commands.run('echo "Hello\nWorld!"')).stdout, 'Hello\nWorld!\n')
  t.equal((await commands.run('printf "🙂é!@#$%%^&*()_+"')).stdout, '🙂é!@#$%^&*()_+')
  await t.rejects(commands.run('echo e >&2; exit 3'), exit(3, (e) => e.stderr === 'e\n' && e.error === 'exit status 3'))
  await t.rejects(commands.run('no-such-program'), exit(127))
})
await promise('much output arrives whole, in pieces', async (t) => {
  let seen = 0
  const result = await commands.run('head -c 20000000 /dev/zero | tr "\\0" x', { onStdout: (data) => { seen += data.length } })
  t.equal(result.stdout.length, 20_000_000)
  t.equal(seen, 20_000_000)
})
await promise('a command has the variables of its sandbox and its own', async (t) => {
  const { stdout } = await commands.run('echo $OWN $GLOBAL $HOME $USER $LOGNAME $E2B_SANDBOX $E2B_SANDBOX_ID', { envs: { OWN: 'own' } })
  t.equal(stdout, `own global /home/user user user true ${sandbox.sandboxId}\n`)
  t.equal((await commands.run('echo $GLOBAL', { envs: { GLOBAL: 'mine' } })).stdout, 'mine\n')
})
await promise('a directory is absolute, relative or of the home, or refused', async (t) => {
  await files.makeDir('below')
  for (const [cwd, want] of [[undefined, '/home/user'], ['/tmp', '/tmp'], ['~', '/home/user'], ['below', '/home/user/below'], ['~/below', '/home/user/below']]) {
    t.equal((await commands.run('pwd', { cwd })).stdout, `${want}\n`)
  }
  await t.rejects(commands.run('pwd', { cwd: '/nope' }), (e) => e instanceof InvalidArgumentError && e.message.includes("cwd '/nope' does not exist"))
})
await promise('a user is known, or refused', async (t) => {
  t.equal((await commands.run('whoami', { user: 'user' })).stdout, 'user\n')
  await t.rejects(commands.run('whoami', { user: 'zork' }), (e) => e instanceof AuthenticationError && e.message.includes("invalid username: 'zork'"))
  const root = commands.run('id -u', { user: 'root' })
  if (process.env.TIER === 'jail') await t.rejects(root, (e) => e instanceof AuthenticationError && e.message.includes("invalid username: 'root': commands run as user"))
  else t.equal((await root).stdout, '0\n')
})
await promise('sudo is there where the tier has users', async (t) => {
  if (process.env.TIER === 'jail') await t.rejects(commands.run('sudo -n whoami'), (e) => e instanceof CommandExitError && e.exitCode !== 0)
  else t.equal((await commands.run("sudo whoami; sudo -u user id -un; sudo sh -c 'exit 7' || echo $?")).stdout, 'root\nuser\n7\n')
})
await promise('a command whose time is over is killed, and the sandbox goes on', async (t) => {
  await t.rejects(commands.run('sleep 1000', { timeoutMs: 500 }), TimeoutError)
  t.equal((await commands.run('echo on')).stdout, 'on\n')
  await until(async () => !(await commands.list()).some((p) => p.args.includes('sleep 1000')))
})
await promise('a command in the background is listed, connected to and killed', async (t) => {
  const command = await commands.run('sleep 1000', { background: true, timeoutMs: 0 })
  const one = (await commands.list()).find((p) => p.pid === command.pid)
  t.equal(one.cmd, '/bin/bash')
  t.deepEqual(one.args, ['-l', '-c', 'sleep 1000'])
  const again = await commands.connect(command.pid)
  t.equal(again.pid, command.pid)
  t.equal(await commands.kill(command.pid), true)
  for (const c of [command, again]) await t.rejects(c.wait(), exit(-1, (e) => e.error === 'signal: killed'))
  t.equal(await commands.kill(command.pid), false)
  t.ok(!(await commands.list()).some((p) => p.pid === command.pid))
  await t.rejects(commands.connect(999_999), NotFoundError)
})
await promise('a command that lost its client goes on', async (t) => {
  const command = await commands.run('read line; echo $line > went', { background: true, stdin: true })
  await command.disconnect()
  await commands.sendStdin(command.pid, 'this far\n')
  await until(async () => (await files.exists('went')) && (await files.read('went')) === 'this far\n')
})
await promise('input arrives in order, and ends', async (t) => {
  const command = await commands.run('cat', { background: true, stdin: true })
  await commands.sendStdin(command.pid, 'Hello')
  await commands.sendStdin(command.pid, '')
  await command.sendStdin(' again')
  await commands.closeStdin(command.pid)
  t.equal((await command.wait()).stdout, 'Hello again')
  const counting = await commands.run('wc -c', { background: true, stdin: true })
  await counting.sendStdin('x'.repeat(3 << 20))
  await counting.closeStdin()
  t.equal((await counting.wait()).stdout.trim(), String(3 << 20))
  const closed = await commands.run('sleep 1000', { background: true })
  await t.rejects(commands.sendStdin(closed.pid, 'x'), SandboxError)
  await closed.kill()
  await t.rejects(closed.wait())
  await t.rejects(commands.sendStdin(closed.pid, 'x'), NotFoundError)
})
await promise('fifty commands run at once', async (t) => {
  const all = await Promise.all(Array.from({ length: 50 }, (_, i) => commands.run(`echo ${i}`)))
  t.deepEqual(all.map((r) => r.stdout), all.map((_, i) => `${i}\n`))
})
await promise('a terminal has a size, takes input, and ends', async (t) => {
  let out = ''
  const terminal = await pty.create({ cols: 80, rows: 24, cwd: '/', envs: { ABC: '123' }, onData: (data) => { out += Buffer.from(data) } })
  const type = (text) => pty.sendInput(terminal.pid, new TextEncoder().encode(text))
  await type('echo $ABC-$((1+1))-$PWD; stty size\n')
  await until(() => out.includes('123-2-/') && out.includes('24 80'))
  await pty.resize(terminal.pid, { cols: 100, rows: 30 })
  await type('stty size; exit\n')
  t.equal((await terminal.wait()).exitCode, 0)
  t.match(out, /30 100/)
})
await promise('a terminal is connected to and killed', async (t) => {
  const terminal = await pty.create({ cols: 80, rows: 24, onData: () => {} })
  let out = ''
  const again = await pty.connect(terminal.pid, { onData: (data) => { out += Buffer.from(data) } })
  await pty.sendInput(terminal.pid, new TextEncoder().encode('echo foo$((40+2))\n'))
  await until(() => out.includes('foo42'))
  t.equal(await pty.kill(terminal.pid), true)
  for (const p of [terminal, again]) await t.rejects(p.wait(), exit(-1))
  t.equal(await pty.kill(terminal.pid), false)
})
await promise('a command of a sandbox that is killed fails as timed out', async (t) => {
  const command = await commands.run('sleep 1000', { background: true, timeoutMs: 0 })
  const end = t.rejects(command.wait(), TimeoutError)
  await sandbox.kill()
  await end
})
