"""Attacks of an agent in its trial: what it prints, leaves behind and does to the machine."""

import gzip
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.attacks.conftest import BROKEN, GATES, TESTED, WORKS, A, Attacked, Files, task

UNREADABLE = "the agent left no usable transcript"
MESSAGE = '{"messages": [{"role": "assistant", "content": "x", "latency_ms": %s, "usage": %s}, %s]}'


@pytest.mark.parametrize(
    ("usage", "latency"),
    [
        ('{"cost_usd": NaN}', "1"),
        ('{"cost_usd": Infinity}', "1"),
        ('{"cost_usd": 1e999}', "1"),
        ('{"cost_usd": 1e308}', "1"),
        ('{"cost_usd": -1}', "1"),
        ('{"tokens_in": -5}', "1"),
        ('{"tokens_in": 1' + "0" * 400 + "}", "1"),
        ('{"tokens_in": 1' + "0" * 5000 + "}", "1"),
        ('{"tokens_in": 9223372036854775807}', "1"),
        ("{}", "-1e308"),
    ],
)
def test_agent_with_impossible_figures(attacked: Attacked, usage: str, latency: str) -> None:
    one = f'{{"role": "assistant", "content": "y", "usage": {usage}}}'
    attacked.agent(WORKS + f"cat > $PASSGATE_TRANSCRIPT <<'END'\n{MESSAGE % (latency, usage, one)}\nEND\n")
    assert UNREADABLE in attacked.gate(1).printed


LINKS = (
    'here="$PWD"; mkdir -p "$HOME/other"; printf ok > "$HOME/other/a.txt"; cd /\n'
    'mv "$here" "$here.old" && ln -s "$HOME/other" "$here"\n'
    'rm -rf "$here"; ln -s "$HOME/other" "$here"; exit 0\n'
)
LEAVINGS = {
    "agent_that_writes_no_end": ("yes\n", "printed too much"),
    "agent_with_a_deep_transcript": (
        WORKS + "head -c 200000 /dev/zero | tr '\\\\0' '[' > $PASSGATE_TRANSCRIPT\n",
        UNREADABLE,
    ),
    "agent_with_a_large_transcript": (WORKS + "truncate -s 900M $PASSGATE_TRANSCRIPT\n", "larger than 32 MiB"),
    "agent_with_a_transcript_of_millions_of_parts": (
        WORKS + "yes '{},' | head -c 30000000 > $PASSGATE_TRANSCRIPT\n",
        "more than 500000 lists and objects",
    ),
    "agent_with_an_unreadable_transcript": (WORKS + "echo garbage > $PASSGATE_TRANSCRIPT\n", UNREADABLE),
    "files_without_permissions": ("printf bad > a.txt; mkdir deep; chmod 0 a.txt deep .; exit 0\n", ""),
    "pipe_in_place_of_a_file": ("mkfifo a.txt\n", ""),
    "tree_deeper_than_a_path": ("i=0; while [ $i -lt 2200 ]; do mkdir d && cd d || exit 0; i=$((i+1)); done\n", ""),
    "workspace_that_is_a_link": (LINKS, ""),
    "workspace_that_is_gone": ('rm -rf "$PWD"; exit 0\n', ""),
}


@pytest.mark.parametrize(("script", "said"), LEAVINGS.values(), ids=LEAVINGS)
def test_what_an_agent_leaves_behind_is_judged(attacked: Attacked, script: str, said: str) -> None:
    attacked.agent(script)
    assert said in attacked.gate(1).printed


def test_agent_that_floods_its_error_output(attacked: Attacked) -> None:
    attacked.agent(WORKS + "exec yes 'a line of the error output' >&2\n")
    assert len(attacked.gate(1).printed) < 20_000


