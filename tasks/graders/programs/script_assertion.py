"""A few lines of JavaScript or Python that say whether an answer is good."""

import asyncio
import shutil
import sys
from typing import Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.checks import passing_score
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.programs.code_input import code_input, encoded
from passgate.tasks.graders.programs.grader_reply import GraderReply, grade_of, read_document, share
from passgate.tasks.graders.texts import ending, shorten
from passgate.tasks.model.assertions import ScriptAssertion
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.json_values import parse_json
from passgate.tasks.model.sandbox import ProcessResult

SECONDS: Final = 60
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


async def grade_script(options: ScriptAssertion, evidence: Evidence) -> Grade:
    """Run the script on the answer, in the trial's sandbox without network; its result is the score.

    It sees `output`, the answer, and `context` with `vars`, `output`, `metadata` and whatever else a code grader is
    given. True is 1 and false 0; a number from 0 to 1 is a score; an object is read by `read_document`. Raises
    `MeasurementError` for any other result, when the script raises or does not end in time, and when this machine has
    no Node.js.
    """
    document = {"code": options.value, "output": evidence.transcript.output, "context": code_input(evidence, {}, None)}
    stdin = await asyncio.to_thread(encoded, document)
    command = [sys.executable, "-I", "-c", _PYTHON]
    if options.type == "javascript":
        node = shutil.which("node")
        if node is None:
            remedy = "install it from https://nodejs.org"
            raise MeasurementError(f"`javascript` needs Node.js, which is not installed: {remedy}")
        command = [node, "-e", _JAVASCRIPT]
    result = await evidence.sandbox.run(command, seconds=SECONDS, stdin=stdin)
    least = options.min_score if options.threshold is None else options.threshold
    bound = options.model_copy(update={"min_score": least})
    return grade_of(bound, _reply(bound, result))


def _reply(options: ScriptAssertion, result: ProcessResult) -> GraderReply:
    if result.timed_out:
        raise MeasurementError(f"{options.label}: the script did not end within {SECONDS} seconds")
    if result.exit_code != 0 or result.output_limit_hit:
        raise MeasurementError(f"{options.label}: the script raised: {ending(result.stderr, 1000)}")
    try:
        value = parse_json(result.stdout.rpartition("\n")[2])["result"]
        if isinstance(value, dict):
            return read_document(value)
        score = float(value) if isinstance(value, bool) else share(value, "the result")
    except (ValueError, KeyError, TypeError) as error:
        raise MeasurementError(f"{options.label}: the script's result is unusable: {error}") from None
    message = f"{options.value.strip()}: {value}"
    return GraderReply(score, (Check(passed=score >= passing_score(options), message=shorten(message, 500)),))
