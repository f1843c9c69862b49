"""The page of a run in Chromium, opened from disk."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from tests.builders import a_task
from tests.unit.reports.hostile import HOSTILE
from tests.unit.reports.page.views import a_run, a_transcript, a_view, typical_view, written

from passgate.tasks.model.transcript import ToolCall

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
AXE = Path(sys.prefix) / "lib" / "node_modules" / "axe-core" / "axe.min.js"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium"),
]

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Chromium refuses its own sandbox to root.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments, timeout=120_000)
        yield started
        started.close()


@pytest.fixture(scope="module")
def typical(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a typical run, with the files beside it."""
    return written(typical_view(), tmp_path_factory.mktemp("typical"))


@pytest.fixture
def opened(browser: Browser, typical: Path) -> Iterator[Open]:
    """Open a page; at the end no script has failed, and nothing was loaded from elsewhere."""
    tabs, faults = [], []

    def open_page(file: Path = typical, anchor: str = "", **context: object) -> Page:
        tab = browser.new_context(**context).new_page()  # type: ignore[arg-type]
        tab.set_default_timeout(60_000)
        tab.on("pageerror", lambda error: faults.append(str(error)))
        tab.on("console", lambda message: faults.append(message.text))
        tab.on("dialog", lambda dialog: faults.append(f"dialog: {dialog.message}"))
        tab.on("request", lambda request: None if request.url.startswith("file:") else faults.append(request.url))
        tab.goto(f"{file.as_uri()}{anchor}")
        tabs.append(tab)
        return tab

    yield open_page
    for tab in tabs:
        tab.context.close()
    assert faults == []


def rows(tab: Page) -> list[str]:
    """The names of the tasks that the table shows, in their order."""
    return [text.strip() for text in tab.locator("#task-table tbody tr:visible th").all_inner_texts()]


def test_transcripts_are_searched(browser: Browser, tmp_path: Path, opened: Open) -> None:
    task, trials = a_run(a_task(), "ffff")
    said = [(trial, a_transcript(f"the code is {trial.trial * 111}")) for trial, _ in trials]
    tab = opened(written(a_view((task, said), a_run(a_task(task_id="b"), "f")), tmp_path))
    tab.get_by_label("Search transcripts").fill("CODE 222")
    assert tab.locator("article:visible").count() == 1
    assert "222" in tab.locator("article:visible").inner_text()
    assert tab.locator("section.task:visible").count() == 1
    assert tab.locator("#found").inner_text() == "1 trial found"
    tab.get_by_label("Search transcripts").fill("")
    assert tab.locator("section.task:visible").count() == 2


def test_tasks_are_sorted_by_a_column(opened: Open) -> None:
    tab = opened()
    worst_first = rows(tab)
    assert worst_first[0] == "adversarial/leak"
    head = tab.locator("#task-table thead th", has_text="task")
    tab.get_by_role("button", name="task", exact=True).click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert rows(tab) == sorted(worst_first)
    tab.get_by_role("button", name="task", exact=True).press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert rows(tab) == sorted(worst_first, reverse=True)
    tab.get_by_role("button", name="state", exact=True).click()
    assert rows(tab) == worst_first


def test_tasks_are_filtered_by_name_suite_and_state(opened: Open) -> None:
    tab = opened()
    tab.get_by_label("Filter").fill("GOLD fal")
    assert rows(tab) == ["golden/fallen"]
    assert tab.locator("#count").inner_text() == "1 of 4 tasks"
    tab.get_by_label("Filter").fill("")
    tab.locator("#by-state").select_option("better")
    assert rows(tab) == ["golden/say-yes"]
    tab.locator("#by-state").select_option("")
    tab.locator("#by-suite").select_option("adversarial")
    assert rows(tab) == ["adversarial/leak"]


def test_an_address_opens_its_trial_wherever_it_is(opened: Open) -> None:
    tab = opened(anchor="#golden/fallen/2")
    assert tab.locator("[id='golden/fallen/2']").is_visible(), "it lies in a list that is folded"
    assert tab.evaluate("document.activeElement.id") == "golden/fallen/2"
    assert tab.locator("[id='golden/fallen/2']").bounding_box()["y"] < 800  # type: ignore[index]
    tab.locator("#task-table tr", has_text="say-yes").get_by_role("link", name="trial 0: passed").click()
    tab.wait_for_url("**/report/trials-1.html#**")
    assert tab.locator("[id='golden/say-yes/0']").is_visible()
    tab.get_by_role("link", name="golden/say-yes", exact=True).click()
    tab.wait_for_url("**/report.html#golden/say-yes")


