"""Graders for each turn of a conversation."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.composite import GradedMember, attach_members, combine, grade_composite
from passgate.tasks.graders.evidence import Evidence, error_grade
from passgate.tasks.metering.usage import trial_metrics
from passgate.tasks.model.grade import RawCheck, RawGrade
from passgate.tasks.model.graders import Aggregator, Composite, Turns
from passgate.tasks.model.messages import TaskMessage
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Message, Transcript

AGGREGATORS: Final[dict[str, Literal["weighted_average", "minimum", "maximum"]]] = {
    "mean": "weighted_average",
    "min": "minimum",
    "max": "maximum",
}


class ConversationTurn(NamedTuple):
    """What was said up to a message of the user, and what the agent did then."""

    before: tuple[Message, ...]  # The message of the user is the last of them
    answer: tuple[Message, ...]
    output: str

    @property
    def is_answered(self) -> bool:
        return bool(self.output.strip()) or _is_reported(self.answer)


def conversation_turns(task: EvalTask, transcript: Transcript) -> list[ConversationTurn]:
    """Return the turns of a conversation in order. The first one answers all messages that the task asks."""
    messages = transcript.messages
    asked = [place for place, message in enumerate(messages) if message.role == "user"]
    own = [message.text for message in task.messages if message.role == "user"]
    # A task that asks in several messages has one turn for all of them: it begins at the last.
    opening = len(own) - 1 if own and [messages[place].content for place in asked[: len(own)]] == own else 0
    starts = asked[opening:] or [-1]
    turns = []
    for start, end in zip(starts, [*starts[1:], len(messages)], strict=True):
        answer = messages[start + 1 : end]
        words = (said.content for said in reversed(answer) if said.role == "assistant" and said.content.strip())
        turns.append(ConversationTurn(messages[: start + 1], answer, next(words, "")))
    if _is_reported(turns[-1].answer) or not _is_reported(messages):
        turns[-1] = turns[-1]._replace(output=transcript.output)
    return turns


def _is_reported(messages: Sequence[Message]) -> bool:
    """Return whether the agent has a part in these messages; one that does not report any has its answer alone."""
    return any(message.role == "assistant" for message in messages)


def turn_evidence(evidence: Evidence, turn: ConversationTurn, expected_output: Any) -> Evidence:
    """Return one turn as a trial: what was said before it is what the task asks, and only what the agent did in it is
    in the transcript and the metrics. How long the turn took is not known.
    """
    did = Transcript(messages=turn.answer, complete=evidence.transcript.complete)
    metrics = trial_metrics(did).model_copy(update={"wall_time_seconds": None})
    update: dict[str, Any] = {"expected_output": expected_output, "expected_messages": ()}
    if turn.before:
        inputs = {name: value for name, value in evidence.task.inputs.items() if name != "prompt"}
        said = tuple(TaskMessage(role=message.role, content=message.content) for message in turn.before)
        update |= {"inputs": inputs, "messages": said}
    transcript = evidence.transcript.model_copy(
        update={"messages": turn.answer, "output": turn.output, "usage": did.whole_usage, "wall_time_seconds": 0.0}
    )
    return replace(evidence, task=evidence.task.model_copy(update=update), transcript=transcript, metrics=metrics)


def conversation_evidence(evidence: Evidence) -> Evidence:
    """Return the trial with the whole conversation as its answer: a paragraph per message, add_head by its role."""
    said = [f"{message.role}: {message.content}" for message in evidence.transcript.messages if message.content.strip()]
    return replace(evidence, transcript=evidence.transcript.model_copy(update={"output": "\n\n".join(said)}))


async def grade_turns(options: Turns, evidence: Evidence) -> RawGrade:
    """Ask each turn's graders about that turn alone, see `turn_evidence`, and those of the conversation about all of
    it. The score of a turn is the average of its graders by their weights, and it passes as a composite does.

    A turn that the agent did not reach or did not answer scores 0. With `on_turn_failure: stop`, so does every turn
    after one that did not pass. Turns without graders are not counted. Raises `MeasurementError` when no turn has any.
    The grade has an error when a turn could not be measured and the grade depends on it.
    """
    turns = conversation_turns(evidence.task, evidence.transcript)
    grades: list[RawGrade] = []
    for number, asked in enumerate(options.turns, start=1):
        if not asked.assertions:
            continue
        name, previous = f"turn-{number}", grades[-1] if grades else None
        if options.on_turn_failure == "stop" and previous is not None and previous.error is not None:
            # Whether the conversation stops here is not known either.
            error = f"{previous.name} was not measured"
            grades.append(_fail(name, score=None, error=error, transient=previous.transient))
        elif options.on_turn_failure == "stop" and previous is not None and not previous.passed:
            grades.append(_fail(name, f"{previous.name} did not pass"))
        elif number > len(turns) or not turns[number - 1].is_answered:
            grades.append(_fail(name, "the agent did not answer this turn"))
        else:
            whole = Composite(type="composite", name=name, assertions=asked.assertions)
            grades.append(
                await grade_composite(whole, turn_evidence(evidence, turns[number - 1], asked.expected_output))
            )
    if options.conversation:
        whole = Composite(type="composite", name="conversation", assertions=options.conversation)
        grades.append(await grade_composite(whole, conversation_evidence(evidence)))
    if not grades:
        raise MeasurementError(f"{options.label} has nothing to check: no turn has graders")
    try:
        aggregator = Aggregator(type=AGGREGATORS[options.aggregation])
        grade = combine(options, aggregator, [GradedMember(grade.name, grade) for grade in grades])
    except MeasurementError as error:
        grade = error_grade(options, error.message, transient=error.transient)
    return attach_members(grade, grades)


def _fail(name: str, reason: str = "", **fields: Any) -> RawGrade:
    """Return the grade of a turn without an answer, by default of a score of 0."""
    checks = (RawCheck(passed=False, message=reason),) if reason else ()
    return RawGrade(**{"name": name, "type": "composite", "score": 0.0, "passed": False, "checks": checks, **fields})
