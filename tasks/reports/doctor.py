"""What `passgate doctor` found, for a terminal."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from passgate.tasks.model.checks import State, Symptom
from passgate.tasks.reports.console import Marked, heading, rendered
from passgate.tasks.reports.escape import printable

_LONGEST_TITLE = 200
_LONGEST = 1000
_MARKS = {State.OK: ("✓", "green"), State.WARNING: ("!", "yellow"), State.FAILED: ("✗", "red")}


def doctor_report(symptoms: Sequence[Symptom], *, width: int, color: bool) -> str:
    """The symptoms by what they belong to, with a remedy below each that needs one, and how many there are."""
    parts: list[RenderableType] = []
    for subject in dict.fromkeys(symptom.subject for symptom in symptoms):
        parts.append(heading(printable(subject, _LONGEST_TITLE)))
        parts.extend(part for symptom in symptoms if symptom.subject == subject for part in _lines(symptom))
    return rendered(*parts, _summary(symptoms), width=width, color=color).removeprefix("\n")


def _lines(symptom: Symptom) -> Iterator[RenderableType]:
    mark, style = _MARKS[symptom.state]
    what = printable(symptom.what, _LONGEST_TITLE)
    text = Text.assemble((f"{what}: ", "bold"), printable(symptom.found, _LONGEST))
    yield Marked(f"{mark} {symptom.state:<7}", text, style=style, indent=2)
    if symptom.remedy:
        yield Marked("→", Text(printable(symptom.remedy, _LONGEST)), style=style, indent=12)


def _summary(symptoms: Sequence[Symptom]) -> Text:
    counts = {state: sum(symptom.state is state for symptom in symptoms) for state in State}
    worst = max((state for state in State if counts[state]), key=list(State).index, default=State.OK)
    return heading(", ".join(f"{counts[state]} {state}" for state in State), f"bold {_MARKS[worst][1]}")
