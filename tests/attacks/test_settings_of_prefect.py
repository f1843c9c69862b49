"""Tries: the change brings settings of Prefect that name code for the logging.

Must come: FAIL: the run does without Prefect, and the code is not loaded.
"""

from tests.attacks.conftest import Attacked


def test_settings_of_prefect(attacked: Attacked) -> None:
    attacked.write(".env", "PREFECT_LOGGING_SETTINGS_PATH=logging.yml\n")
    handler = 'handlers: {any: {"()": os.system, command: touch loaded}}'
    attacked.write("logging.yml", f"version: 1\n{handler}\nloggers: {{prefect: {{handlers: [any]}}}}\n")
    attacked.commit("Log")
    outcome = attacked.command(
        "--agent", "desk", PASSGATE_ENGINE="prefect", PREFECT_HOME=str(attacked.path.parent / "prefect")
    )
    assert outcome.code == 1, outcome.printed
    assert not (attacked.path / "loaded").exists()
    assert any("this change edits Prefect settings (.env)" in note for note in outcome.verdict["notes"])
