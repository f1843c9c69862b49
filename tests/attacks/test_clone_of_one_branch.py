"""Tries: the job has fetched the change alone, and not the branch that it goes into.

Must come: INCONCLUSIVE in CI before anything runs, with what to fetch.
"""

from tests.attacks.conftest import Attacked, Clone


def test_clone_of_one_branch(attacked: Attacked) -> None:
    attacked.task("a", 'matches: "."')
    attacked.commit("Loosen")
    folder = attacked.path.parent / "clone"
    attacked.git("clone", "--quiet", *["--single-branch"], "--branch", "change", attacked.path.as_uri(), str(folder))
    clone = Clone(folder)
    outcome = clone.gate(CI="true", GITHUB_BASE_REF="main")
    assert outcome.code == 3, outcome.printed
    assert outcome.verdict == {}, "nothing was run"
    assert "the branch 'main', the target of this change, is missing here" in outcome.printed
