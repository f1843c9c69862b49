"""The history as typed DataFrames."""

from pathlib import Path

import pandas as pd
import pytest
from bench.generated_history import BEGIN, write_generated

from passgate import history


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("frames") / "history"
    write_generated(str(folder), 3, 1)
    return str(folder)


@pytest.mark.parametrize("what", ["summaries", "trials"])
def test_integers_stay_integers_and_the_unknown_is_na(location: str, what: str) -> None:
    frame = history.load(location, what)
    assert frame["k"].dtype == pd.Int64Dtype()
    assert frame["git_dirty"].dtype == pd.BooleanDtype()
    assert frame["cost"].dtype == pd.Float64Dtype()
    assert frame["tokens_in"].isna().all()
    assert str(frame["started_at"].dtype).endswith("UTC]")
    assert frame["tokens_in"].dtype == (pd.Int64Dtype() if what == "trials" else pd.Float64Dtype())


@pytest.mark.parametrize("what", ["summaries", "trials"])
def test_days_and_a_suite_narrow_it(location: str, tmp_path: Path, what: str) -> None:
    day = f"{BEGIN:%Y-%m-%d}"
    frame = history.load(location, what, since=day, until=day, suite="golden")
    assert (set(frame["day"]), set(frame["suite"]), frame["run_id"].nunique()) == ({day}, {"golden"}, 1)
    assert history.load(str(tmp_path / "none"), what).empty
