"""Tools used, their order, their arguments, the number of steps, the use of a skill."""

from typing import Any

import pytest

from passgate.tasks.model.transcript import Message, ToolCall, Transcript
from tests.unit.graders.options import arguments, sequence, steps, used
from tests.unit.graders.trials import CALLS, Graded, called

KEY = {"pad": "x" * 470, "key": "sk-ant-" + "a1B2" * 24}
SEARCH: dict[str, Any] = {"type": "tool_arguments", "tool": "Sear*"}
ORDER: dict[str, Any] = {"type": "tool_arguments", "tool": "order"}


@pytest.mark.parametrize(
    ("options", "passed"),
    [
        *((used("search"), True), (used("search", "missing"), False), (used("search", min=2, max=2), True)),
        *((used("search", min=3), False), (used("search", max=1), False), (used("sea*"), True)),
        *((used("s?arch"), True), (used("SEARCH"), True), (used("[s]earch"), False)),
        *((used("read", min=0, max=0), False), (used("shell"), True), (used("Bash", "exec_command"), True)),
        *((used("read", negate=True), False), (used("*", negate=True), False)),
        *((used("read", "delete_file", negate=True), False), (used("write", "delete_file", negate=True), True)),
        *((sequence("search", "read", "search"), True), (sequence("read", "read"), False)),
        *((sequence("search", "SHELL", "bash"), True), (sequence("*", "read"), True)),
        (sequence("search", "read", "Bash", "search", mode="exact"), False),
        (sequence("search", "read", "shell", "exec_*", "Bash", "search", mode="exact"), True),
        *((sequence("search", "read", negate=True), False), (sequence("read", "read", negate=True), True)),
        *(({**SEARCH, "args": {"q": "b"}}, True), ({**SEARCH, "args": {"q": "c"}}, False)),
        ({**SEARCH, "args": {"q": "b"}, "mode": "exact"}, False),
        ({**SEARCH, "args": {"q": "b"}, "mode": "exact", "ignore": ["limit"]}, True),
        ({**SEARCH, "args": {"q": "b"}, "mode": "exact", "ignore": ["lim*"]}, True),
        ({**SEARCH, "args": {"q": "b"}, "mode": "exact", "defaults": {"limit": 5}}, True),
        ({**SEARCH, "args": {"q": "b"}, "mode": "exact", "defaults": {"limit": 6}}, False),
        ({**SEARCH, "args": {"q": "b", "page": 1}, "defaults": {"page": 1}}, True),
        (
            {**SEARCH, "args": {"q": "b", "page": 1}, "defaults": {"page": 1}, "mode": "exact", "ignore": ["limit"]},
            True,
        ),
        ({**SEARCH, "args": {"q": "b", "limit": True}}, False),
        ({**SEARCH, "tool": "*", "args": {"command": "rm -rf /"}, "negate": True}, False),
        ({**SEARCH, "tool": "*", "args": {"command": "rm"}, "negate": True}, True),
        ({**ORDER, "args": {"to": {"city": "Rome"}}}, True),
        ({**ORDER, "args": {"to": {"city": "Oslo"}}}, False),
        ({**ORDER, "args": {"items": [{"id": 1}, {}]}}, True),
        *(({**ORDER, "args": {"items": [{"id": 1}]}}, False), ({**ORDER, "args": {"items": "all"}}, False)),
        ({**ORDER, "args": {"to": [{"city": "Rome"}]}}, False),
    ],
)
async def test_tools_their_order_and_their_arguments(options: dict[str, Any], passed: bool, graded: Graded) -> None:
    order = ("order", {"to": {"city": "Rome", "zip": "1"}, "items": [{"id": 1, "n": 2}, {"id": 3}]})
    found = await graded(options, called(*CALLS, *([order] if options.get("tool") == "order" else [])))
    assert (found.passed, found.score) == (passed, float(passed))
    assert [check.passed for check in found.checks] == [passed]


@pytest.mark.parametrize("tool", ["fs.rm", "mcp__fs__RM"])
async def test_a_tool_is_found_with_its_server_before_it(tool: str, graded: Graded) -> None:
    assert (await graded(used("rm"), called(tool))).passed
    assert not (await graded(used("rm", negate=True), called(tool))).passed


async def test_a_refused_call_of_a_forbidden_tool_counts(graded: Graded) -> None:
    refused = called(ToolCall(tool="rm", refused=True))
    assert not (await graded(used("rm", negate=True), refused)).passed
    assert not (await graded(used("rm"), refused)).passed


@pytest.mark.parametrize(
    ("options", "passed"),
    [
        *((steps("tool", max=6), True), (steps("tool", max=5), False), (steps("command", min=3, max=3), True)),
        *((steps("command", pattern="rm*", max=0), False), (steps("command", pattern="curl", min=1), True)),
        (steps("tool", pattern="search", min=2, max=2), True),
        *((steps("message", min=1, max=1), True), (steps("message", pattern="*done*", min=1), True)),
        *((steps(min=7, max=7), True), (steps(min=8), False)),
    ],
)
async def test_the_number_of_steps(options: dict[str, Any], passed: bool, graded: Graded) -> None:
    asked, done = Message(role="user", content="Go."), Message(role="assistant", content="All done.")
    found = await graded(options, Transcript(messages=(asked, *called(*CALLS).messages, done)))
    assert (found.passed, found.score) == (passed, float(passed))


