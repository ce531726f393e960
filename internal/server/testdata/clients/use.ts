// Uses the client that @hey-api/openapi-ts generated from the contract.
import { client } from './generated/client.gen';
import { create, interpret, list, listFiles, makeDir, readFile, remove, start, statFile, status, watchFiles, writeFile } from './generated/index';

declare const process: { argv: string[]; exit(code: number): never };

function check(fine: boolean, what: unknown): asserts fine {
  if (!fine) {
    console.error('not as the contract says:', what);
    process.exit(1);
  }
}

// The client tries a stream again for ever unless it is told not to.
const once = { sseMaxRetryAttempts: 1, onSseError: (error: unknown) => check(false, error) };

async function main(): Promise<void> {
  client.setConfig({ baseUrl: process.argv[2], auth: process.argv[3] });
  const box = { path: { id: 'ts' } };

  const made = await create({ body: { id: 'ts', labels: { 'made-by': 'typescript' } } });
  check(made.data?.state === 'ready', made.error);
  const page = await list({ query: { label: ['made-by=typescript'] } });
  check(page.data?.sandboxes.length === 1, page);

  let out = '', err = '', code = -1;
  const args = ['sh', '-c', 'echo out; echo err >&2; exit 3'];
  for await (const event of (await start({ ...box, ...once, body: { args } })).stream) {
    check(typeof event !== 'string' && !('pid' in event), event);
    if (typeof event.stdout === 'string') out += event.stdout;
    if (typeof event.stderr === 'string') err += event.stderr;
    if (event.exit) code = event.exit.code;
  }
  check(out === 'out\n' && err === 'err\n' && code === 3, [out, err, code]);

  const query = { path: '/tmp/d' };
  check((await makeDir({ ...box, query: { ...query, mode: '0750' } })).response?.status === 204, 'mkdir');
  const changes = await watchFiles({ ...box, ...once, query });
  for await (const line of changes.stream) {
    check(typeof line !== 'string', line);
    if (line.alive) {
      const written = await writeFile({ ...box, query: { path: '/tmp/d/f', mode: '0600' }, body: new Blob(['text\n']) });
      check(written.response?.status === 204, written.error);
    }
    if (line.change?.name === '/tmp/d/f') break;
  }
  const read = await readFile({ ...box, query: { path: '/tmp/d/f' } });
  check(read.data instanceof Blob && (await read.data.text()) === 'text\n', read);
  const stat = await statFile({ ...box, query: { path: '/tmp/d/f' } });
  check(stat.data?.mode === '0600' && stat.data.type === 'file', stat);
  const names: unknown[] = [];
  for await (const line of (await listFiles({ ...box, ...once, query })).stream) {
    check(typeof line !== 'string', line);
    if (line.file) names.push(line.file.name);
  }
  check(names.join() === '/tmp/d/f', names);

  const gone = await status({ path: { id: 'no-such' } });
  check(gone.error?.error.kind === 'not_found', gone);
  let refused: unknown;
  const cell = await interpret({ ...box, sseMaxRetryAttempts: 1, onSseError: (error) => { refused = error; }, body: { code: '1' } });
  for await (const event of cell.stream) check(false, event); // this tier has no interpreter
  check(refused !== undefined, refused);
  check((await remove(box)).response?.status === 204, 'remove');
  console.log('done');
  process.exit(0); // the watch is still open
}

main().catch((error: unknown) => check(false, error));
