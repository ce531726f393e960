// How long it takes from Sandbox.create to the end of the first command, told and not judged.
import { promise } from './promise.mjs'
import { Sandbox } from 'e2b'

await promise('a sandbox is made and runs its first command', async (t) => {
  const times = []
  for (let i = 0; i < Number(process.env.ROUNDS ?? 3); i++) {
    const began = performance.now()
    const sandbox = await Sandbox.create(process.env.TEMPLATE)
    const made = performance.now()
    t.equal((await sandbox.commands.run('echo 1')).stdout, '1\n')
    times.push([made - began, performance.now() - began])
    await sandbox.kill()
  }
  const middle = (k) => times.map((x) => x[k]).sort((a, b) => a - b)[Math.floor(times.length / 2)].toFixed(1)
  console.log(`create ${middle(0)} ms, with the first command ${middle(1)} ms`)
})
