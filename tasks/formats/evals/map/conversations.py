"""Tests that are conversations: what the user says one after the other, and graders for each answer."""

from dataclasses import dataclass
from typing import Any

from passgate.tasks.formats.evals.map.graders import read_list
from passgate.tasks.formats.evals.map.messages import Variables, read_expected, read_messages
from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.read.node import Key, Node, Parts, as_items, as_one_of, take_apart
from passgate.tasks.formats.schema_check import Kind
from passgate.tasks.model.graders import Grader, TurnGraders, Turns
from passgate.tasks.model.messages import TaskMessage, as_prompt
from passgate.tasks.model.task import SimulatedUser

TURN_KEYS = {
    "input": Key(needed=True),
    "expected_output": Key(),
    "assert": Key((Kind.LIST,), spellings=("assertions", "evaluators")),
    **dict.fromkeys(("name", "id"), Key((Kind.TEXT,))),
}


@dataclass(frozen=True)
class ReadConversation:
    """What the user says in a test with turns; nothing in one without."""

    opening: tuple[TaskMessage, ...] = ()
    """The first of it."""
    user: SimulatedUser | None = None
    """The rest of it."""
    grader: Turns | None = None

    @property
    def is_graded(self) -> bool:
        """Whether a turn has graders of its own."""
        return self.grader is not None and any(turn.assertions for turn in self.grader.turns)


def read_conversation(test: Parts, variables: Variables, sources: Sources) -> ReadConversation:
    """The turns of a test, with a grader that has all of theirs."""
    mode = as_one_of(test.get("mode"), ("conversation",), sources.complaints)
    if mode is not None and test.get("turns") is None:
        sources.refuse(test.values["mode"], "a conversation needs `turns`")
    window = test.get("window_size")
    if window is not None:
        sources.warn(window, "judges are shown the whole conversation", at_key=True)
    turns = [_turn(item, variables, sources) for item in as_items(test.get("turns")) if isinstance(item.value, dict)]
    if not turns:
        return ReadConversation()
    says = [as_prompt(messages) for messages, _ in turns[1:]]
    aggregation: Any = as_one_of(test.get("aggregation"), ("mean", "min", "max"), sources.complaints)
    on_failure: Any = as_one_of(test.get("on_turn_failure"), ("continue", "stop"), sources.complaints)
    grader = Turns(
        type="turns",
        turns=tuple(graders for _, graders in turns),
        aggregation=aggregation or "mean",
        on_turn_failure=on_failure or "continue",
    )
    user = SimulatedUser(says=tuple(text for text in says if text)) if any(says) else None
    return ReadConversation(turns[0][0], user, grader)


def _turn(node: Node, variables: Variables, sources: Sources) -> tuple[tuple[TaskMessage, ...], TurnGraders]:
    turn = take_apart(node, TURN_KEYS, sources.complaints)
    said = variables.filled_at(turn, "input", sources)
    messages = read_messages(said, sources) if said else ()
    if said is not None and not messages:
        sources.refuse(said, "must not be empty")
    value, as_messages = read_expected(variables.filled_at(turn, "expected_output", sources), None, sources)
    listed = turn.get("assert")
    graders = read_list(listed, variables, sources) if listed else ()
    return messages, TurnGraders(assertions=graders, expected_output=as_messages[-1].text if as_messages else value)


def with_turns(conversation: ReadConversation, graders: tuple[Grader, ...]) -> tuple[Grader, ...]:
    """The graders of a test. In a conversation its own are asked of the whole of it and count as one turn more."""
    if conversation.grader is None:
        return graders
    return (conversation.grader.model_copy(update={"conversation": graders}),)
