"""Tries: the change adds a `conftest.py` beside the hidden test, and a `.gitignore` that hides it.

Must come: FAIL: what is committed is an edit, ignored or not.
"""

from tests.attacks.conftest import Attacked


def test_ignored_file_that_is_committed(attacked: Attacked) -> None:
    attacked.checkout("main")
    attacked.tested()
    attacked.land()
    attacked.branch("hidden")
    attacked.write("agent.sh", "printf bad > a.txt\n")
    attacked.write(".gitignore", "conftest.py\n")
    helper = attacked.write(
        "suites/_shared/tests/a/conftest.py", "import pathlib\npathlib.Path.read_text = lambda *a, **k: 'ok'\n"
    )
    attacked.git("add", "--force", str(helper))
    attacked.commit("Hide")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert "suites/_shared/tests/a/conftest.py" in outcome.edits
