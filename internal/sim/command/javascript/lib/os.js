(function (shared, module) {
'use strict';
const { host, info, signals } = shared;
module.exports = {
  EOL: '\n', devNull: '/dev/null', platform: () => 'linux', type: () => 'Linux', arch: () => 'x64', machine: () => 'x86_64', release: () => '6.1.0', version: () => '#1 SMP', hostname: () => host.hostname(), endianness: () => 'LE',
  homedir: () => process.env.HOME || '/', tmpdir: () => process.env.TMPDIR || '/tmp', cpus: () => [{ model: 'simulated', speed: 0, times: { user: 0, nice: 0, sys: 0, idle: 0, irq: 0 } }], availableParallelism: () => 1,
  totalmem: () => info.heap, freemem: () => info.heap - host.memory(), uptime: () => host.now() / 1e3, loadavg: () => [0, 0, 0], networkInterfaces: () => ({}), getPriority: () => 0, setPriority() {},
  userInfo: () => ({ uid: info.uid, gid: info.gid, username: process.env.USER || (info.uid ? 'user' : 'root'), homedir: process.env.HOME || '/', shell: '/bin/bash' }),
  constants: { signals, errno: {}, priority: {} },
};
})
