"""What a gate will do whose tasks have no baseline yet: the mean over baselines that are drawn."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from math import sqrt
from statistics import fmean, stdev
from typing import Final

from passgate.tasks.forecasts.assumptions import Setting
from passgate.tasks.forecasts.drawn_baselines import with_drawn_baselines
from passgate.tasks.forecasts.setting_forecast import SettingForecast, SimulatedLimits, shared
from passgate.tasks.forecasts.task_forecast import RegressionTests, TaskChances, weighted_sum
from passgate.tasks.model.forecast import Cause
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import Suite

_OF_THE_CURVE: Final = 6  # Baselines: every task has every rate of the curve with each


def foresee(setting: Setting, limits: SimulatedLimits, tests: RegressionTests) -> SettingForecast:
    """The forecast of a setting."""
    drawn = with_drawn_baselines(setting)
    return DrawnForecast(setting, limits, tests, drawn) if drawn else SettingForecast(setting, limits, tests)


class DrawnForecast(SettingForecast):
    """The mean of what is computed with each baseline. Falls of single tasks, which depend little on the baselines of
    others, are computed with every baseline that the task may have.
    """

    def __init__(
        self, setting: Setting, limits: SimulatedLimits, tests: RegressionTests, drawn: Sequence[Setting]
    ) -> None:
        super().__init__(setting, limits, tests)
        self._drawn = [SettingForecast(one, limits, tests) for one in drawn]

    @cached_property
    def red(self) -> float:
        return fmean(one.red for one in self._drawn)

    @cached_property
    def red_error(self) -> float:
        return _standard_error([one.red for one in self._drawn])

    @cached_property
    def passed(self) -> float:
        return fmean(one.passed for one in self._drawn)

    @cached_property
    def confirming(self) -> float:
        return fmean(one.confirming for one in self._drawn)

    @cached_property
    def confirming_error(self) -> float:
        return _standard_error([one.confirming for one in self._drawn])

    @cached_property
    def task_chances(self) -> list[TaskChances]:
        share = 1 / len(self._drawn)
        by_task = zip(*(one.task_chances for one in self._drawn), strict=True)
        return [weighted_sum((one, share) for one in of_task) for of_task in by_task]

    def red_if_all_keep(self, share: float) -> float:
        return fmean(one.red_if_all_keep(share) for one in self._drawn)

    def red_at(self, rate: float, able: Sequence[int]) -> float:
        return fmean(one.red_at(rate, able) for one in self._drawn[:_OF_THE_CURVE])

    def causes(self) -> list[Cause]:
        chances: dict[tuple[Rule, Suite | None, str], float] = defaultdict(float)
        for one in self._drawn:
            for cause in one.causes():
                chances[cause.rule, cause.suite, cause.task] += cause.chance / len(self._drawn)
        return shared(
            [
                Cause(rule=rule, suite=suite, task=task, chance=chance, share=0.0)
                for (rule, suite, task), chance in chances.items()
            ]
        )


def _standard_error(figures: Sequence[float]) -> float:
    """Of the mean of these figures."""
    return stdev(figures) / sqrt(len(figures))
