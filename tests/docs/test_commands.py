"""Commands, targets of make, exit codes and Prefect: as the pages say."""

import re

import yaml

from passgate.tasks.errors import ExitCode
from tests.docs.commands import COMMANDS, GROUPS, command_of
from tests.docs.pages import PAGES, section, terms
from tests.project import REPOSITORY

INTERNAL_VARIABLES = {"PASSGATE_PROCESS", "PASSGATE_COMPLETE"}
OF_ALL = {"--json", "--quiet"}
"""The options that every command has."""


def test_the_usage_of_every_command() -> None:
    lines = re.findall(r"^- `passgate ([^`]+)` \S", section("docs/commands.md", "Commands"), re.MULTILINE)
    usages = {command_of(line.split())[0]: line for line in lines}
    assert set(usages) == set(COMMANDS)
    for name, command in COMMANDS.items():
        given = {
            flag
            for parameter in command.params
            for flag in (*parameter.opts, *parameter.secondary_opts)
            if flag.startswith("--")
        }
        assert given >= OF_ALL, name
        assert set(re.findall(r"--[a-z-]+", usages[name])) == given - OF_ALL - {"--help"}, name


def test_every_command_in_the_text_is_one() -> None:
    for page, text in PAGES.items():
        for words in re.findall(r"`passgate ([a-z][a-z-]*(?: [a-z-]+)*)", text):
            name, _ = command_of(words.split())
            assert name in {*COMMANDS, *GROUPS}, f"{page}: passgate {name}"


def test_every_option_in_the_text_is_one() -> None:
    options = {
        flag
        for command in COMMANDS.values()
        for parameter in command.params
        for flag in (*parameter.opts, *parameter.secondary_opts)
    }
    of_others = {"docs/compatibility.md", "docs/prefect.md"}
    for page in (page for page in PAGES if page.startswith("docs/") and page not in of_others):
        for flag in re.findall(r"`(--[a-z-]+)", PAGES[page]):
            assert flag in options, f"{page}: {flag}"


def test_make_targets_are_documented_and_there() -> None:
    targets = set(re.findall(r"^\.PHONY: (.*)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)[0].split())
    assert {cell.removeprefix("make ") for cell in terms(section("CONTRIBUTING.md", "Set-up"))} == targets
    for page, text in PAGES.items():
        assert set(re.findall(r"`make ([a-z-]+)`", text)) <= targets, page
    assert {"make gate", "make test"} == set(terms(section("README.md", "Two commands")))


def test_exit_codes() -> None:
    rows = re.findall(r"^\| (\d+) \| (\w+) \|", section("README.md", "What the verdict means"), re.MULTILINE)
    assert {(int(code), name) for code, name in rows} == {(code.value, code.name) for code in ExitCode}


def test_prefect_states_and_deployments() -> None:
    source = (REPOSITORY / "flows" / "states.py").read_text()
    states = set(re.findall(r'(?:Completed|Failed|Crashed)\(name="(\w+)"', source))
    assert set(terms(section("docs/prefect.md", "States"))) == states | {"Cancelled"}
    deployments = yaml.safe_load((REPOSITORY / "prefect.yaml").read_text())["deployments"]
    for deployment in deployments:
        gate = deployment["entrypoint"].rpartition(".")[2]
        assert f"{gate}/{deployment['name']}" in PAGES["docs/prefect.md"]


def test_environment_variables() -> None:
    sources = [file for folder in ("flows", "tasks") for file in (REPOSITORY / folder).rglob("*.py")]
    used = {name for file in sources for name in re.findall(r"PASSGATE_[A-Z_]+", file.read_text())}
    documented = set(re.findall(r"PASSGATE_[A-Z_]+", "".join(PAGES.values())))
    assert used - INTERNAL_VARIABLES <= documented
    of_tests = {"PASSGATE_UPDATE_GOLDEN"}
    of_jobs = set(re.findall(r"PASSGATE_[A-Z_]+", (REPOSITORY / "flows/cli/scaffold/gitlab.yml").read_text()))
    assert documented - of_tests <= used | of_jobs
