"""Tries: the change makes its task files links to devices that never end.

Must come: exit code 2 or FAIL, and nobody reads on for ever.
"""

import pytest

from tests.attacks.conftest import Attacked


@pytest.mark.parametrize("target", ["/dev/zero", "/proc/kmsg"])
@pytest.mark.parametrize("name", ["gates.yaml", "suites/golden/b.yaml", "prices.yaml", "quarantine.yaml"])
def test_files_that_never_end(attacked: Attacked, name: str, target: str) -> None:
    file = attacked.path / name
    file.unlink(missing_ok=True)
    file.symlink_to(target)
    attacked.commit("Link")
    outcome = attacked.gate()
    assert outcome.code in {1, 2}, outcome.printed
