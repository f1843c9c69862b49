"""Tries: an earlier step leaves a `conftest.py` beside the hidden test, hidden by the change's `.gitignore`.

Must come: FAIL: tests that grade read no `conftest.py` that the task does not name.
"""

from tests.attacks.conftest import Attacked


def test_ignored_file_that_is_not_committed(attacked: Attacked) -> None:
    attacked.checkout("main")
    attacked.tested()
    attacked.land()
    attacked.branch("hidden")
    attacked.write("agent.sh", "printf bad > a.txt\n")
    attacked.write(".gitignore", "conftest.py\n")
    attacked.commit("Hide")
    attacked.write(
        "suites/_shared/tests/a/conftest.py", "import pathlib\npathlib.Path.read_text = lambda *a, **k: 'ok'\n"
    )
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
