// Measures E2B's unmodified client for `make bench`. The first argument says what, the
// second how many; the server is where E2B_API_URL and E2B_SANDBOX_URL say. Each result
// is a line of JSON on standard output: what it is, and its times in milliseconds.
import { Sandbox as Coder } from "@e2b/code-interpreter";
import { Sandbox } from "e2b";

const [what, count] = [process.argv[2], Number(process.argv[3])];
const pause = Number(process.env.PAUSE ?? 0); // between sandboxes, in milliseconds
const tell = (what, ms) => console.log(JSON.stringify({ what, ms }));
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

// want ends the measurement where an answer is not the right one.
function want(got, wanted) {
  if (got !== wanted) throw new Error(`it answered ${JSON.stringify(got)}, and not ${JSON.stringify(wanted)}`);
}

// one makes a sandbox and has a command end in it. What was made is killed.
async function one() {
  const began = performance.now();
  const sandbox = await Sandbox.create(process.env.TEMPLATE);
  try {
    const made = performance.now();
    want((await sandbox.commands.run("echo hi")).stdout, "hi\n");
    const ended = performance.now();
    return [made - began, ended - began];
  } finally {
    await sandbox.kill();
  }
}

const parts = {
  // One after another; the first one's connection is not counted.
  async create() {
    await one();
    const times = [];
    for (let i = 0; i < count; i++) {
      await wait(pause);
      times.push(await one());
    }
    tell("created", times.map((t) => t[0]));
    tell("first command", times.map((t) => t[1]));
  },

  // All at once, and none is killed before the last has run its command.
  async many() {
    await one();
    const made = [];
    const began = performance.now();
    try {
      const all = await Promise.allSettled(Array.from({ length: count }, async () => {
        const sandbox = await Sandbox.create(process.env.TEMPLATE);
        made.push(sandbox);
        want((await sandbox.commands.run("echo hi")).stdout, "hi\n");
        return performance.now() - began;
      }));
      const took = performance.now() - began;
      const bad = all.filter((x) => x.status === "rejected");
      if (bad.length > 0) throw new Error(`${bad.length} of ${count} failed, such as: ${bad[0].reason}`);
      tell("first command", all.map((x) => x.value));
      tell("all", [took]);
    } finally {
      for (const sandbox of made) await sandbox.kill();
    }
  },

  // What a command prints, and a file, until the client has all of it.
  async transfer() {
    const size = Number(process.env.BYTES);
    const sandbox = await Sandbox.create(process.env.TEMPLATE);
    const [printed, read] = [[], []];
    try {
      const text = `head -c ${size} /dev/zero | tr '\\0' x`;
      await sandbox.commands.run(`${text} > /tmp/large`);
      for (let i = 0; i < count; i++) {
        let began = performance.now();
        want((await sandbox.commands.run(text)).stdout.length, size);
        printed.push(performance.now() - began);
        began = performance.now();
        want((await sandbox.files.read("/tmp/large", { format: "bytes" })).length, size);
        read.push(performance.now() - began);
      }
    } finally {
      await sandbox.kill();
    }
    tell("printed", printed);
    tell("read", read);
  },

  // Two forks of a sandbox, and until each has run a command.
  async fork() {
    const sandbox = await Sandbox.create(process.env.TEMPLATE);
    const [forked, answered] = [[], []];
    try {
      await sandbox.commands.run("echo hi");
      for (let i = 0; i < count; i++) {
        const began = performance.now();
        const forks = await sandbox.fork({ count: 2 });
        forked.push(performance.now() - began);
        try {
          for (const f of forks) if (f instanceof Error) throw f;
          await Promise.all(forks.map(async (f) => want((await f.commands.run("echo hi")).stdout, "hi\n")));
          answered.push(performance.now() - began);
        } finally {
          for (const f of forks) if (!(f instanceof Error)) await f.kill();
        }
      }
    } finally {
      await sandbox.kill();
    }
    tell("forked", forked);
    tell("answered", answered);
  },

  // The first cell of a new sandbox, and those after it.
  async code() {
    const first = [];
    const next = [];
    for (let i = 0; i < count; i++) {
      const sandbox = await Coder.create(process.env.CODE_TEMPLATE);
      try {
        for (let n = 0; n < 11; n++) {
          const began = performance.now();
          want((await sandbox.runCode(`${n} + 1`)).text, `${n + 1}`);
          (n === 0 ? first : next).push(performance.now() - began);
        }
      } finally {
        await sandbox.kill();
      }
      await wait(pause);
    }
    tell("first cell", first);
    tell("next cell", next);
  },
};

await parts[what]();
