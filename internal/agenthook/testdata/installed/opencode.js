// Written by `paddock hooks install opencode`; `paddock hooks remove opencode` removes it.
// It has commands of the tool bash run in a box of Paddock's. What fails is refused.
import { spawnSync } from "node:child_process"

const step = "/bin/sh -c '\"$@\"; s=$?; [ $s = 0 ] && exit; [ $s = 2 ] || echo \"paddock: the hook did not run, so this step is refused\" >&2; exit 2' paddock-hook /usr/local/bin/paddock hook call opencode step --approve -- '--allow=github.com' '--read=/a b%27c'"
const end = "/bin/sh -c '\"$@\"; s=$?; [ $s = 0 ] && exit; [ $s = 2 ] || echo \"paddock: the hook did not run, so this step is refused\" >&2; exit 2' paddock-hook /usr/local/bin/paddock hook call opencode end --approve -- '--allow=github.com' '--read=/a b%27c'"

const call = (command, input) =>
  spawnSync("/bin/sh", ["-c", command], { input: JSON.stringify(input), encoding: "utf8", maxBuffer: 64 * 1024 * 1024 })

export const Paddock = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    if (input.tool !== "bash") return
    const answer = call(step, { session_id: input.sessionID, cwd: directory, tool_name: input.tool, tool_input: output.args })
    if (answer.error || answer.status !== 0) {
      throw new Error(answer.stderr || "paddock: the hook did not run, so this step is refused")
    }
    const { command } = JSON.parse(answer.stdout)
    if (typeof command !== "string" || command === "") {
      throw new Error("paddock: the hook gave no command, so this step is refused")
    }
    output.args.command = command
  },
  event: async ({ event }) => {
    if (event.type === "session.deleted") {
      call(end, { session_id: event.properties?.info?.id, cwd: directory })
    }
  },
})
