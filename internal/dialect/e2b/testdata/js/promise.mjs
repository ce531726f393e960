// promise runs one case. All cases of a script run, and the script fails at its end if
// one of them did.
import assert from 'node:assert/strict'

export const assertions = assert

export async function promise(text, run) {
  try {
    await run(assert)
    console.log(`kept: ${text}`)
  } catch (error) {
    process.exitCode = 1
    console.log(`BROKEN: ${text}: ${error?.stack ?? error}`)
  }
}

// until asks again until something is true, for a minute.
export async function until(ask) {
  const end = Date.now() + 60_000
  for (;;) {
    if (await ask()) return
    assert.ok(Date.now() < end, 'it did not come true in a minute')
    await new Promise((done) => setTimeout(done, 50))
  }
}

// reach asks a port of a sandbox: by its name where the client was told a domain, else
// by headers.
export function reach(sandbox, port, path, { headers, ...rest } = {}) {
  if (process.env.E2B_DOMAIN) return fetch(`https://${sandbox.getHost(port)}${path}`, { headers, ...rest })
  return fetch(process.env.E2B_API_URL + path, { headers: { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': `${port}`, ...headers }, ...rest })
}
