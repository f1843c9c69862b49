"""Programs of the suites' authors that grade a trial: whole ones, and a few lines of JavaScript or Python."""

import asyncio
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.code_input import code_input, encode
from passgate.tasks.graders.evidence import Evidence
from passgate.tasks.graders.grader_reply import GraderReply, read_document, reply_grade, share
from passgate.tasks.model.assertions import CodeGrader, ScriptAssertion
from passgate.tasks.model.grade import RawCheck, RawGrade
from passgate.tasks.model.json_values import MISSING, parse_json
from passgate.tasks.model.quotes import quote, quote_end, quote_repr, raw

_FIRST_SIGNAL: Final = 128
LONGEST_OUTPUT: Final = 50_000  # An answer of more bytes is given in a file as well
SCRIPT_SECONDS: Final = 60
# What the script prints goes to the error output; only the last line of the output is the result.
_JAVASCRIPT: Final = """\
const {code, output, context} = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log = console.info = console.debug = console.error;
const AsyncFunction = (async () => {}).constructor;
const made = (body) => new AsyncFunction("output", "context", "require", body);
let run;
const expression = code.trim().replace(/;+$/, "");
try { run = made(`return (\\n${expression}\\n)`); } catch { run = made(code); }
run(output, context, require).then((result) => {
  process.stdout.write("\\n" + JSON.stringify({result: result === undefined ? null : result}));
});
"""
_PYTHON: Final = """\
import asyncio, inspect, json, sys, textwrap
given = json.load(sys.stdin)
answered, sys.stdout = sys.stdout, sys.stderr
names = {"__name__": "__passgate__", "output": given["output"], "context": given["context"]}
code = textwrap.dedent(given["code"]).strip()
try:
    compiled = compile(code, "<assertion>", "eval")
except SyntaxError:
    compiled = None
if compiled:
    result = eval(compiled, names)
else:
    exec(compile("def assertion(output, context):\\n" + textwrap.indent(code, "    "), "<assertion>", "exec"), names)
    result = names["assertion"](given["output"], given["context"])
if inspect.isawaitable(result):
    result = asyncio.run(result)
answered.write("\\n" + json.dumps({"result": result}))
answered.flush()
"""


def read_code_reply(stdout: str, stderr: str, exit_code: int) -> GraderReply:
    """Return the score that a program gives, by what it printed.

    A JSON object is a reply in one of the forms of `read_document`; lines of a log may stand before it. Output without
    any `{` is plain text: exit code 0 is a score of 1, any other one 0.

    Raises `MeasurementError` where the grader is at fault, so that its faults are never taken for the agent's:

    - there is a `{` but no valid reply, or all of the output is JSON of another kind, such as `0.4` or `[1]`;
    - it ended with another exit code than 0 after a reply, or after saying something on its error output;
    - it was ended by a signal.
    """
    document = _document(stdout)
    plain = document is MISSING and "{" not in stdout
    printed = quote_repr(stdout.strip(), 300)
    if exit_code != 0:
        # A program that means to fail a trial prints why on its output; a traceback is the fault of the program.
        if not 0 < exit_code < _FIRST_SIGNAL or stderr.strip():
            said = quote_end(stderr, 500)
            raise MeasurementError(raw(f"the grader crashed with exit code {exit_code}", ": " if said else "", said))
        if not plain:
            raise MeasurementError(raw(f"the grader ended with exit code {exit_code} after it had printed ", printed))
    if plain:
        printed_text = quote(stdout.strip() or f"exit code {exit_code}")
        return GraderReply(float(exit_code == 0), (RawCheck(passed=exit_code == 0, message=printed_text),))
    try:
        return read_document(document)
    except ValueError as error:
        problem = "it contains a `{` but no JSON object" if document is MISSING else str(error)
        raise MeasurementError(raw(f"the grader's reply is unusable: {problem}. It printed ", printed)) from None


