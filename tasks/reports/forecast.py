"""What a gate will do before it is switched on, for a terminal and as SVG, and what it did in many runs beside it."""

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Final

from passgate.tasks.model.forecast import BurnIn, Cause, Effort, Forecast, TaskForecast
from passgate.tasks.reports import figures
from passgate.tasks.reports.console import NAME, render
from passgate.tasks.reports.document import (
    Commands,
    Item,
    Items,
    Remark,
    Section,
    Span,
    Table,
    Tone,
    Words,
    name,
    strong,
)
from passgate.tasks.reports.escape import printable
from passgate.tasks.reports.figures import decimal, percent

_MOST_CAUSES: Final = 5
_MOST_NAMES: Final = 3
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 680, 50, 360  # The edges of the plot
_LOWEST_RATE: Final = 0.3


def forecast_text(forecast: Forecast, *, width: int, color: bool) -> str:
    """Return false failures, what is caught, what a verdict costs, why the gate is red, and what would help."""
    tasks = figures.count(len(forecast.tasks), "task")
    red = strong(percent(forecast.red), Tone.GOOD if forecast.red <= forecast.target else Tone.BAD)
    failures = (("FAIL", red, percent(forecast.strict_red)), ("INCONCLUSIVE", percent(forecast.inconclusive), ""))
    caught = tuple(
        (
            percent(catch.pass_rate),
            name(catch.worst_task) if catch.tasks else "no task that can block passes more often",
            strong(percent(catch.mean)),
            percent(catch.worst),
            percent(catch.strict_mean),
        )
        for catch in forecast.catches
    )
    falls = tuple(
        (percent(fall.share), strong(percent(fall.red)), percent(fall.strict_red)) for fall in forecast.agent_falls
    )
    parts = [
        Section((Span(f"{forecast.gate} with {forecast.agent}: {tasks}"),), (_basis(forecast),)),
        Section(("false failures of an unchanged agent",), (Table(("", "this policy", "strict rule"), failures),)),
        Section(
            ("how often the gate catches one task that falls",),
            (
                Table(("falls to", "worst task", "caught", "worst", "strict"), caught, texts=2),
                Remark("worst: the task that is caught least often; strict: a gate in which any failed task blocks"),
            ),
        ),
        Section(
            ("how often the gate is red if the whole agent falls",),
            (Table(("each task keeps", "red", "strict"), falls),),
        ),
        Section(("what a verdict costs",), (_effort(forecast.effort),)),
        *_causes("why it is red", forecast.rules, forecast.causes),
        Section((f"the smallest change that brings FAIL to {percent(forecast.target)}",), tuple(_advice(forecast))),
        *_notes_section(list(_notes(forecast))),
    ]
    return render(*parts, width=width, color=color)


def _basis(forecast: Forecast) -> Table:
    rates = [task.pass_rate for task in forecast.tasks]
    low, high = (percent(end(rates)) if rates else figures.UNKNOWN for end in (min, max))
    trials = figures.count(sum(task.n or 0 for task in forecast.tasks), "trial")
    sources = {
        "history": f"from {trials} of the history, each drawn towards the rate of all tasks",
        "burn-in": "as measured",
        "assumed": "assumed",
        "file": "as the file says",
    }
    runs = forecast.baseline_runs
    baseline = figures.count(runs, "run") if runs else "assumed: as many runs of this agent as the policy pools"
    span = low if low == high else f"{low} to {high}"
    return Table(("", ""), (("pass rates", f"{span}, {sources[forecast.rates]}"), ("baseline", baseline)), texts=2)


def _effort(effort: Effort) -> Table:
    """Return trials, money and time of one verdict."""
    confirming = f" + {decimal(effort.confirming)} confirming" if effort.confirming else ""
    saved = f" - at most {decimal(effort.saved)} saved early" if effort.saved else ""
    trials = f"{decimal(effort.trials)} expected: {effort.planned} planned{confirming}{saved}"
    rows = ("trials", trials), ("money", figures.dollars(effort.cost)), ("time", figures.duration(effort.seconds))
    return Table(("", ""), rows, texts=2)


def _causes(title: str, rules: Sequence[Cause], causes: Sequence[Cause]) -> Iterator[Section]:
    """Yield the rules that make the gate red, and the tasks that do so most often; nothing without causes."""
    if not causes:
        return
    by_task = [
        (
            name(cause.task or (f"{cause.rule} of {cause.suite}" if cause.suite else str(cause.rule))),
            percent(cause.share),
            percent(cause.chance),
        )
        for cause in causes[:_MOST_CAUSES]
    ]
    if hidden := causes[_MOST_CAUSES:]:
        # Without the share of all runs: the chances of tasks that may be red together do not add up.
        by_task.append((Span(f"{len(hidden)} more", tone=Tone.QUIET), percent(sum(one.share for one in hidden)), ""))
    by_rule = tuple((str(cause.rule), percent(cause.share)) for cause in rules)
    yield Section((title,), (Table(("by rule", "share"), by_rule),))
    yield Section((), (Table(("by task", "share", "of all runs"), tuple(by_task)),))


def _advice(forecast: Forecast) -> Iterator[Words | Table | Commands | Remark | Items]:
    advice = forecast.advice
    if advice is None or not advice.changes:
        tone, text = Tone.GOOD, "none is needed"
        if advice is not None:
            tone, text = Tone.OPEN, "no change of the policy does that: repair the tasks above"
        yield Items((Item((text,), tone),))
        return
    if not advice.reaches_target:
        yield Items((Item(("no one or two changes do that; these come closest:",), Tone.OPEN),))
    for change in advice.changes:
        yield (f"{change.file}  ", Span(change.what))
        yield Commands(tuple(change.lines))
    # What the changes bring and what they cost, in catching and in trials.
    red = strong(percent(advice.red), Tone.GOOD if advice.reaches_target else Tone.BAD)
    rows: list[tuple[str | Span, ...]] = [("FAIL", red, percent(forecast.red))]
    for now, then in zip(forecast.catches, advice.catches, strict=True):
        rows.append((f"caught at {percent(now.pass_rate)}", percent(then.mean), percent(now.mean)))
    rows.append(("trials", decimal(advice.effort.trials), decimal(forecast.effort.trials)))
    yield Table(("", "then", "now"), tuple(rows))


