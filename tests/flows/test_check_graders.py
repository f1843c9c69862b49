"""Faults planted into correct graders: `passgate check-graders` finds every one of them and names the grader."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from passgate.flows.cli import main
from passgate.tasks.errors import ExitCode
from tests.grader_project import grader_project

ORDER, MAIL = "golden/close-order.yaml", "adversarial/send-mail.yaml"
EVAL, SUMMARY = "failure_replays/answers.eval.yaml", "open_ended/summary_1.yaml"

NO_TRASH = """\
  - type: state_check
    name: no trash
    expect: [{file: trsh, exists: false}]
  - type: output_check"""


class Planted(NamedTuple):
    """A fault: a text of a file that becomes another one, and what has to be said of it."""

    what: str
    file: str
    old: str
    new: str
    named: str
    """The grader's name; of a file that cannot be loaded its place in the file."""
    fault: str
    """Empty where the file is refused."""


PLANTED = [
    Planted("required text removed", ORDER, "    contains: [total 42]\n", "", "answer", "known_bad_passes"),
    Planted("required text is empty", ORDER, "[total 42]", '[""]', "graders[3].contains[0]", ""),
    Planted("required text is a blank", MAIL, "[sent]", '[" "]', "answer", "cannot_fail"),
    Planted("expression without its end", ORDER, r"7\b'", "7'", "answer", "known_bad_passes"),
    Planted("too strict an answer", ORDER, "[total 42]", "[Total 42]", "answer", "known_good_fails"),
    Planted(
        "tests that always succeed",
        ORDER,
        "{tests}/check.py",
        "{tests}/check.py || true",
        "hidden tests",
        "cannot_fail",
    ),
    Planted(
        "tests of another file",
        ORDER,
        "{tests}/check.py",
        "-c 'open(\"orders.json\")'",
        "hidden tests",
        "known_bad_passes",
    ),
    Planted("analysis that is ignored", ORDER, "[ruff]", '["ruff check . | tee findings"]', "analysis", "cannot_fail"),
    Planted(
        "analysis of another path", ORDER, "[ruff]", "[ruff]\n    paths: [total.py]", "analysis", "known_bad_passes"
    ),
    Planted("wrong path that nothing has", ORDER, "orders.lock", "order.lock", "state", "known_bad_passes"),
    Planted("inverted check", ORDER, "orders.lock, exists: false", "orders.lock", "state", "known_good_fails"),
    Planted("wrong value", ORDER, "equals: closed", "equals: done", "state", "known_good_fails"),
    Planted("check of another order", ORDER, 'path: "7"', 'path: "8"', "state", "known_bad_passes"),
    Planted("order ignored", MAIL, "in_order: true", "in_order: false", "calls", "known_bad_passes"),
    Planted(
        "forbidden list emptied", MAIL, "forbidden: [delete_customer]", "forbidden: []", "calls", "known_bad_passes"
    ),
    Planted(
        "forbidden tool misspelled", MAIL, "forbidden: [delete_", "forbidden: [remove_", "calls", "known_bad_passes"
    ),
    Planted(
        "required tool is any tool",
        MAIL,
        'tool: find_customer, params: {customer: "118"}',
        "tool: '*'",
        "calls",
        "known_bad_passes",
    ),
    Planted("no upper bound", MAIL, ", max: 1}", "}", "calls", "known_bad_passes"),
    Planted("words for calls", MAIL, "contains: [sent]", "not_contains: [delete_customer]", "answer", "refusal_fails"),
    Planted("canary misspelled", MAIL, "QUILL-7730", "QUILL-773O", "policy", "known_bad_passes"),
    Planted("every argument allowed", MAIL, "allow: [ines@example.org]", "allow: ['*']", "policy", "known_bad_passes"),
    Planted("limit that none exceeds", MAIL, "max_loop_rate: 0.3", "max_loop_rate: 1.0", "detours", "cannot_fail"),
    Planted(
        "threshold of 0", SUMMARY, "type: llm_rubric", "type: llm_rubric\n    threshold: 0", "llm_rubric", "cannot_fail"
    ),
    Planted("inverted assertion", EVAL, "type: not-contains", "type: contains", "no doubt", "known_good_fails"),
    Planted("no weight", EVAL, "value: Paris}", "value: Paris, weight: 0}", "city", "known_bad_passes"),
    Planted("expression for everything", EVAL, '"^The capital"', '"^(The capital)?"', "form", "cannot_fail"),
    Planted("calls in any number", EVAL, "mode: exact", "mode: subset", "path", "known_bad_passes"),
    Planted(
        "the best member counts",
        EVAL,
        "aggregator: {type: minimum}",
        "aggregator: {type: maximum}",
        "both",
        "known_bad_passes",
    ),
    Planted(
        "member without a weight",
        EVAL,
        "{type: minimum}",
        "{type: weighted_average, weights: {number: 0}}",
        "both",
        "known_bad_passes",
    ),
    Planted("expression for nothing", MAIL, "contains: [sent]", "matches: '^[^!]*$'", "answer", "mutant_survives"),
    Planted("check of what never was", ORDER, "  - type: output_check", NO_TRASH, "no trash", "never_failed"),
]


@pytest.fixture(autouse=True)
def no_judge_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PASSGATE_JUDGE_BASE_URL", raising=False)
    monkeypatch.delenv("PASSGATE_JUDGE_MODEL", raising=False)


@pytest.fixture
def suites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return grader_project(tmp_path)


def test_correct_graders_have_no_fault(suites: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-graders", "--json"]) == ExitCode.PASS
    checks = json.loads(capsys.readouterr().out)
    assert len(checks) == 5
    for check in checks:
        assert check["known_good"] == "passed"
        assert check["findings"] == check["unmeasured"] == []
        assert check["known_bad"]["right"] == check["known_bad"]["of"] > 1
        assert check["mutants"]["right"] == check["mutants"]["of"] > 0
        assert check["graders"]["right"] == check["graders"]["of"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.what)
def test_a_planted_fault_is_found(suites: Path, planted: Planted, capsys: pytest.CaptureFixture[str]) -> None:
    file = suites / planted.file
    text = file.read_text(encoding="utf-8")
    assert planted.old in text, "the fault is planted"
    file.write_text(text.replace(planted.old, planted.new), encoding="utf-8")
    code = main(["check-graders", "--json", str(file.relative_to(Path.cwd()))])
    said = capsys.readouterr()
    if not planted.fault:
        assert code == ExitCode.INCONCLUSIVE
        assert planted.named in said.out
        return
    assert code == ExitCode.FAIL
    findings = [finding for check in json.loads(said.out) for finding in check["findings"]]
    assert planted.fault in {finding["fault"] for finding in findings if planted.named in finding["graders"]}
    assert all(finding["remedy"] and finding["line"] > 0 for finding in findings)
    assert {finding["file"] for finding in findings} == {str(file.relative_to(Path.cwd()))}


def test_there_are_twenty_and_more_of_many_kinds() -> None:
    assert len({planted.what for planted in PLANTED}) == len(PLANTED) >= 20
    assert len({planted.fault for planted in PLANTED}) >= 5
