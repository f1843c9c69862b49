"""Attacks of a change that edits what judges it."""

import os
from datetime import UTC, datetime, timedelta

import pytest

from passgate.tasks.commands.sign_off import sign_off
from passgate.tasks.model.verdict import Decision
from tests.attacks.conftest import (
    ANOTHER_SUITE,
    BLOCKS_NOTHING,
    GATES,
    INSTALLED,
    LAX,
    TESTED,
    WORKS,
    A,
    Attacked,
    Files,
    task,
)

SOON = (datetime.now(UTC) + timedelta(days=5)).date()
TESTS = "suites/_shared/tests/a"
EDITS: dict[str, tuple[Files, list[str]]] = {
    "agent_that_is_code_in_the_gate": (
        {
            "taking.py": "open('loaded', 'w')\n\ndef answer(attempt):\n    return 'done'\n",
            "agents.yaml": "agents: {desk: {agent: 'python:taking:answer'}}\n",
        },
        ["agents.yaml"],
    ),
    "attributes_that_rewrite_files": ({".gitattributes": "suites/** text eol=crlf ident\n"}, [".gitattributes"]),
    "attributes_with_another_encoding": (
        {
            ".gitattributes": ("suites/** export-ignore export-subst working-tree-encoding=ISO-8859-1 -diff binary\n"),
            **LAX,
        },
        [".gitattributes", A],
    ),
    "baseline_branch_of_the_change": (
        {"gates.yaml": GATES.replace("{young", "{branch: change, young"), **LAX},
        ["gates.yaml", A],
    ),
    "deleted_task": (
        {A: None, "suites/golden/easy.yaml": task("easy", "exists: false")},
        [A, "suites/golden/easy.yaml"],
    ),
    "integrity_switched_off": ({"gates.yaml": GATES + "    integrity: off\n", **LAX}, ["gates.yaml", A]),
    "policy_that_blocks_nothing": ({"gates.yaml": BLOCKS_NOTHING + "history: .passgate/elsewhere\n"}, ["gates.yaml"]),
    "policy_with_another_metric": (
        {
            "agent.sh": '[ "$(od -An -N1 -tu1 /dev/urandom)" -gt 255 ] && printf ok > a.txt; exit 0\n',
            "gates.yaml": GATES.replace("k: 1, metric: pass^k", "k: 9, metric: pass@k"),
        },
        ["gates.yaml"],
    ),
    "policy_without_the_suite": (
        {
            "gates.yaml": GATES.replace("[golden]", "[adversarial]").replace("gates:", ANOTHER_SUITE),
            "suites/adversarial/easy.yaml": task("easy", "exists: false").replace("golden", "adversarial"),
        },
        ["gates.yaml", "suites/adversarial/easy.yaml"],
    ),
    "quarantined_by_the_change": (
        {
            "quarantine.yaml": "version: 1\ntasks: [{task: golden/a, owner: me, reason: It is flaky., "
            f"issue: https://desk.example/1, expires: {SOON}}}]\n"
        },
        ["quarantine.yaml"],
    ),
    "renamed_task": ({A: None, "suites/golden/z.yaml": task("z", "exists: false")}, [A, "suites/golden/z.yaml"]),
    "spellings_of_other_letter_case": ({"GATES.YAML": BLOCKS_NOTHING, "Suites/golden/a.yaml": LAX[A]}, []),
    "variables_in_a_file": (
        {
            ".env": ("CI=\nPASSGATE_JUDGE_MODEL=x\nGITHUB_BASE_REF=change\nPYTHONPATH=.\nLD_PRELOAD=./x.so\nPATH=.\n"),
            **LAX,
        },
        [A],
    ),
}


@pytest.mark.parametrize(("files", "edits"), EDITS.values(), ids=EDITS)
def test_an_edit_of_what_judges_is_named(attacked: Attacked, files: Files, edits: list[str]) -> None:
    attacked.change(files)
    assert attacked.gate(1).edits == edits
    assert not [name for name in ("loaded", ".passgate/elsewhere") if (attacked.path / name).exists()]


def test_loosened_grader(attacked: Attacked) -> None:
    attacked.change(LAX)
    outcome = attacked.gate(1)
    assert outcome.edits == [A]
    assert outcome.verdict["integrity"]["change"]["decision"] == "PASS"


def test_uncommitted_grader(attacked: Attacked) -> None:
    attacked.put(LAX)
    assert attacked.gate(1).edits == [A]


