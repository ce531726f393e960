"""Works one task with the Claude Agent SDK, and prints what the agent does while it does it: agent.py TASK.

tasks/TASK.md is the prompt. The agent's files go to out/TASK.
"""

import asyncio
import os
import pathlib
import sys

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ProcessError,
    ResultMessage,
    StreamEvent,
    TextBlock,
    ToolUseBlock,
    query,
)

here = pathlib.Path(__file__).resolve().parent
runtime = os.environ.get("AGENT_CLI")  # another Claude Code than the one in the package


def show(text):
    print(text, end="", flush=True)  # at once: nobody waits for the end


async def work(task):
    out = here / "out" / task
    out.mkdir(parents=True, exist_ok=True)
    options = ClaudeAgentOptions(
        cwd=out,
        cli_path=runtime,
        env={"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"},
        permission_mode="bypassPermissions",  # the sandbox takes the place of its questions
        setting_sources=[],  # nothing that lies in the directory is obeyed
        include_partial_messages=True,
        max_turns=50,
    )
    status = 1
    prompt = (here / "tasks" / f"{task}.md").read_text()
    async for message in query(prompt=prompt, options=options):
        if isinstance(message, StreamEvent):
            delta = message.event.get("delta", {})
            if delta.get("type") == "text_delta":
                show(delta["text"])
        elif isinstance(message, AssistantMessage):
            for block in message.content:
                if isinstance(block, TextBlock):
                    show("\n")  # its words were shown as they came
                elif isinstance(block, ToolUseBlock):
                    show(f"> {block.name} {block.input.get('command') or block.input.get('file_path', '')}\n")
        elif isinstance(message, ResultMessage):
            show(f"{message.num_turns} turns, ${message.total_cost_usd or 0:.2f}\n")
            status = 1 if message.is_error else 0
    return status


try:
    sys.exit(asyncio.run(work(sys.argv[1])))
except ProcessError as error:
    if error.exit_code in (-9, 137):
        sys.exit("Claude Code was killed. If memory ran out, Paddock says so below.")
    sys.exit(f"Claude Code failed: {error}")
