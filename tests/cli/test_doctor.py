"""`passgate doctor`: a line for everything that was looked at, and exit code 2 when something would not work."""

from tests.answering import answering
from tests.cli.commands import Here, exits, told
from tests.project import REPOSITORY

GATES = (REPOSITORY / "gates.yaml").read_text()


def test_a_repository_in_which_all_is_well(here: Here) -> None:
    here.write("gates.yaml", GATES)
    with answering(200) as server:
        upstreams = f"{{openai: {{base_url: '{server.url}/v1'}}}}"
        here.write("agents.yaml", f"agents: {{mine: {{agent: 'openai:gpt-5-mini', upstreams: {upstreams}}}}}\n")
        lines = told(here, "doctor").splitlines()
    assert "agent mine" in lines
    assert "✓ ok      price: gpt-5-mini costs $0.25 in and $2 out per million tokens" in lines
    assert any(line.startswith(f"✓ ok      endpoint openai: {server.url}/v1/models answers 200") for line in lines)
    assert lines[-1].endswith(", 0 failed")


def test_what_would_not_work_is_exit_2(here: Here) -> None:
    here.write("gates.yaml", GATES)
    result = exits(here, 2, "doctor", "cli:no-such-program-here", "nop")
    assert result.stderr == ""
    assert "✗ failed  cli: the agent command 'no-such-program-here' is not on this machine" in result.stdout
    assert "✓ ok      nop: nop needs nothing" in result.stdout
    assert result.stdout.rstrip().endswith(", 1 failed")


def test_a_folder_without_anything_is_told_how_to_begin(here: Here) -> None:
    said = told(here, "doctor")
    assert "→ make one with `passgate init`" in said
    assert "→ name agents in agents.yaml" in said


def test_files_elsewhere(here: Here) -> None:
    here.write("policies/gates.yaml", GATES)
    here.write("policies/agents.yaml", "agents: {mine: {agent: 'cli:sh'}}\n")
    here.write("evals/.agentv/targets.yaml", "targets: [{name: theirs, provider: cli, command: sh}]\n")
    said = told(here, "doctor", "--gates", "policies/gates.yaml", "--suites", "evals")
    assert "agent mine" in said
    assert "agent theirs" in said


def test_a_try_of_an_agent_that_the_meter_does_not_see_is_a_warning(here: Here) -> None:
    here.write("gates.yaml", GATES)
    task = "task_id: t\nsuite: golden\ndescription: d\ninputs: {prompt: Say yes.}\ntracked_metrics: [cost]\n"
    here.write("suites/golden/t.yaml", f"{task}graders: [{{type: output_check, contains: ['yes']}}]\n")
    for command in (("doctor", "cli:echo yes", "--try"), ("try", "golden/t", "--agent", "cli:echo yes")):
        said = " ".join(told(here, *command).split())
        assert "the agent called no model through the meter and reported no transcript" in said
    assert "! warning" in " ".join(told(here, "doctor", "cli:echo yes", "--try").split())