def _notes(forecast: Forecast) -> Iterator[str]:
    withheld = [task for task in forecast.tasks if task.withheld > 0.5]
    if withheld:
        yield f"{_task_list(withheld)} cannot block: not admitted yet, or in quarantine"
    elif any(task.withheld > 0 for task in forecast.tasks):
        mean = fmean(task.withheld for task in forecast.tasks)
        yield f"at any time about {percent(mean)} of the tasks are not admitted and cannot block"
    unable = [task for task in forecast.tasks if not task.can_block and task not in withheld]
    if unable:
        yield f"{_task_list(unable)} cannot make the gate red, however far they fall"
    yield from forecast.notes


def _task_list(tasks: Sequence[TaskForecast]) -> str:
    """`7 tasks (golden/a, golden/b, golden/c and 4 more)`."""
    return f"{figures.count(len(tasks), 'task')} ({figures.listed([task.task for task in tasks], _MOST_NAMES)})"


def _notes_section(notes: Sequence[str]) -> tuple[Section, ...]:
    return (
        (Section((), (Items(tuple(Item((Span(note),), Tone.QUIET, mark="note") for note in notes)),)),) if notes else ()
    )


def burn_in_text(burn_in: BurnIn, *, width: int, color: bool) -> str:
    """Return measured and forecast side by side, why runs were red, and where the trials are."""
    forecast, effort = burn_in.forecast, burn_in.forecast.effort
    done = burn_in.first + burn_in.judged
    runs = figures.count(done, "run") if done == burn_in.asked else f"{done} of {burn_in.asked} runs"
    first = f"the first {burn_in.first} made the baseline, " if burn_in.first else ""
    title = f"{burn_in.gate} with {burn_in.agent}: {runs}: {first}{burn_in.judged} were judged"
    agrees = burn_in.red_interval.low <= forecast.red <= burn_in.red_interval.high
    # The forecast knows by how much whole runs differ; only that trials depend on each other otherwise can explain it.
    cause = "" if agrees else ": trials of one run may have failed together, as when a provider has a bad hour"
    agreement = f"lies {'within' if agrees else 'outside'} the 95 % interval of the measured share of FAIL{cause}"
    red = f"{percent(burn_in.red / burn_in.judged)} {figures.interval(burn_in.red_interval)}"
    rows = (
        ("FAIL", strong(red), percent(forecast.red)),
        ("INCONCLUSIVE", percent(burn_in.inconclusive / burn_in.judged), percent(forecast.inconclusive)),
        ("trials", decimal(burn_in.trials), decimal(effort.trials)),
        ("- confirming", decimal(burn_in.confirming), decimal(effort.confirming)),
        ("- saved early", decimal(burn_in.saved), decimal(effort.saved)),
        ("money", figures.dollars(burn_in.cost), figures.dollars(effort.cost)),
    )
    said = Item((f"the forecast, at the measured pass rates, {agreement}",), Tone.QUIET if agrees else Tone.OPEN)
    notes = (*([burn_in.why_ended] if burn_in.why_ended else []), *forecast.notes)
    facts = (("spent", figures.dollars(burn_in.spent)), ("trials", Span(burn_in.folder)))
    parts = [
        Section((Span(title),)),
        Section(("in the runs that were judged",), (Table(("", "measured", "forecast"), rows), Items((said,)))),
        *_causes("why they were red", burn_in.rules, burn_in.causes),
        *_notes_section(notes),
        Section((), (Table(("", ""), facts, texts=2),)),
    ]
    return render(*parts, width=width, color=color)


def forecast_plot(forecast: Forecast) -> str:
    """Return an SVG with how often the gate is red against a task's pass rate, for its policy and the strict rule."""
    from passgate.tasks.reports.page.rendering import templates

    usual = fmean(task.pass_rate for task in forecast.tasks) if forecast.tasks else 1.0
    # Where no task has fallen, every red gate is a false failure. Two marks that are closer cover each other's texts.
    marks = [("strict", forecast.strict_red)] if forecast.strict_red - forecast.red > 0.05 else []
    marks.append(("policy", forecast.red))
    points = {
        "strict": [(_x(point.pass_rate), _y(point.strict_red)) for point in forecast.curve],
        "policy": [(_x(point.pass_rate), _y(point.red)) for point in forecast.curve],
    }
    return (
        templates()
        .get_template("forecast.svg.j2")
        .render(
            title=printable(f"{forecast.gate}: how often the gate is red when one task falls", NAME),
            edges=(_LEFT, _RIGHT, _BOTTOM),
            levels=[(_y(level / 100), level) for level in (0, 25, 50, 75, 100)],
            ticks=[(_x(tenth / 10), tenth * 10) for tenth in range(3, 11)],
            curves=points,
            # No curve runs above its beginning if that is low, or below it if that is high.
            marks=[
                (rule, _x(usual), _y(red), _y(red) + (-12 if red < 0.2 else 22), percent(red)) for rule, red in marks
            ],
        )
        + "\n"
    )


def _x(rate: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * (1 - rate) / (1 - _LOWEST_RATE)


def _y(red: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * red
