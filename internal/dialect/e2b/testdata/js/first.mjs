// A sandbox is made, runs a command, and is killed.
import { promise } from './promise.mjs'
import { Sandbox } from 'e2b'

const sandbox = await Sandbox.create(process.env.TEMPLATE)
await promise('a sandbox runs', async (t) => {
  t.ok(await sandbox.isRunning())
})
await promise('a command says hello', async (t) => {
  const result = await sandbox.commands.run("echo 'Hello World!'")
  t.equal(result.stdout, 'Hello World!\n')
  t.equal(result.exitCode, 0)
})
await promise('a killed sandbox does not run', async (t) => {
  t.ok(await sandbox.kill())
  t.equal(await sandbox.isRunning(), false)
  t.equal(await Sandbox.kill(sandbox.sandboxId), false)
})
