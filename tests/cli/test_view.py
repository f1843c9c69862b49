"""`passgate view`: the pages of all runs, written and opened."""

import json
import os
import shutil

import pytest
from playwright.sync_api import sync_playwright

from passgate.flows.cli import results
from tests.builders import a_finished, a_plan, a_policy, a_task
from tests.cli.commands import Here, told

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
LIMIT = 300  # Seconds: a busy machine takes long
INDEX = ".passgate/pages/index.html"
RUN = "20260131T000000Z-ci_merge-ffff"


def a_started_run(here: Here) -> None:
    task = a_task()
    plan = a_plan(task, run_id=RUN, policy=a_policy(suites=["golden"]))
    here.write(f".passgate/runs/{RUN}/plan.json", plan.model_dump_json(exclude_unset=True))
    here.write(f".passgate/runs/{RUN}/journal.jsonl", f"{a_finished(task, 0).model_dump_json()}\n")


def test_the_pages_are_written_and_the_path_is_printed(here: Here) -> None:
    assert told(here, "view") == f"{INDEX}\n"
    assert "There are no runs yet" in (here.path / INDEX).read_text()
    a_started_run(here)
    page = f".passgate/runs/{RUN}/report.html"
    assert json.loads(told(here, "view", "last", "--json")) == {"page": page}
    assert f"../runs/{RUN}/report.html" in (here.path / INDEX).read_text()
    assert "1 of 3 trials were done" in (here.path / page).read_text()


@pytest.mark.parametrize(
    ("options", "on_a_screen", "opens"),
    [
        ((), True, True),
        ((), False, False),
        (("--json",), True, False),
        (("--no-open",), True, False),
        (("--open",), False, True),
    ],
)
def test_the_page_is_opened_on_a_screen_or_where_it_is_asked_for(
    here: Here, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], on_a_screen: bool, opens: bool
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(results, "is_screen", lambda: on_a_screen)
    monkeypatch.setattr(results, "open_in_browser", opened.append)
    told(here, "view", *options)
    assert opened == ([(here.path / INDEX).as_uri()] if opens else [])


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")
def test_a_browser_goes_from_the_index_to_a_run(here: Here) -> None:
    a_started_run(here)
    told(here, "view")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments, timeout=LIMIT * 1000)
        tab = browser.new_page()
        tab.set_default_timeout(LIMIT * 1000)
        tab.goto((here.path / INDEX).as_uri())
        tab.get_by_role("link", name=RUN).click()
        assert "1 of 3 trials were done" in tab.locator(".live").inner_text()
        assert "yes" in tab.locator("[id='golden/say-yes/0']").inner_text()
        browser.close()
