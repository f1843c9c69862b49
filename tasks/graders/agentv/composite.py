"""Several graders with one score, as AgentV makes it."""

from typing import Any, Final

from passgate.tasks.graders.agentv.code_grader import is_number, printed_object, read_code_reply_as_agentv
from passgate.tasks.graders.agentv.llm_grader import grade_by_judge_as_agentv
from passgate.tasks.graders.composites.composite import Ask, Others, grade_composite
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.programs.grader_reply import GraderReply
from passgate.tasks.model.assertions import AssertionOptions
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.graders import Composite, Grader

_OF_ASSERT_SET: Final[dict[str, Any]] = {"required": False, "min_score": None}
_OF_COMPOSITE: Final[dict[str, Any]] = {**_OF_ASSERT_SET, "negate": False}
_KNOWN: Final = frozenset({"weighted_average", "threshold", "code_grader", "llm_grader"})


async def grade_composite_as_agentv(ask: Ask, options: Composite, evidence: Evidence) -> Grade:
    """The members' grades as `grade_composite` aggregates them, but a member's `required`, `negate` and `min_score` are
    nothing, and it weighs what `weights` says by its name, 1 where that says nothing.

    A composite with a `threshold` of its own is what AgentV calls an assert-set: its members' own weights and negations
    count. Composites with an aggregator that AgentV does not know, which it leaves out, are graded as AgentEvals means
    them.
    """
    if options.aggregator.type not in _KNOWN:
        return await grade_composite(ask, options, evidence)
    change = _of_composite if options.threshold is None else _of_assert_set
    members = tuple(change(member) for member in options.assertions)
    bare = options.model_copy(update={"assertions": members})
    grade = await grade_composite(ask, bare, evidence, _OTHERS)
    return grade.model_copy(update={"fatal": ""})


def _of_assert_set(member: Grader) -> Grader:
    return member.model_copy(update=_OF_ASSERT_SET) if isinstance(member, AssertionOptions) else member


def _of_composite(member: Grader) -> Grader:
    bare = member.model_copy(update=_OF_COMPOSITE) if isinstance(member, AssertionOptions) else member
    return bare.model_copy(update={"weight": 1.0})


def read_aggregate_as_agentv(stdout: str, stderr: str, exit_code: int) -> GraderReply:
    """The `score` that a program prints in a JSON object, brought into 0..1; 0 without one, or with another exit code
    than 0.
    """
    reply = read_code_reply_as_agentv(stdout, stderr, exit_code)
    return reply if _has_score(stdout) else reply._replace(score=0.0)


_OTHERS: Final = Others(read_aggregate_as_agentv, grade_by_judge_as_agentv)


def _has_score(stdout: str) -> bool:
    document = printed_object(stdout)
    return document is not None and is_number(document.get("score"))
