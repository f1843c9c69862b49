"""Histories of many runs, without the runs."""

from bench.change_points import Planted
from bench.generated_history import write_generated

from tests.scenarios import Scenario

NIGHTS = 40


def three_nights(scenario: Scenario) -> None:
    """A history in the folder `kept`."""
    write_generated(str(scenario.path / "kept"), 3, 1)


def forty_nights(scenario: Scenario) -> None:
    """A history in the folder `kept`, in whose last 4 nights there is a regression of one task."""
    write_generated(str(scenario.path / "kept"), NIGHTS, 3, (Planted("", "passed", 12, NIGHTS - 4, 0.9),))
