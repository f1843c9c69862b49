"""Tries: the change moves the submodule with the suites to a commit with a lax grader.

Must come: FAIL by the submodule's commit of the target branch.
"""

from tests.attacks.conftest import BROKEN, TASK, WORDS, Attacked
from tests.repositories import GitRepository


def test_submodule_that_moves(attacked: Attacked) -> None:
    tasks = GitRepository(attacked.path.parent / "tasks")
    tasks.write("golden/a.yaml", (attacked.path / "suites/golden/a.yaml").read_text())
    tasks.commit()
    attacked.checkout("main")
    attacked.git("rm", "-rqf", "suites")
    attacked.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tasks.path), "suites")
    attacked.land()
    attacked.branch("moves")
    inner = GitRepository(attacked.path / "suites")
    inner.write("golden/a.yaml", TASK.format(name="a", graders=WORDS.format(name="a", expect='matches: "."')))
    inner.commit("Loosen")
    attacked.agent(BROKEN)
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert outcome.edits == ["suites"]
