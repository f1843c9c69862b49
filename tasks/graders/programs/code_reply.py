"""What a code grader printed and how it ended: its score."""

from typing import Any, Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.programs.grader_reply import GraderReply, read_document
from passgate.tasks.graders.texts import ending, shorten
from passgate.tasks.model.grade import Check
from passgate.tasks.model.json_values import MISSING, parse_json

_FIRST_SIGNAL: Final = 128


def read_code_reply(stdout: str, stderr: str, exit_code: int) -> GraderReply:
    """The score that a program gives, by what it printed.

    A JSON object is a reply in one of the forms of `read_document`; lines of a log may stand before it. Output without
    any `{` is plain text: exit code 0 is a score of 1, any other one 0.

    Raises `MeasurementError` where the grader is at fault, so that its faults are never taken for the agent's:

    - there is a `{` but no valid reply, or all of the output is JSON of another kind, such as `0.4` or `[1]`;
    - it ended with another exit code than 0 after a reply, or after saying something on its error output;
    - it was ended by a signal.
    """
    document = _document(stdout)
    plain = document is MISSING and "{" not in stdout
    if exit_code != 0:
        _require_plain_failure(plain, stdout, stderr, exit_code)
    if plain:
        said = stdout.strip() or f"exit code {exit_code}"
        return GraderReply(float(exit_code == 0), (Check(passed=exit_code == 0, message=shorten(said)),))
    try:
        return read_document(document)
    except ValueError as error:
        problem = "it contains a `{` but no JSON object" if document is MISSING else str(error)
        raise MeasurementError(f"the grader's reply is unusable: {problem}. It printed {_said(stdout)}") from None


def _require_plain_failure(plain: bool, stdout: str, stderr: str, exit_code: int) -> None:
    if not 0 < exit_code < _FIRST_SIGNAL or stderr.strip():
        said = ending(stderr, 500)
        raise MeasurementError(f"the grader crashed with exit code {exit_code}{': ' if said else ''}{said}")
    if not plain:
        raise MeasurementError(f"the grader ended with exit code {exit_code} after it had printed {_said(stdout)}")


def _document(stdout: str) -> Any:
    """The JSON value that is all of the output, or the object from the first `{` on, which must begin a line; else
    `MISSING`.
    """
    log, brace, rest = stdout.partition("{")
    reply = brace + rest if log.rpartition("\n")[2].strip() == "" else stdout
    for text in (stdout, reply):
        try:
            return parse_json(text)
        except ValueError:
            continue
    return MISSING


def _said(stdout: str) -> str:
    return repr(shorten(stdout.strip(), 300))
