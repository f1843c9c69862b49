"""A model that does in each task what a transcript of it says, whichever API it is asked by."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from passgate.tasks.agents.transcripts import read_transcript_file
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Transcript
from tests.project import REPOSITORY
from tests.upstream import Says

Model = Callable[[int, dict[str, Any]], Says]


def read_reference(task: EvalTask, is_solution: bool) -> Transcript:
    """Return what the solution of a shipped task does, or its first counterexample: in an incident, what happened."""
    assert task.reference is not None
    reference = task.reference.solution if is_solution else task.reference.counterexamples[0]
    transcript = read_transcript_file(REPOSITORY / "suites" / str(reference.transcript))
    assert transcript is not None
    return transcript


def play(transcripts: Mapping[str, Transcript], prefix: str = "") -> Model:
    """Return a model that knows each task by the first line of its prompt. `prefix` stands before its tools' names."""
    known = {json.dumps(prompt.splitlines()[0])[1:-1]: transcript for prompt, transcript in transcripts.items()}

    def answer(_: int, body: dict[str, Any]) -> Says:
        text = json.dumps(body)
        (transcript,) = (one for prompt, one in known.items() if prompt in text)
        calls = transcript.tool_calls
        made = _results(body)
        if made >= len(calls):
            return Says(transcript.output)
        return Says(calls=[(f"{prefix}{calls[made].tool}", calls[made].arguments)])

    return answer


def _results(body: Any) -> int:
    """Return the number of tool results in a request."""
    if isinstance(body, list):
        return sum(map(_results, body))
    if not isinstance(body, dict):
        return 0
    is_result = body.get("type") in ("tool_result", "function_call_output") or body.get("role") == "tool"
    return is_result + sum(map(_results, body.values()))
