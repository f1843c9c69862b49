"""The simulations of `python -m bench.gate_trust`, on a few gates: they run, and tell what is not as it should be."""

import json
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from bench.gate_trust import __main__ as gate_trust

Done = subprocess.CompletedProcess[str]
Run = Callable[..., Done]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run simulations in this process."""
    monkeypatch.setattr(gate_trust, "ProcessPoolExecutor", ThreadPoolExecutor)

    def _run(*arguments: str) -> Done:
        try:
            code = gate_trust.main(["--processes", "1", *arguments])
        except SystemExit as refused:
            code = int(str(refused.code))
        return subprocess.CompletedProcess(arguments, code, *capsys.readouterr())

    return _run


@pytest.fixture
def of_rates(tmp_path: Path, run: Run) -> Run:
    """Run simulations of tasks with these pass rates, or of a file of this text."""

    def _of_rates(rates: object, *arguments: str) -> Done:
        file = tmp_path / "rates.json"
        file.write_text(rates if isinstance(rates, str) else json.dumps(rates), encoding="utf-8")
        return run("--rates", str(file), *arguments)

    return _of_rates


def test_early_stop_and_intervals_are_as_they_should_be(run: Run) -> None:
    done = run("--gates", "20", "--sections", "ge")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line[:2] for line in done.stdout.splitlines() if line[1:2] == ":"] == [
        *["e:"] * 8, *["g:"] * 2
    ]  # fmt: skip
    assert done.stdout.count("the same decision in 20 of 20 gates") == 8
    assert done.stdout.rstrip().endswith("all targets are met")


@pytest.mark.slow
def test_limits_are_judged_as_the_gate_judges_them(run: Run) -> None:
    done = run("--gates", "10", "--sections", "d")
    # So few gates may miss a share of one in a hundred.
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    assert done.stdout.count("\nd:") == 12
    assert done.stdout.count("decided by the gate's own code: 10 of 10 gates the same") == 10


@pytest.mark.slow
def test_given_tasks_are_simulated_as_the_gate_decides_them(of_rates: Run) -> None:
    rates = {"refund": 0.99, "greet": 0.95, "flaky": 0.6}
    done = of_rates(rates, "--gates", "40", "--k", "2")
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    assert "a: rates of a file, 3 tasks x 2\n" in done.stdout
    assert "a: rates of a file, 3 tasks x 2, run effects of sd 0.05" in done.stdout
    assert "a task from 0.8 to 1 falls to 0" in done.stdout
    assert done.stdout.count("decided by the gate's own code from trials and history: 8 of 8 gates the same") == 2
    assert "e: AND rule, 3 tasks x 2" in done.stdout


def test_the_same_seed_draws_the_same_gates(of_rates: Run) -> None:
    one, same, other = (
        of_rates([0.9, 0.5], "--gates", "60", "--sections", "e", "--seed", seed) for seed in ("1", "1", "2")
    )
    assert one.stdout == same.stdout
    assert one.stdout.splitlines()[2:] != other.stdout.splitlines()[2:]


@pytest.mark.slow
def test_a_target_that_is_missed_is_an_exit_code(of_rates: Run) -> None:
    """A baseline of so few trials does not show that a task has fallen to half."""
    done = of_rates([0.85] * 3, "--gates", "40", "--k", "1", "--sections", "a")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "MISSED a: rates of a file, 3 tasks x 1: a task from 0.8 to 1 falls to half" in done.stdout


@pytest.mark.slow
def test_results_and_tables_are_written(tmp_path: Path, run: Run) -> None:
    page, results = tmp_path / "page.md", tmp_path / "results.json"
    page.write_text("before\n<!-- gate-trust: begin -->\nold\n<!-- gate-trust: end -->\nafter\n", encoding="utf-8")
    done = run("--sections", "b", "--out", str(results), "--page", str(page))
    assert done.returncode == 0, done.stdout + done.stderr
    written = page.read_text(encoding="utf-8")
    assert written.startswith("before\n")
    assert written.endswith("\nafter\n")
    assert "old" not in written
    assert "| from 0.2 to 0 | 100.0 % | 100.0 % | 100.0 % | 100.0 % |" in written
    # No test finds more than the most powerful one.
    figures = {
        one["label"]: one["exact"] for block in json.loads(results.read_text())["blocks"] for one in block["figures"]
    }
    assert figures["from 0.7 to half: caught"] < figures["from 0.7 to half: bound"] < 0.81
    page.write_text("no marks", encoding="utf-8")
    with pytest.raises(SystemExit, match="lacks <!-- gate-trust: begin -->"):
        gate_trust.main(["--from", str(results), "--page", str(page)])


def test_every_rate_that_cannot_be_is_named_with_its_place(tmp_path: Path, of_rates: Run) -> None:
    done = of_rates('{"a": 0.9,\n "b": 1.5,\n "c": 0,\n "d": true,\n "e": "0.9"}')
    assert done.returncode == 2
    places = [line.removeprefix(str(tmp_path)) for line in done.stderr.splitlines()]
    assert places == [
        "/rates.json:2:7: b: expected a pass rate above 0 and at most 1, not 1.5",
        "/rates.json:3:7: c: expected a pass rate above 0 and at most 1, not 0",
        "/rates.json:4:7: d: expected a pass rate above 0 and at most 1, not True",
        "/rates.json:5:7: e: expected a pass rate above 0 and at most 1, not '0.9'",
    ]
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "1:1: expected a list of pass rates"),
        ("0.9", "1:1: expected a list of pass rates"),
        ("[0.9", "not valid YAML"),
        (json.dumps([0.9] * 501), "501 tasks are more than 500"),
    ],
)
def test_a_file_without_rates_is_refused(of_rates: Run, content: str, message: str) -> None:
    done = of_rates(content)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize("arguments", [("--k", "0"), ("--gates", "1"), ("--sections", "ax"), ("--rates", "no.json")])
def test_bad_usage_is_told(run: Run, arguments: tuple[str, str]) -> None:
    assert run(*arguments).returncode == 2