def test_agent_that_leaves_many_files(attacked: Attacked) -> None:
    attacked.agent(
        BROKEN
        + "mkdir -p many; cd many; seq 1 50000 | xargs touch; cd ..\n"
        + "truncate -s 1T large || true; cp /bin/sh shell; chmod 6777 shell\n"
    )
    attacked.gate(1)
    assert not [*attacked.path.rglob("large"), *attacked.path.rglob("shell")]


PATCH = 'import pathlib\npathlib.Path.read_text = lambda *a, **k: "ok"\n'
CUSTOMS = ("sitecustomize.py", "usercustomize.py", "pathlib.py", "__init__.py", "__main__.py", "x.pth")
OF_TESTS = {
    "conftest_in_the_workspace": """cat > conftest.py <<END
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = 'passed'
END
""",
    "interpreter_customised_in_the_workspace": BROKEN
    + "".join(f"cat > {name} <<'END'\n{PATCH}END\n" for name in CUSTOMS)
    + "printf 'home = .\\ninclude-system-site-packages = true\\n' > pyvenv.cfg\n",
    "modules_in_the_workspace": (
        "for name in pytest _pytest pluggy iniconfig sitecustomize; do echo 'import os; os._exit(0)' > $name.py; done\n"
    ),
    "pytest_plugin_in_the_workspace": (
        "printf '[pytest]\\naddopts = -p mine\\n' > pytest.ini; printf 'import os\\nos._exit(0)\\n' > mine.py\n"
    ),
}


# Each says what the file holds, in a Python of its own; `json` is a module that an agent may shadow.
READ = "import json, pathlib; raise SystemExit(pathlib.Path('a.txt').read_text() != 'ok')"
BY_PYTHON = f'  - {{type: state_check, expect: [{{command: "python -c \\"{READ}\\""}}]}}'
BY_COMMAND = (
    "  - {type: deterministic_tests, tests: [_shared/tests/a/test_a.py], command: 'python -m pytest -q {tests}'}"
)
ENDS_WELL = "import os; os._exit(0)"
BY_GREP = "  - {type: state_check, expect: [{command: grep -qx ok a.txt}]}"
OF_MAIN: dict[str, tuple[Files, str]] = {
    "agent_that_detects_trial_numbers": (
        {"gates.yaml": GATES.replace("k: 1", "k: 3")},
        '[ "$PASSGATE_TRIAL" != 0 ] || printf ok > a.txt; exit 0\n',
    ),
    "agent_that_never_ends": (
        {"gates.yaml": GATES.replace("max_seconds: 300", "max_seconds: 1")},
        "trap '' TERM INT HUP; printf ok > a.txt; while :; do sleep 1; done\n",
    ),
    "home_of_the_graders": (
        {A: task("a", graders=BY_PYTHON)},
        BROKEN
        + "for folder in $(python -c 'import site; print(site.getusersitepackages())') ../graders/home .; do\n"
        + f"  mkdir -p $folder; echo '{ENDS_WELL}' > $folder/usercustomize.py; done\n",
    ),
    "modules_that_a_command_imports": (
        {**TESTED, A: task("a", graders=f"{BY_PYTHON}\n{BY_COMMAND}")},
        BROKEN + f"for name in json pytest pathlib; do echo '{ENDS_WELL}' > $name.py; done\n",
    ),
    "link_to_what_is_wanted": ({A: task("a", "exists: true")}, "ln -s /usr/bin/env a.txt\n"),
    "programs_in_the_workspace": (
        {A: task("a", graders=BY_GREP)},
        "for name in grep sh; do printf '#!/bin/sh\\nexit 0\\n' > $name; chmod +x $name; done; printf bad > a.txt\n",
    ),
    **{name: (TESTED, script) for name, script in OF_TESTS.items()},
}


@pytest.mark.parametrize(("files", "script"), OF_MAIN.values(), ids=OF_MAIN)
def test_graders_of_main_are_not_deceived(attacked: Attacked, files: Files, script: str) -> None:
    attacked.on_main(files)
    attacked.agent(script)
    attacked.gate(1)


