"""The page of a large run: how long it takes to write, how large it is, how long Chromium takes to show it.

    python -m bench.page [TASKS [K]]

By default a run of 200 tasks with 5 trials each, of which every tenth fails.
"""

import random
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from passgate.tasks.formats.loading import load_policy
from passgate.tasks.judge import judge
from passgate.tasks.measure import measure
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.json_values import json_digest
from passgate.tasks.model.policy import GatePolicy, Policy
from passgate.tasks.model.run import Plan, RunRequest
from passgate.tasks.model.task import Budgets, EvalTask, GateName, Metric, Suite
from passgate.tasks.model.transcript import ChangedFile, ChangeKind, FileChanges, Message, ToolCall, Transcript, Usage
from passgate.tasks.model.trial import Trial, TrialMetrics, TrialStatus
from passgate.tasks.model.verdict import EarlierRun, RunView
from passgate.tasks.report import TRIALS_BESIDE
from passgate.tasks.reports.page import run_pages

REPOSITORY = Path(__file__).resolve().parent.parent
STARTED = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
CHROMIUM = "/usr/bin/chromium"


def large_run(tasks: int, k: int, *, failing: float = 0.1, seed: int = 0) -> RunView:
    """A run of golden tasks whose trials have four steps and three tool calls each."""
    luck = random.Random(seed)
    planned = [_task(number, k) for number in range(tasks)]
    trials, transcripts = [], {}
    for task in planned:
        for number in range(k):
            transcript = _transcript(luck)
            digest = json_digest(transcript.model_dump(mode="json"))
            transcripts[digest] = transcript
            trials.append(_trial(task, number, digest, passed=luck.random() >= failing, luck=luck))
    plan = Plan(
        run_id="20260131T120000Z-ci_merge-0a0b",
        gate=GateName.CI_MERGE,
        request=RunRequest(agent="my-agent"),
        agent=AgentSpec(kind=AgentKind.CLI, target="my-agent"),
        created_at=STARTED,
        suites_folder="/project/suites",
        policy=_strict_policy(),
        tasks=tuple(planned),
        passgate_version="0.0.1",
    )
    before = {task.name: _before(task, luck) for task in planned}
    baseline = Baseline(branch="main", tasks=before)
    verdict = judge(plan, trials, measure(plan, trials, baseline), baseline, "")
    verdict = verdict.model_copy(update={"judged_at": STARTED + timedelta(minutes=9)})
    earlier = {
        name: tuple(EarlierRun(f"2026010{day + 1}T000000Z-nightly-0a0b", luck.randint(k - 1, k), k) for day in range(9))
        for name in (*before, "golden")
    }
    return RunView(verdict, tuple(trials), transcripts.get, before, earlier, plan)


def _strict_policy() -> Policy:
    """The shipped policy, whose merge gate takes golden tasks only, and blocks on each that has fallen."""
    shipped = load_policy(REPOSITORY / "gates.yaml")
    plain = shipped.gates[GateName.CI_MERGE].model_dump()
    gate = GatePolicy.model_validate(plain | {"suites": ["golden"], "regression": {"mode": "strict"}})
    return shipped.model_copy(update={"gates": {**shipped.gates, GateName.CI_MERGE: gate}})


def _task(number: int, k: int) -> EvalTask:
    name = f"repair-invoice-{number:04}"
    return EvalTask(
        task_id=name,
        suite=Suite.GOLDEN,
        description="The totals of the invoices are wrong. The agent finds out why and repairs them.",
        inputs={"prompt": "The totals in invoices.py are wrong. Find out why, and repair them.\nRun the tests."},
        budgets=Budgets(max_steps=20, max_tool_calls=10, max_tokens=20_000, max_cost_usd=0.1, max_seconds=60),
        k=k,
        metric=Metric.PASS_HAT_K,
        graders=[{"type": "output_check", "contains": ["42.00"]}],
        tracked_metrics=("cost",),
        gates=frozenset(GateName),
        expected_output="The total is 42.00.\nTwo lines were rounded twice.\nThe tests pass.",
        file=f"suites/golden/{name}.yaml",
        task_digest="t" * 64,
        grader_digest="g" * 64,
    )


