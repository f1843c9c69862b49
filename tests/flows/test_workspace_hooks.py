"""The hooks of an eval file's workspace in a run: what they do is there for the agent, and who fails is told."""

from tests.programs import needs
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


EXTENDED = """
extensions: ["file://hooks/prepare.ts:beforeAll", "file://hooks/prepare.ts:beforeEach"]
tests:
  - id: files
    input: What is there?
    metadata: {word: zebra}
    assert: [{type: contains, value: zebra of the copy}]
"""
PREPARE = """
export function beforeAll() { return {provider_context: {word: "of the copy"}}; }
export default {
  beforeEach: async ({workspace_path, case_metadata, provider_context}) => {
    if (case_metadata.word === "") throw new Error("no service");
    await Bun.write(`${workspace_path}/word.txt`, `${case_metadata.word} ${provider_context.word}`);
  },
};
"""


@needs("bun")
def test_extensions_prepare_the_workspace_and_one_that_throws_is_no_failure_of_the_agent(bare_project: Project) -> None:
    bare_project.write("evals/hooks.eval.yaml", EXTENDED)
    bare_project.write("evals/hooks/prepare.ts", PREPARE)
    run = ("run", "ci_merge", "--suites", "evals", "--k", "1", "--engine", "none", "--agent", "cli:cat word.txt")
    done = bare_project.passgate(*run)
    assert done.returncode == 0, done.stdout + done.stderr
    bare_project.write("evals/hooks/prepare.ts", PREPARE.replace('case_metadata.word === ""', "true"))
    done = bare_project.passgate(*run)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "the extension exited 1: hooks/prepare.ts:beforeEach" in done.stdout
    assert "no service" in done.stdout