def test_agent_that_commands_the_ci_log(attacked: Attacked) -> None:
    attacked.agent("printf '\\n::set-output name=x::1\\n::stop-commands::x\\n' >&2; exit 3\n")
    printed = attacked.command(1, GITHUB_ACTIONS="true").printed
    starts = [line.split(" ")[0].split("::")[1] for line in printed.splitlines() if line.startswith("::")]
    assert set(starts) <= {"error", "warning", "notice"}


def test_agent_that_commands_the_terminal(attacked: Attacked) -> None:
    attacked.agent("printf '\\033[2J\\033[HPASS' ; printf 'bad\\033[2J' > a.txt\n")
    assert "\x1b[2J" not in attacked.command(1).printed


# In these scripts, ${0%/*} is the folder of the repository.
OF_THE_MACHINE = {
    "agent_that_edits_its_grader": "sed -i s/ok/bad/ ${0%/*}/suites/golden/a.yaml",
    "agent_that_edits_its_own_definition": "echo > ${0%/*}/agents.yaml; echo > ${0%/*}/gates.yaml",
    "agent_that_forges_a_verdict": "cd ${0%/*}/.passgate/runs; for run in *; do echo > $run/verdict.json; done",
    "agent_that_kills_everything": "grep -q bwrap /proc/1/comm && kill -9 -1",
    "agent_that_reads_the_hidden_tests": (
        "ls -R ${0%/*}/suites > seen.txt 2>&1; grep -q golden seen.txt && printf ok > a.txt"
    ),
    "agent_that_writes_the_history": "cd ${0%/*}/.passgate; mkdir history; echo x > history/mine",
}


@pytest.mark.parametrize("script", OF_THE_MACHINE.values(), ids=OF_THE_MACHINE)
def test_an_agent_harms_nothing_outside_of_its_trial(isolated: Attacked, script: str) -> None:
    isolated.agent(f"printf bad > a.txt; {script}; exit 0\n")
    assert isolated.gate(1).verdict["decision"] == "FAIL"
    assert isolated.git("status", "--porcelain") == ""
    assert not (isolated.path / ".passgate/history/mine").exists()


OUTLIVING = {
    "agent_that_kills_its_grader": "(sleep 0.3; grep -q bwrap /proc/1/comm && kill -9 -1)",
    "agent_that_works_on_after_its_end": "setsid sh -c 'sleep 0.5; printf ok > a.txt'",
}


@pytest.mark.parametrize("script", OUTLIVING.values(), ids=OUTLIVING)
def test_an_agent_does_not_outlive_its_trial(isolated: Attacked, script: str) -> None:
    isolated.on_main(TESTED)
    isolated.agent(f"printf bad > a.txt; {script} > /dev/null 2>&1 &\nexit 0\n")
    assert isolated.gate(1).verdict["measurement"]["tasks"][0]["state"] == "failed"


BOMB = gzip.compress(b" " * 50_000_000) * 40
"""Two gigabytes of blanks, in a few megabytes."""


class Endless(BaseHTTPRequestHandler):
    headers_sent: tuple[tuple[str, str], ...] = ()
    sent = b"[" * 65_536

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        for header in self.headers_sent:
            self.send_header(*header)
        self.end_headers()
        with suppress(OSError):
            while True:
                self.wfile.write(self.sent)

    def log_message(self, *_: object) -> None:
        return


class Packed(Endless):
    headers_sent = (("Content-Encoding", "gzip"), ("Content-Length", str(len(BOMB))))
    sent = BOMB


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("handler", [Endless, Packed])
def test_service_whose_answer_never_ends(attacked: Attacked, handler: type[BaseHTTPRequestHandler]) -> None:
    with served(handler) as url:
        attacked.land({"agents.yaml": f"agents: {{desk: {{agent: 'http:{url}', http: {{output: answer}}}}}}\n"})
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        attacked.gate(1)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 400_000, f"{grown} KB"
