// Names below localhost lead to this machine, whatever the resolver says.
import dns from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'

const usual = dns.lookup
dns.lookup = (name, options, done) => {
  const [how, call] = typeof options === 'function' ? [{}, options] : [options ?? {}, done]
  if (!name.endsWith('.localhost')) return usual(name, how, call)
  if (how.all) call(null, [{ address: '127.0.0.1', family: 4 }])
  else call(null, '127.0.0.1', 4)
}
syncBuiltinESMExports()
