"""The hooks of an eval file's workspace in a run: what they do is there for the agent, and who fails is told."""

from tests.project import Project

EVAL = """
name: hooks
workspace:
  template: ./template
  hooks:
    before_all: {command: [sh, -c, 'cat > /dev/null; echo once > "$WORKSPACE_PATH/all.txt"']}
    before_each: {command: [sh, -c, 'cat > /dev/null; echo each > "$WORKSPACE_PATH/each.txt"']}
    after_each: {command: [sh, -c, 'cat > /dev/null; echo broom is broken >&2; exit 3']}
tests:
  - id: files
    criteria: All files are there
    input: What is there?
    assertions:
      - {type: contains, value: template}
      - {type: contains, value: once}
      - {type: contains, value: each}
"""


def test_hooks_prepare_the_workspace_and_one_that_fails_afterwards_is_told(bare_project: Project) -> None:
    bare_project.write("evals/hooks.eval.yaml", EVAL)
    bare_project.write("evals/template/here.txt", "template")
    run = ("run", "ci_merge", "--suites", "evals", "--k", "1", "--engine", "none")
    done = bare_project.passgate(*run, "--agent", "cli:cat here.txt all.txt each.txt")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "broom is broken" in done.stderr
    assert "The verdict does not depend on it" in done.stderr