def _transcript(luck: random.Random) -> Transcript:
    code = "\n".join(f"    total += round(line.amount * {luck.random():.4f}, 2)" for _ in range(30))
    steps = [
        Message(
            role="assistant",
            content="I look at the code first, and then at what the tests say of it.",
            tool_calls=(ToolCall(tool=tool, arguments=arguments, result=result, duration_ms=luck.uniform(5, 90)),),
            usage=Usage(tokens_in=luck.randint(600, 4000), tokens_out=luck.randint(40, 300), cost_usd=0.004),
            latency_ms=luck.uniform(400, 3000),
            model="gpt-5-mini",
        )
        for tool, arguments, result in (
            ("read_file", {"path": "invoices.py"}, code),
            ("write_file", {"path": "invoices.py", "content": code}, "written"),
            ("run_tests", {"path": "tests"}, "14 passed in 0.31s"),
        )
    ]
    answer = f"The total is {luck.choice(['42.00', '41.99', '42.01'])}.\nOne line was rounded twice.\nThe tests pass."
    ask = Message(role="user", content="The totals in invoices.py are wrong. Find out why, and repair them.")
    messages = (ask, *steps, Message(role="assistant", content=answer))
    return Transcript(messages=messages, output=answer, file_changes=_file_changes(luck))


def _file_changes(luck: random.Random) -> FileChanges:
    """A repaired file, with a diff of twenty lines."""
    kept = [f"     total += line.amount * {luck.random():.4f}" for _ in range(16)]
    line = "    total += round(line.amount, 2)"
    changed = [f"-{line}", f"-{line}", "+    total += line.amount", "+    total = round(total, 2)"]
    lines = ["--- a/invoices.py", "+++ b/invoices.py", "@@ -1,18 +1,18 @@", *kept[:8], *changed, *kept[8:]]
    repaired = ChangedFile(path="invoices.py", change=ChangeKind.MODIFIED, size=4_213, diff="\n".join(lines))
    return FileChanges(files=(repaired, ChangedFile(path="invoices.pdf", change=ChangeKind.ADDED, size=48_113)))


def _trial(task: EvalTask, number: int, digest: str, *, passed: bool, luck: random.Random) -> Trial:
    check = Check(passed=passed, message="the answer contains '42.00'" if passed else "the answer lacks '42.00'")
    return Trial(
        suite=task.suite,
        task_id=task.task_id,
        trial=number,
        k=task.k,
        metric=task.metric,
        status=TrialStatus.PASSED if passed else TrialStatus.FAILED,
        reason="" if passed else "output_check: the answer lacks '42.00'",
        grades=(Grade(name="answer", type="output_check", score=float(passed), passed=passed, checks=(check,)),),
        metrics=TrialMetrics(
            steps=4,
            tool_call_count=3,
            total_tokens=luck.randint(4000, 9000),
            wall_time_seconds=luck.lognormvariate(2, 0.5),
            cost=luck.lognormvariate(-4, 0.4),
        ),
        model="gpt-5-mini",
        isolation="bubblewrap",
        started_at=STARTED,
        task_digest=task.task_digest,
        grader_digest=task.grader_digest,
        transcript_digest=digest,
        file=task.file,
        line=1,
    )


def _before(task: EvalTask, luck: random.Random) -> BaselineTask:
    times = {"20260130T000000Z-nightly-0a0b": tuple(luck.lognormvariate(1.9, 0.5) for _ in range(task.k))}
    costs = {"20260130T000000Z-nightly-0a0b": tuple(luck.lognormvariate(-4.1, 0.4) for _ in range(task.k))}
    return BaselineTask(
        state=BaselineState.GREEN,
        runs=("20260130T000000Z-nightly-0a0b",),
        runs_green=1,
        green_in_a_row=1,
        passed=task.k,
        n=task.k,
        newest=(True,) * task.k,
        wall_times=times,
        costs=costs,
    )


def write(view: RunView, folder: Path, most: int | None) -> tuple[float, int, int]:
    """Write the pages; seconds of CPU, bytes of the page, bytes of the files beside it."""
    began = time.process_time()
    (folder / "report").mkdir(exist_ok=True)
    sizes = [(folder / name).write_text(html, encoding="utf-8") for name, html in run_pages(view, most)]
    return time.process_time() - began, sizes[-1], sum(sizes[:-1])


def load(file: Path) -> float:
    """Milliseconds that Chromium takes until the page is loaded, the median of five."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        times = []
        for _ in range(5):
            tab = browser.new_page()
            tab.goto(file.as_uri())
            times.append(tab.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd"))
            tab.close()
        browser.close()
    return float(sorted(times)[2])


def main() -> None:
    tasks, k = (int(word) for word in (*sys.argv[1:], "200", "5")[:2]) if len(sys.argv) != 2 else (int(sys.argv[1]), 5)
    view = large_run(tasks, k)
    folder = Path(tempfile.mkdtemp(prefix="passgate-page-"))
    for what, most in (("as a run writes it", TRIALS_BESIDE), ("as `passgate report` writes it", None)):
        seconds, size, beside = write(view, folder, most)
        print(f"{what}: {seconds:.2f} s of CPU, page {size / 1e6:.2f} MB, files beside it {beside / 1e6:.2f} MB")
    print(f"loaded by Chromium in {load(folder / 'report.html'):.0f} ms: {folder}")


if __name__ == "__main__":
    main()
