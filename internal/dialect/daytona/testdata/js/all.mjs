// What Daytona's client for JavaScript does, as the scripts for Python do, where its wire differs.
import { Daytona, DaytonaNotFoundError } from '@daytona/sdk';

const client = new Daytona({ apiKey: process.env.DAYTONA_API_KEY, apiUrl: process.env.DAYTONA_API_URL, target: process.env.TIER });
const kept = (what, ok = true) => console.log((ok ? 'kept: ' : 'BROKEN: ') + what);
const same = (what, got, want) => (JSON.stringify(got) === JSON.stringify(want) ? kept(what) : console.log(`BROKEN: ${what}: ${JSON.stringify(got)}, not ${JSON.stringify(want)}`));

const box = await client.create({ labels: { a: '1' }, envVars: { FROM: 'env' }, autoStopInterval: 30 });
try {
  same('its state', box.state, 'started');
  same('its labels', box.labels.a, '1');
  same('it is found', (await client.get(box.id)).id, box.id);
  const r = await box.process.executeCommand('echo "$FROM $MORE"; echo err >&2; exit 3', '/tmp', { MORE: 'more' });
  same('a command', [r.result, r.exitCode], ['env more\nerr\n', 3]);
  same('code', (await box.process.codeRun('print(6 * 7)')).result, '42\n');

  const every = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
  await box.fs.uploadFile(every, 'a b/ü.bin');
  kept('every byte', every.equals(await box.fs.downloadFile('a b/ü.bin')));
  await box.fs.uploadFiles([{ source: Buffer.from('1'), destination: 'many/1' }, { source: Buffer.from('2'), destination: 'many/2' }]);
  same('many files', (await box.fs.listFiles('many')).map((f) => f.name).sort(), ['1', '2']);
  const got = await box.fs.downloadFiles([{ source: 'many/1' }, { source: 'many/none' }]);
  kept('many at once', got[0].result.toString() === '1' && Boolean(got[1].error));
  try {
    await box.fs.getFileDetails('none');
    kept('a missing file', false);
  } catch (err) {
    kept('a missing file', err instanceof DaytonaNotFoundError);
  }

  await box.process.createSession('s');
  same('a session', (await box.process.executeSessionCommand('s', { command: 'cd /tmp; export A=b; echo out; echo err >&2' })).stdout, 'out\n');
  same('its state stays', (await box.process.executeSessionCommand('s', { command: 'echo $(pwd) $A' })).stdout, '/tmp b\n');
  const run = await box.process.executeSessionCommand('s', { command: 'for i in 1 2; do echo o$i; echo e$i >&2; sleep 0.1; done', runAsync: true });
  let out = '', errs = '';
  await box.process.getSessionCommandLogs('s', run.cmdId, (text) => (out += text), (text) => (errs += text));
  same('followed logs', [out, errs], ['o1\no2\n', 'e1\ne2\n']);
  await box.process.deleteSession('s');

  let seen = '';
  const pty = await box.process.createPty({ id: 'p', cols: 100, rows: 30, envs: { MINE: 'a b' }, onData: (data) => (seen += Buffer.from(data).toString()) });
  await pty.waitForConnection();
  await pty.sendInput('echo "<$MINE>"; stty size; exit 4\n');
  const end = await pty.wait();
  kept('a terminal', end.exitCode === 4 && seen.includes('<a b>') && seen.includes('30 100'));

  let printed = '';
  const cell = await box.codeInterpreter.runCode('x = 41\nprint("out")', { onStdout: (m) => (printed += m.output) });
  same('a cell', [cell.stdout, printed], ['out\n', 'out\n']);
  same('its state stays', (await box.codeInterpreter.runCode('print(x + 1)')).stdout, '42\n');

  await box.process.executeCommand('git init -q -b main repo');
  await box.fs.uploadFile(Buffer.from('x'), 'repo/f');
  await box.git.add('repo', ['.']);
  const commit = await box.git.commit('repo', 'first', 'Ann', 'ann@example.com');
  kept('git', commit.sha.length === 40 && (await box.git.status('repo')).currentBranch === 'main');

  await box.process.createSession('web');
  await box.process.executeSessionCommand('web', { command: 'cd many && exec python3 -m http.server 3001', runAsync: true });
  while ((await box.process.executeCommand(`python3 -c 'import socket; socket.create_connection(("127.0.0.1", 3001))'`)).exitCode !== 0);
  const link = await box.getPreviewLink(3001);
  same('a preview', await (await fetch(link.url + '/1', { headers: { 'x-daytona-preview-token': link.token } })).text(), '1');
  const signed = await box.getSignedPreviewUrl(3001, 120);
  kept('a signed one', signed.url.includes(signed.token));
  await box.expireSignedPreviewUrl(3001, signed.token);
  await box.process.deleteSession('web');

  await box.stop();
  same('stopped', (await client.get(box.id)).state, 'stopped');
  await box.start();
  same('started again, with its files', (await box.process.executeCommand('cat many/1')).result, '1');
} finally {
  await box.delete();
}
try {
  await client.get(box.id);
  kept('a removed one is not found', false);
} catch (err) {
  kept('a removed one is not found', err instanceof DaytonaNotFoundError);
}
process.exit(0);
