"""The results of `python -m bench.gate_trust` as JSON, and as the tables of docs/statistics.md."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.doc_tables import write_between
from bench.gate_trust.figures import Block, Figure, Target
from bench.gate_trust.worlds import RUN_EFFECT, worlds

BEGIN, END = "<!-- gate-trust: begin -->", "<!-- gate-trust: end -->"
_WITH_RUN_EFFECTS = ", with run effects"
_NOT_SHOWN = (
    *("standard errors between", "forecast off by", "confirming trials, by the forecast"),
    *("red by a task", "red by the suite alone", "red, strict, with"),
    *("confirming trials, with", "confirming trials, as shipped, with"),
    *("falls to 0, as shipped", "falls to half, as shipped", "a task from 0 to 0.2 falls"),
    *("a task from 0.2 to 0.4 falls to half", "from 0.65 to half", "from 0.75 to half"),
)
"""Parts of the labels of figures that the results have and the page leaves out."""
_SUITE = "all tasks fall"


def write_results(file: Path, blocks: Sequence[Block], settings: Mapping[str, Any]) -> None:
    """The figures of all blocks, with what they were made from."""
    found = [{"title": block.title, "figures": [asdict(figure) for figure in block.figures]} for block in blocks]
    file.write_text(json.dumps({**settings, "blocks": found}, indent=1) + "\n", encoding="utf-8")


def read_results(file: Path) -> dict[str, Any]:
    """What `write_results` has written."""
    result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return result


def write_page(page: Path, result: Mapping[str, Any]) -> None:
    """Put the tables between the marks of the page. Exits where it has none."""
    write_between(page, (BEGIN, END), _tables(result))


def _tables(result: Mapping[str, Any]) -> str:
    blocks = {block["title"]: [_figure(one) for one in block["figures"]] for block in result["blocks"]}
    head = f"{result['trust_gates']:,} gates of each agent, seed {result['seed']}."
    return "\n".join([head, "", *_of_agents(blocks), "", *_of_bounds(blocks)])


def _figure(values: Mapping[str, Any]) -> Figure:
    return Figure(**{**values, "target": Target(**values["target"]) if values["target"] else None})


def _of_agents(blocks: Mapping[str, Sequence[Figure]]) -> Iterator[str]:
    """A row for each figure, a column for each agent."""
    agents, rows = worlds(), dict[str, dict[str, Figure]]()
    for plain, shifted in zip(agents, worlds(RUN_EFFECT), strict=True):
        for title, suffix in ((f"a: {plain}", ""), (f"a: {shifted}", _WITH_RUN_EFFECTS)):
            for figure in blocks.get(title, ()):
                rows.setdefault(figure.label + suffix, {})[plain.name] = figure
    yield f"| | {' | '.join(agent.name for agent in agents)} | asked |"
    yield "|---" * (len(agents) + 2) + "|"
    for label in sorted((label for label in rows if not any(part in label for part in _NOT_SHOWN)), key=_place):
        figures = rows[label]
        cells = [_cell(figures.get(agent.name)) for agent in agents]
        yield f"| {label} | {' | '.join(cells)} | {_asked(figures)} |"


def _asked(figures: Mapping[str, Figure]) -> str:
    """The target of a row, and of which agents it is where it is not of all of them."""
    asked: dict[str, list[str]] = {}
    for agent, figure in figures.items():
        if figure.target:
            asked.setdefault(figure.target_text(), []).append(agent)
    return ", ".join(
        text if len(agents) == len(figures) else f"{text} ({', '.join(agents)})" for text, agents in asked.items()
    )


def _place(label: str) -> tuple[int, bool, str]:
    """Unchanged agents first, in the order in which they are found; then single tasks, by fall and rate; then all."""
    if label.startswith("a task"):
        return 2, label.endswith("half"), label
    return (3 if label.startswith(_SUITE) else int(label.endswith(_WITH_RUN_EFFECTS))), False, ""


def _cell(figure: Figure | None) -> str:
    return "" if figure is None else figure.text(figure.simulated)


def _of_bounds(blocks: Mapping[str, Sequence[Figure]]) -> Iterator[str]:
    """A row for each fall of a task, two columns for each number of tasks."""
    found = {title: {one.label: one for one in figures} for title, figures in blocks.items() if title[:2] == "b:"}
    heads = [title.partition("one of ")[2].partition(",")[0] for title in found]
    yield f"| a task falls | {' | '.join(f'{head}: caught | any test' for head in heads)} |"
    yield "|---" * (1 + 2 * len(heads)) + "|"
    falls = [label.partition(":")[0] for figures in found.values() for label in figures if label.endswith(": bound")]
    for fall in dict.fromkeys(fall for fall in falls if fall not in _NOT_SHOWN):
        cells = [_cell(figures[f"{fall}: {text}"]) for figures in found.values() for text in ("caught", "bound")]
        yield f"| {fall} | {' | '.join(cells)} |"