OF_TESTS: dict[str, tuple[Files, list[str]]] = {
    "helper_of_a_hidden_test": (
        {
            f"{TESTS}/conftest.py": (
                "from pathlib import Path\n\ndef pytest_configure():\n    Path('a.txt').write_text('ok')\n"
            )
        },
        [f"{TESTS}/conftest.py"],
    ),
    "hidden_test_that_tests_nothing": (
        {f"{TESTS}/test_a.py": "def test_nothing():\n    pass\n"},
        [f"{TESTS}/test_a.py"],
    ),
    "plugins_beside_the_gate": (
        {
            "conftest.py": "import os\nos._exit(0)\n",
            "pytest.ini": "[pytest]\naddopts = --collect-only\n",
            "mine.egg-info/entry_points.txt": "[pytest11]\nmine = conftest\n",
        },
        [],
    ),
}


@pytest.mark.parametrize(("files", "edits"), OF_TESTS.values(), ids=OF_TESTS)
def test_hidden_tests(attacked: Attacked, files: Files, edits: list[str]) -> None:
    attacked.on_main(TESTED)
    attacked.change(files)
    assert attacked.gate(1).edits == edits


PATCH = "import pathlib\npathlib.Path.read_text = lambda *a, **k: 'ok'\n"


def test_ignored_file_that_is_committed(attacked: Attacked) -> None:
    attacked.on_main(TESTED)
    attacked.put({".gitignore": "conftest.py\n", f"{TESTS}/conftest.py": PATCH})
    attacked.git("add", "--force", f"{TESTS}/conftest.py")
    attacked.commit("Hide")
    assert f"{TESTS}/conftest.py" in attacked.gate(1).edits


def test_ignored_file_that_is_not_committed(attacked: Attacked) -> None:
    attacked.on_main(TESTED)
    attacked.change({".gitignore": "conftest.py\n"})
    attacked.put({f"{TESTS}/conftest.py": PATCH})
    attacked.gate(1)


def test_sandbox_that_does_the_work(attacked: Attacked) -> None:
    box = "suites/_shared/sandboxes/box/files"
    attacked.on_main({f"{box}/notes.txt": "nothing here\n", A: task("a") + "environment: {sandbox: box}\n"})
    attacked.change({f"{box}/a.txt": "ok", "agent.sh": "true\n"})
    assert attacked.gate(1).edits == [f"{box}/a.txt"]


def test_gates_file_that_is_a_link(attacked: Attacked) -> None:
    attacked.put({"gates.yaml": None, "lenient.yaml": BLOCKS_NOTHING})
    (attacked.path / "gates.yaml").symlink_to("lenient.yaml")
    attacked.commit("Link")
    assert "gates.yaml" in attacked.gate(1).edits


def test_suites_that_are_a_link(attacked: Attacked) -> None:
    attacked.git("mv", "suites", "easy")
    (attacked.path / "suites").symlink_to("easy")
    attacked.change({"easy/golden/a.yaml": LAX[A]})
    attacked.gate(1)


@pytest.mark.parametrize("target", ["/dev/zero", "/proc/kmsg"])
@pytest.mark.parametrize("name", ["gates.yaml", "suites/golden/b.yaml", "prices.yaml", "quarantine.yaml"])
def test_files_that_never_end(attacked: Attacked, name: str, target: str) -> None:
    file = attacked.path / name
    file.unlink(missing_ok=True)
    file.symlink_to(target)
    attacked.commit("Link")
    attacked.gate(1, 2)


def test_pipe_in_the_suites(attacked: Attacked) -> None:
    os.mkfifo(attacked.path / "suites/golden/b.yaml")
    attacked.gate(1, 2)


OF_THE_CI_LOG = "suites/_shared/x\n::set-output name=verdict::PASS\n.txt"
OF_THE_TERMINAL = "suites/_shared/y\x1b[2J\x1b[1;1HPASS\u202e.txt"


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({OF_THE_CI_LOG: "x\n", OF_THE_TERMINAL: "x\n"}, 1),
        ({"suites/golden/z\n::set-output::x.yaml": "task_id: [\n"}, 2),
    ],
    ids=["in the report", "in a problem"],
)
def test_file_names_that_command(attacked: Attacked, files: Files, code: int) -> None:
    attacked.change(files)
    printed = attacked.command(code, GITHUB_ACTIONS="true").printed
    assert "set-output" in printed
    assert "\x1b[2J" not in printed
    assert "\u202e" not in printed
    assert not [line for line in printed.splitlines() if line.startswith("::set-output")]


