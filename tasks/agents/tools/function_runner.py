"""Calls one Python function in a process of the sandbox."""

from typing import Final

RUNNER: Final = """\
import asyncio, inspect, json, linecache, os, sys, types

answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)  # what the function prints is not its result
call = json.load(sys.stdin)
file, source = call["file"], call["source"]
linecache.cache[file] = len(source), None, source.splitlines(True), file
module = sys.modules["tool"] = types.ModuleType("tool")
module.__file__ = file
exec(compile(source, file, "exec"), module.__dict__)
result = getattr(module, call["name"])(**call["arguments"])


async def finished(waiting):
    return await waiting


if inspect.isawaitable(result):
    result = asyncio.run(finished(result))
json.dump(result, answers, default=str)
answers.close()
"""
"""For `python -c`. Standard input holds `file`, its `source`, the `name` of the function and its `arguments` as JSON;
standard output gets what the function returns as JSON.
"""
