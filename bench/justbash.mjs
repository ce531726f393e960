// Runs scripts in just-bash for `make bench`: one JSON object on standard
// input (dir, scripts, want, repeats), one array of {median, error} out.
import fs from "node:fs";
import path from "node:path";
import { Bash } from "just-bash";

const asked = JSON.parse(fs.readFileSync(0, "utf8"));
const files = {};
const walk = (dir) => {
  for (const e of fs.readdirSync(dir, { withFileTypes: true })) {
    const full = path.join(dir, e.name);
    if (e.isDirectory()) walk(full);
    else files["/home/user/" + path.relative(asked.dir, full)] = fs.readFileSync(full, "utf8");
  }
};
walk(asked.dir);
const big = 1_000_000_000;
const limits = {
  maxCallDepth: 1000, maxCommandCount: big, maxLoopIterations: big, maxAwkIterations: big, maxSedIterations: big,
  maxJqIterations: big, maxWorkUnits: big,
};
const out = [];
for (const [i, script] of asked.scripts.entries()) {
  const times = [];
  let error = "";
  for (let n = 0; n < asked.repeats && !error; n++) {
    const bash = new Bash({ files, cwd: "/home/user", executionLimits: limits, python: true });
    const began = performance.now();
    try {
      const got = await Promise.race([
        bash.exec(script),
        new Promise((_, no) => setTimeout(() => no(new Error("over 30 s")), 30_000).unref()),
      ]);
      times.push(performance.now() - began);
      if (got.stdout !== asked.want[i]) error = "wrong output";
    } catch (e) {
      error = String(e.message).split("\n")[0].slice(0, 60);
    }
  }
  times.sort((a, b) => a - b);
  out.push({ median: times[Math.floor(times.length / 2)] ?? 0, error });
}
process.stdout.write(JSON.stringify(out));
process.exit(0);
