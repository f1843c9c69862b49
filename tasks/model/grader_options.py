"""What the options of all graders have, and what a type of grader says of itself."""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, NamedTuple

from passgate.tasks.model.base import Amount, Frozen, Share, Text
from passgate.tasks.model.grade import ViolationRule

OptionPath = tuple[str | int, ...]
"""Keys and indices that lead from a grader to one of its options."""
Problem = tuple[OptionPath, str]
Command = tuple[str, tuple[str, ...]]
"""A folder relative to the suites folder, and the words of what runs there."""


class NamedPath(NamedTuple):
    """A file or folder of the suites folder that a grader names."""

    option: OptionPath
    name: str
    kind: Literal[
        "file", "tests", "prompt", "folder"
    ]  # A prompt is read with the task, a folder is where something runs


class GraderOptions(Frozen):
    """What every grader has.

    A type of grader says here all that is special about it; nothing else lists types of graders but `GRADERS`, which
    has their functions.
    """

    needs_one_of: ClassVar[tuple[str, ...]] = ()
    """Options of which a grader has one at least: without any it cannot fail."""
    judges_tool_calls: ClassVar[bool] = False
    """Whether its score is one of the metric `tool_call_accuracy`."""
    finds: ClassVar[ViolationRule | None] = None
    """The rule that it finds violations of."""

    name: Text | None = None
    """What reports call this grader; its type when not given."""
    weight: Amount = 1
    """Its part in the trial's score, where the task's `scoring` asks for one."""

    @property
    def evidence(self) -> Literal["transcript", "state", "program", "judge"]:
        """What it goes by: the transcript, only the state that the agent left, or what a program or a judge says."""
        return "transcript"

    @property
    def veto(self) -> ViolationRule | None:
        """The rule whose violations, which no other result offsets, it finds with these options."""
        return self.finds

    @property
    def forbidden_calls(self) -> tuple[Any, ...]:
        """The calls that are violations: patterns of tool names, or of names and arguments."""
        return ()

    @property
    def argument_rules(self) -> tuple[Any, ...]:
        """What arguments of calls may be, and must not be."""
        return ()

    def named_paths(self) -> Iterator[NamedPath]:
        """Yield the files and folders that it names."""
        yield from ()

    def commands(self) -> Iterator[Command]:
        """Yield the programs of the suites' authors that it runs."""
        yield from ()

    def json_schemas(self) -> Iterator[tuple[OptionPath, dict[str, Any]]]:
        """Yield its JSON Schemas."""
        yield from ()

    def members(self) -> Iterator[tuple[OptionPath, Any]]:
        """Yield the graders that it is made of."""
        yield from ()

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the options that a JSON Schema cannot say and that no file is needed for."""
        fields = type(self).model_fields
        if self.needs_one_of and all(getattr(self, key) == fields[key].default for key in self.needs_one_of):
            yield (), f"this grader cannot fail: give at least one of {', '.join(self.needs_one_of)}"

    @property
    def type_name(self) -> str:
        """What it is; each kind of grader has a `type` of its own."""
        return str(getattr(self, "type", "grader"))

    @property
    def label(self) -> str:
        return self.name or self.type_name


class AssertionOptions(GraderOptions):
    """What the graders of eval files have beside that. They pass from a score of 0.8 on."""

    required: bool = False
    """The trial fails without it, whatever its score is."""
    min_score: Share | None = None
    """The least score that passes it, instead of 0.8."""
    negate: bool = False
    """Its score is one less what it would be: what must not be so."""