BOMB = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
BOMB += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
B = "suites/golden/b.yaml"
REFUSED: dict[str, tuple[Files, str]] = {
    "graders_that_check_nothing": ({B: task("b", graders="  - {type: output_check}")}, f"{B}:"),
    "tests_from_outside": (
        {A: task("a", graders="  - {type: deterministic_tests, tests: [../../../../etc/passwd]}")},
        f"{A}:",
    ),
    "yaml_that_grows": ({B: "\n".join(BOMB)}, B),
    "yaml_that_makes_objects": ({B: "!!python/object/apply:os.system [touch loaded]\n"}, f"{B}:1:1"),
    "yaml_with_two_keys": ({A: task("a") + "graders: []\n"}, f"{A}:"),
}


@pytest.mark.parametrize(("files", "said"), REFUSED.values(), ids=REFUSED)
def test_a_change_that_cannot_be_judged_is_refused(attacked: Attacked, files: Files, said: str) -> None:
    attacked.change(files)
    assert said in attacked.gate(2).printed


def test_no_task_at_all(attacked: Attacked) -> None:
    attacked.git("rm", "-rqf", "suites")
    attacked.commit()
    assert "suites" in attacked.gate(2).printed


def test_agent_that_is_a_recording(attacked: Attacked) -> None:
    recorded = '{"messages": [{"role": "assistant", "content": "done"}], "output": "done"}'
    attacked.change({"recorded/a.json": recorded, "agents.yaml": "agents: {desk: {agent: 'replay:recorded'}}\n"})
    outcome = attacked.gate(1)
    assert outcome.edits == ["agents.yaml", "recorded/a.json"]
    assert "kind (cli at the merge base, replay here)" in outcome.printed


def test_variables_that_load_code(attacked: Attacked) -> None:
    variables = f"variables: {{LD_PRELOAD: {attacked.path}/x.so, PYTHONPATH: {attacked.path}}}"
    agents = f"agents: {{desk: {{agent: 'cli:sh {attacked.path}/agent.sh', {variables}}}}}\n"
    attacked.change({"agent.sh": "true\n", "agents.yaml": agents})
    assert "variables LD_PRELOAD, PYTHONPATH" in attacked.gate(1).printed


def test_agent_of_another_kind_that_passes(attacked: Attacked, monkeypatch: pytest.MonkeyPatch) -> None:
    attacked.change({"agent.sh": WORKS, "agents.yaml": "agents: {desk: {agent: 'python:mine:answer'}}\n"})
    outcome = attacked.gate(3)
    assert outcome.verdict["awaiting_sign_off"] is True
    monkeypatch.chdir(attacked.path)
    signed = sign_off(outcome.verdict["run_id"], by="Ann", decision="approve", reason="The port is right.")
    assert signed.decision is Decision.PASS


def test_other_model(attacked: Attacked) -> None:
    model = f"agents: {{desk: {{agent: 'cli:sh {attacked.path}/agent.sh', model: cheaper}}}}\n"
    attacked.change({"agent.sh": WORKS, "agents.yaml": model})
    note = "the agent 'desk' is run as this change defines it: its model differs"
    assert note in attacked.gate(0).verdict["notes"]


def test_modules_beside_the_gate(attacked: Attacked) -> None:
    names = ("yaml", "typer", "json", "pydantic", "httpx", "sitecustomize", "usercustomize", "passgate/__init__")
    attacked.change({f"{name}.py": "open('loaded', 'w')\nraise SystemExit(0)\n" for name in names})
    attacked.command(1, passgate=INSTALLED)
    assert not (attacked.path / "loaded").exists()


def test_settings_of_prefect(attacked: Attacked) -> None:
    handler = 'handlers: {any: {"()": os.system, command: touch loaded}}'
    logging = f"version: 1\n{handler}\nloggers: {{prefect: {{handlers: [any]}}}}\n"
    attacked.change({".env": "PREFECT_LOGGING_SETTINGS_PATH=logging.yml\n", "logging.yml": logging})
    outcome = attacked.command(1, PASSGATE_ENGINE="prefect", PREFECT_HOME=str(attacked.path.parent / "prefect"))
    assert not (attacked.path / "loaded").exists()
    assert any("this change edits Prefect settings (.env)" in note for note in outcome.verdict["notes"])