def test_the_keyboard_reaches_the_content_and_opens_what_is_folded(opened: Open) -> None:
    tab = opened()
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "main"
    tab.locator(".prompt summary").first.press("Enter")
    assert tab.locator(".prompt pre").first.is_visible()


def test_without_its_script_the_page_still_shows_everything(opened: Open) -> None:
    tab = opened(java_script_enabled=False)
    assert len(rows(tab)) == 4
    assert not tab.get_by_label("Filter").is_visible()
    tab.locator("[id='golden/fallen'] details.more > summary").click()
    assert tab.locator("[id='golden/fallen/2']").is_visible()


def test_the_theme_follows_the_system_and_can_be_chosen(opened: Open) -> None:
    tab = opened(color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    assert tab.evaluate(background) == "rgb(13, 17, 23)"
    tab.get_by_role("button", name="Theme").click()
    assert tab.evaluate(background) == "rgb(255, 255, 255)"
    tab.get_by_role("button", name="Theme: light").click()
    assert tab.evaluate(background) == "rgb(13, 17, 23)"


@pytest.mark.parametrize("width", [320, 390, 900])
def test_a_narrow_screen_is_scrolled_in_one_direction(opened: Open, width: int) -> None:
    tab = opened(viewport={"width": width, "height": 800})
    for more in tab.locator("details:not([open]) > summary").all():
        if more.is_visible():
            more.click()
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_print_leaves_out_what_only_a_screen_needs(opened: Open) -> None:
    tab = opened()
    tab.emulate_media(media="print")
    assert not tab.get_by_label("Filter").is_visible()
    assert not tab.locator("nav").is_visible()
    assert tab.locator("#reasons").is_visible()


def test_print_keeps_the_names_of_the_columns_and_the_width_of_the_paper(opened: Open) -> None:
    tab = opened(viewport={"width": 720, "height": 1000})  # A4 within the margins
    tab.emulate_media(media="print")
    heads = tab.locator("#task-table thead th").all_inner_texts()
    assert heads == ["state", "task", "trials", "value", "earlier runs", "baseline", "cost", "time"]
    assert tab.evaluate("document.documentElement.scrollWidth") <= 720
    sizes = "[...document.querySelectorAll('p,pre,code,td')].map(each => parseFloat(getComputedStyle(each).fontSize))"
    assert max(tab.evaluate(sizes)) <= 11


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: make install-axe")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_barrier(opened: Open, typical: Path, scheme: str) -> None:
    for file in (typical, typical.parent / "report" / "trials-1.html"):
        tab = opened(file, color_scheme=scheme)
        tab.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        tab.evaluate(AXE.read_text(encoding="utf-8"))
        found = tab.evaluate("axe.run()")
        assert [(one["id"], [node["target"] for node in one["nodes"]][:3]) for one in found["violations"]] == []
        assert len(found["passes"]) > 10


def test_hostile_text_does_nothing(opened: Open, tmp_path: Path) -> None:
    attack = f"{HOSTILE}<img src=x onerror=alert(1)></script></style></pre><script>alert(2)</script>{{{{ 7 * 7 }}}}"
    invalid = b"\xff\xfe invalid \xc3\x28".decode("utf-8", "surrogateescape")
    calls = ToolCall(tool=attack, arguments={attack: attack}, result=[attack, invalid, "y" * 10_000_000])
    task = a_task(task_id="<b>'\"&", description=attack, expected_output=attack, inputs={"prompt": attack}, k=1)
    _, ((trial, _),) = a_run(task, "f", reason=attack)
    transcript = a_transcript(f"{attack}{invalid}{'x' * 10_000_000}", calls)
    tab = opened(written(a_view((task, [(trial, transcript)])), tmp_path))
    tab.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    text = tab.locator("main").inner_text()
    assert "<script>alert(2)</script>" in text
    assert "{{ 7 * 7 }}" in text
    assert "\\udcff\\udcfe invalid" in text
    assert tab.evaluate("document.scripts.length") == 1
    assert tab.evaluate("document.images.length") == 0
    assert tab.evaluate("document.documentElement.scrollWidth") <= 1280
    tab.get_by_role("link", name="<b>'\"&").first.click()
    assert tab.locator("section.task:target").is_visible()