def _document(stdout: str) -> Any:
    """Return all of the output as JSON, or what begins with the first `{`, at the start of a line; else `MISSING`."""
    log, brace, rest = stdout.partition("{")
    reply = brace + rest if log.rpartition("\n")[2].strip() == "" else stdout
    for text in (stdout, reply):
        try:
            return parse_json(text)
        except ValueError:
            continue
    return MISSING


async def grade_code(options: CodeGrader, evidence: Evidence) -> RawGrade:
    """Give the trial to a program as `code_input` says, and take its score as `read_code_reply` says.

    Raises `MeasurementError` when the program cannot be run, does not end in its time, prints too much, or gives no
    usable reply: then nothing is known of the agent.
    """
    answer = evidence.final_answer.encode("utf-8", "replace")
    with TemporaryDirectory(dir=evidence.sandbox.scratch, ignore_cleanup_errors=True) as folder:
        path = Path(folder, "output.txt") if len(answer) > LONGEST_OUTPUT else None
        if path is not None:
            path.write_bytes(answer)
        return await grade_by_program(options, evidence, code_input(evidence, options.config, path))


async def grade_by_program(options: CodeGrader, evidence: Evidence, document: Mapping[str, Any]) -> RawGrade:
    """Run a grader's program with a document as JSON on its standard input, and take the score that it prints. Raises
    `MeasurementError` when it cannot be started, does not end in its time, prints too much or no usable reply.
    """
    folder = evidence.suites_folder / options.cwd
    if not await asyncio.to_thread(folder.is_dir):
        raise MeasurementError(f"{options.label}: the folder {options.cwd} does not exist")
    result = await evidence.sandbox.run_for_authors(
        options.command,
        folder=folder,
        seconds=options.timeout_seconds,
        stdin=await asyncio.to_thread(encode, document),
        environment={"AGENTV_WORKSPACE_PATH": str(evidence.sandbox.workspace)},
    )
    if result.timed_out:
        raise MeasurementError(f"{options.label}: the grader did not end within {options.timeout_seconds:g} seconds")
    if result.output_limit_hit:
        raise MeasurementError(f"{options.label}: the grader printed more than passgate keeps")
    return reply_grade(options, read_code_reply(result.stdout, result.stderr, result.exit_code))


async def grade_script(options: ScriptAssertion, evidence: Evidence) -> RawGrade:
    """Run the script on the answer, in the trial's sandbox without network; its result is the score. It sees `output`,
    the answer, and `context` with `vars`, `output`, `metadata` and whatever else a code grader is given. True is 1 and
    false 0; a number from 0 to 1 is a score; an object is read by `read_document`. Raises `MeasurementError` for any
    other result, when the script raises or does not end in time, and when this machine has no Node.js.
    """
    document = {"code": options.value, "output": evidence.final_answer, "context": code_input(evidence, {}, None)}
    stdin = await asyncio.to_thread(encode, document)
    command = [sys.executable, "-I", "-c", _PYTHON]
    if options.type == "javascript":
        node = shutil.which("node")
        if node is None:
            remedy = "install it from https://nodejs.org"
            raise MeasurementError(f"`javascript` needs Node.js, which is not installed: {remedy}")
        command = [node, "-e", _JAVASCRIPT]
    result = await evidence.sandbox.run(command, seconds=SCRIPT_SECONDS, stdin=stdin)
    if result.timed_out:
        raise MeasurementError(f"{options.label}: the script did not end within {SCRIPT_SECONDS} seconds")
    if result.exit_code != 0 or result.output_limit_hit:
        raise MeasurementError(raw(f"{options.label}: the script raised: ", quote_end(result.stderr, 1000)))
    try:
        value = parse_json(result.stdout.rpartition("\n")[2])["result"]
        if isinstance(value, dict):
            return reply_grade(options, read_document(value))
        score = float(value) if isinstance(value, bool) else share(value, "the result")
    except (ValueError, KeyError, TypeError) as error:
        raise MeasurementError(f"{options.label}: the script's result is unusable: {error}") from None
    message = quote(f"{options.value.strip()}: {value}", 500)
    check = RawCheck(passed=score >= options.passing_score, message=message)
    return reply_grade(options, GraderReply(score, (check,)))