@pytest.mark.parametrize("pattern", ["git push", "git", "cd x; ls"])
async def test_a_command_may_be_a_list_of_words_or_of_commands(pattern: str, graded: Graded) -> None:
    transcript = called(("shell", {"command": ["git", "push"]}), ("shell", {"commands": ["cd x", "ls"]}))
    assert (await graded(steps("command", pattern=pattern, min=1, max=1), transcript)).passed


async def test_a_step_count_without_limits_is_an_error(graded: Graded) -> None:
    assert "nothing to check" in (await graded({"type": "step_count"}, called("a"))).error


@pytest.mark.parametrize("options", [used("a"), sequence("a"), {**SEARCH, "tool": "a", "args": {}}, steps(min=1)])
async def test_a_transcript_that_does_not_hold_every_call_is_an_error(options: dict[str, Any], graded: Graded) -> None:
    for transcript in (called(complete=False), called("a", complete=False)):
        assert "PASSGATE_TRANSCRIPT" in (await graded(options, transcript)).error


@pytest.mark.parametrize("options", [used("a", max=1, negate=True), sequence("a", mode="exact", negate=True)])
async def test_a_limit_that_further_calls_may_break_is_not_certain(options: dict[str, Any], graded: Graded) -> None:
    assert (await graded(options, called("a", complete=False))).error is not None
    assert (await graded(options, called("a"))).score == 0


@pytest.mark.parametrize(
    "options",
    [
        *(used("a", negate=True), used("a", min=0, max=0), sequence("a", negate=True), sequence("a", mode="exact")),
        arguments("a", {}, negate=True),
        steps("tool", max=1),
    ],
)
async def test_a_fail_is_certain_when_the_known_calls_are_too_many(options: dict[str, Any], graded: Graded) -> None:
    found = await graded(options, called("a", "a", complete=False))
    assert (found.passed, found.score, found.error) == (False, 0, None)


@pytest.mark.parametrize(
    ("options", "calls", "message"),
    [
        (used("a", "b"), ["a", "a"], "calls: a 2, b 0; expected at least 1 call of each tool"),
        (sequence("b", "a"), ["a", "b"], "calls: a, b; expected in order: b, a"),
        (
            arguments("a", {"x": 2}),
            [("a", {"x": 1})],
            'a was called with {"x": 1}; expected a call with {"x": 2} (partial)',
        ),
        (steps("tool", min=2, max=3), ["a"], "1 tool steps, expected at least 2 and at most 3"),
    ],
)
async def test_messages_say_what_was_found(options: Any, calls: list[Any], message: str, graded: Graded) -> None:
    assert (await graded(options, called(*calls))).checks[0].message == message


async def test_no_part_of_a_key_is_given_away_where_arguments_are_cut(graded: Graded) -> None:
    options = arguments("a", {**KEY, "x": 1})
    found = (await graded(options, called(("a", KEY)))).model_dump_json()
    assert "sk-a****" in found
    assert "sk-ant" not in found


SKILL = ("Skill", {"skill": "team:csv-analyzer"})
READ = ("Read", {"file_path": ".claude/skills/csv-analyzer/SKILL.md"})
OTHER = ("Bash", {"command": "cat skills/csv-analyzer/SKILL.md"})


def skill(**fields: Any) -> dict[str, Any]:
    return {"type": "skill_trigger", "skill": "csv-analyzer", **fields}


@pytest.mark.parametrize(
    ("calls", "first", "any_call"),
    [
        *(([SKILL], 1.0, 1.0), ([READ], 1.0, 1.0)),
        ([("read", {"path": "csv-analyzer.md"})], 1.0, 1.0),
        *(([OTHER, SKILL], 0.0, 1.0), ([OTHER], 0.0, 0.0)),
        ([("Skill", {"skill": "csv"}), ("Skill", {})], 0.0, 0.0),
        ([("Skill", {"file_path": "csv-analyzer"})], 0.0, 0.0),
        *(([("Read", {"file_path": None})], 0.0, 0.0), ([], 0.0, 0.0)),
    ],
)
async def test_which_call_uses_a_skill(calls: list[Any], first: float, any_call: float, graded: Graded) -> None:
    transcript = called(*calls)
    assert (await graded(skill(), transcript)).score == first
    assert (await graded(skill(any_call=True), transcript)).score == any_call
    assert (await graded(skill(should_trigger=False), transcript)).score == 1 - first
    assert (await graded(skill(should_trigger=False, any_call=True), transcript)).score == 1 - any_call


USES = 'Skill({"skill": "team:csv-analyzer"}) uses the skill \'csv-analyzer\', but must not'
UNUSED = "the skill 'csv-analyzer' is not used in any call, but must be"


@pytest.mark.parametrize(
    ("should_trigger", "transcript", "message"),
    [
        (False, called(OTHER, SKILL, complete=False), USES),
        (True, called(ToolCall(tool="Skill", arguments=SKILL[1], refused=True), "Bash"), UNUSED),
    ],
    ids=["a known use is certain", "a refused call is no use"],
)
async def test_a_skill_that_is_or_is_not_used(
    should_trigger: bool, transcript: Transcript, message: str, graded: Graded
) -> None:
    result = await graded(skill(should_trigger=should_trigger, any_call=True), transcript)
    assert (result.score, result.error, result.checks[0].message) == (0.0, None, message)


@pytest.mark.parametrize("should_trigger", [True, False])
async def test_calls_that_are_not_known_are_an_error(should_trigger: bool, graded: Graded) -> None:
    assert (await graded(skill(should_trigger=should_trigger), called(SKILL, complete=False))).error
