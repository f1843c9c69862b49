"""The page of a run as HTML; `test_browser.py` opens it in a browser."""

import base64
import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import pytest
from tests.builders import a_grade, a_task
from tests.unit.reports.hostile import HOSTILE
from tests.unit.reports.page.views import a_run, a_transcript, a_view, typical_view
from tests.unit.reports.verdicts import VERDICTS

from passgate.tasks.model.transcript import ToolCall
from passgate.tasks.model.verdict import Decision, RunView
from passgate.tasks.reports.page import run_pages

_NEVER_CLOSED = {"meta", "input", "br", "link"}


class _Elements(HTMLParser):
    """What is in a page; an element that is closed in the wrong place is a fault."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.names: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.inline: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.names.append(tag)
        self.ids += [given["id"] or ""] if "id" in given else []
        self.links += [value or "" for name, value in attributes if name in {"href", "src"}]
        self.inline += [name for name in given if name == "style" or name.startswith("on")]
        if tag not in _NEVER_CLOSED:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in _NEVER_CLOSED:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def rendered(view: RunView, most: int | None = None) -> tuple[str, dict[str, str]]:
    """The page and the files beside it."""
    files = dict(run_pages(view, most))
    return files.pop("report.html"), files


def text_of(html: str) -> str:
    """What of a page is neither a tag nor its style and script."""
    return unescape(re.sub(r"<[^>]+>", " ", re.sub(r"<(style|script)>.*?</\1>", "", html, flags=re.DOTALL)))


def test_the_page_of_a_failed_run(matches_golden: Callable[[str, str], None]) -> None:
    html, _ = rendered(typical_view())
    without = re.sub(r"<(style|script)>.*?</\1>", r"<\1></\1>", html, flags=re.DOTALL)
    matches_golden(re.sub(r"sha256-[\w+/=]+", "sha256-", without), "page_failing.html")


def test_the_page_and_the_files_beside_it_are_well_formed_and_need_nothing_from_elsewhere() -> None:
    view = typical_view()
    html, files = rendered(view)
    assert set(files) == {"report/trials-1.html"}
    for text in (html, *files.values()):
        found = _Elements(text)
        assert len(found.ids) == len(set(found.ids))
        assert found.inline == []
        assert not {"iframe", "object", "img", "link", "base", "form"} & set(found.names)
        assert all(re.match(r"#|report/trials-1\.html#|\.\./report\.html", link) for link in found.links), found.links
    places = {"": set(_Elements(html).ids), "report/trials-1.html": set(_Elements(files["report/trials-1.html"]).ids)}
    for link in _Elements(html).links:
        file, _, anchor = link.partition("#")
        assert anchor in places[file], link


def test_only_its_own_style_and_script_have_any_effect() -> None:
    html, _ = rendered(typical_view())
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy is not None
    for kind in ("style", "script"):
        (source,) = re.findall(rf"<{kind}>(.*?)</{kind}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in unescape(policy[1])
    assert "default-src 'none'" in unescape(policy[1])


def test_it_begins_with_the_verdict_and_each_reason_links_to_its_task() -> None:
    view = typical_view()
    html, _ = rendered(view)
    assert view.verdict.decision is Decision.FAIL
    assert html.index("ci_merge FAIL") < html.index("delete_user was called") < html.index('id="suites"')
    assert '<p class="headline">3 blocking reasons (1 forbidden_tool, 1 task_failed, 1 missing_evidence)' in html
    for reason in view.verdict.reasons:
        assert f'href="#{reason.suite}/{reason.task_id}"' in html
        assert reason.message in text_of(html)


def test_of_many_reasons_the_first_are_open_and_the_others_one_click_away() -> None:
    runs = [a_run(a_task(task_id=f"task-{number:02}"), "fpf") for number in range(12)]
    html = rendered(a_view(*runs))[0]
    assert "<summary>4 more reasons that block</summary>" in html
    assert html.index("task-07</a>:") < html.index("4 more reasons") < html.index("task-08</a>:")
    assert "more reasons that block" not in rendered(a_view(*runs[:10]))[0]


def test_failed_trials_are_on_the_page_beside_a_passed_one_and_the_others_in_files() -> None:
    html, files = rendered(typical_view())
    for trial in ("golden/fallen/0", "golden/fallen/1", "golden/fallen/2", "golden/broken/2", "adversarial/leak/1"):
        assert '<article class="trial' in html
        assert f'id="{trial}"' in html
    pair = html[html.index('id="golden/fallen/0"') - 40 :]
    assert pair.index('class="trial failed"') < pair.index('class="trial passed"') < pair.index('<details class="more"')
    assert 'id="golden/say-yes/0"' not in html
    assert 'href="report/trials-1.html#golden/say-yes/0"' in html
    assert 'id="golden/say-yes/0"' in files["report/trials-1.html"]


def test_a_trial_shows_its_timeline_its_grades_and_the_expected_answer_beside_the_actual_one() -> None:
    html, _ = rendered(typical_view())
    text = " ".join(text_of(html).split())
    for words in (
        "look 12 ms where notes.md → result a note",
        "step 1 of 20 · 1 tool call of 10 · 1,280 tokens · $0.0100 of $0.1000 · 0.8 s of 20.0 s",
        "answer (output_check) failed score 0.00",
        "Expected against actual",
        "and thank you",
        "passgate try golden/fallen --agent my-agent",
    ):
        assert words in text, words
    assert 'aria-label="last 4 runs, trials passed, newest last: 3/3, 3/3, 2/3, 3/3"' in html


def test_a_task_that_has_fallen_is_marked_and_so_is_one_that_has_recovered() -> None:
    rows = re.findall(r'<tr data-suite="\w+" data-state="([^"]+)">', rendered(typical_view())[0])
    assert {"failed blocks worse", "passed better"} <= set(rows)


def test_a_refused_call_is_shown_as_refused() -> None:
    refused = ToolCall(tool="delete_user", arguments={"id": 7}, refused=True)
    task, ((trial, _),) = a_run(a_task(k=1), "f")
    html, _ = rendered(a_view((task, [(trial, a_transcript("no", refused))])))
    assert "refused: the agent never saw this call" in html


def test_hostile_text_stays_text() -> None:
    calls = ToolCall(tool=HOSTILE, arguments={HOSTILE: HOSTILE, "list": [HOSTILE]}, result={HOSTILE: HOSTILE})
    task = a_task(task_id="hostile <b>", description=HOSTILE, expected_output=HOSTILE, inputs={"prompt": HOSTILE}, k=1)
    _, ((trial, _),) = a_run(task, "f", reason=HOSTILE)
    view = a_view((task, [(trial, a_transcript(HOSTILE, calls))]))
    names = _Elements(rendered(typical_view())[0]).names
    html, _ = rendered(view)
    found = _Elements(html)
    assert set(found.names) <= set(names)
    assert found.names.count("script") == 1
    assert found.inline == []
    html.encode("utf-8")
    assert not {"\x1b", "\x00", "\u202e", "\u2066", "\x9b", "\x07", "\r"} & set(html)
    assert "\\u202e" in text_of(html)
    assert "<script>alert(1)</script>" in text_of(html)


@pytest.mark.parametrize("long", ["x" * 10_000_000, "line\n" * 1_000_000])
def test_a_long_text_is_cut_in_its_middle(long: str) -> None:
    task, ((trial, _),) = a_run(a_task(k=1), "f")
    html, _ = rendered(a_view((task, [(trial, a_transcript(f"BEGIN{long}END"))])))
    assert len(html) < 200_000
    assert "BEGIN" in html
    assert "END" in html
    assert "characters left out" in html


def test_of_many_trials_only_some_are_on_the_page_and_only_some_beside_it() -> None:
    text = "a long answer " * 3000
    groups = []
    for number in range(60):
        task, pairs = a_run(a_task(task_id=f"task-{number}", k=4), "fffp")
        groups.append((task, [(trial, a_transcript(text)) for trial, _ in pairs]))
    view = a_view(*groups)
    html, files = rendered(view, most=50)
    assert len(html.encode()) < 2_000_000
    assert html.count("<article") > 50
    assert sum(text.count("<article") for text in files.values()) == 50
    assert len(files) > 1
    missing = 240 - html.count("<article") - 50
    assert f"{missing} trials are in no file yet" in html
    html, files = rendered(view)
    assert "in no file yet" not in html
    assert sum(text.count("<article") for text in files.values()) == 240 - html.count("<article")


@pytest.mark.parametrize("name", ["failing", "inconclusive", "rejected", "awaiting", "approved"])
def test_every_kind_of_verdict_has_a_page_without_trials_plan_and_history(name: str) -> None:
    verdict = VERDICTS[name]
    html, files = rendered(RunView(verdict))
    _Elements(html)
    assert files == {}
    assert f"{verdict.gate} {verdict.decision}" in html
    assert ("passgate sign-off" in html) == (name == "awaiting")
    assert ("read the failed trials of the week; ship it" in html) == (name == "approved")


def test_a_trial_says_where_it_is_from_what_is_not_kept_and_how_it_was_graded() -> None:
    voted = a_grade(passed=False).model_copy(update={"votes": (0.25, 0.75)})
    unmeasured = a_grade(passed=False).model_copy(update={"score": None, "error": "the judge is down"})
    task, pairs = a_run(a_task(), "fff", reused_from="20260101-ab", grades=(voted, unmeasured))
    text = text_of(rendered(replace(a_view((task, pairs)), transcript=lambda _: None))[0])
    assert "Not run again: this trial is of the run 20260101-ab." in text
    assert "The run keeps no transcript of this trial." in text
    assert "votes 0.25, 0.75" in text
    assert "the judge is down" in text


def test_of_very_many_trials_those_that_failed_have_dots_first() -> None:
    html, files = rendered(a_view(a_run(a_task(k=200), "p" * 190 + "f" * 10)))
    row = html.rpartition(">+170</a>")[0].rpartition("<tr")[2]
    titles = re.findall(r'title="trial (\d+): (\w+)"', row)
    assert titles == [(str(n), "passed") for n in range(20)] + [(str(n), "failed") for n in range(190, 200)]
    assert row.rpartition('href="')[2].startswith("report/trials-1.html#golden/say-yes/20")
    assert 'id="golden/say-yes/189"' in files["report/trials-1.html"]


def test_files_beside_the_page_link_to_each_other() -> None:
    text = "a long answer " * 3000
    task, pairs = a_run(a_task(k=40), "p" * 40)
    _, files = rendered(a_view((task, [(trial, a_transcript(text)) for trial, _ in pairs])))
    links = [re.findall(r'href="trials-(\d+)\.html"', html) for html in files.values()]
    assert list(files) == [f"report/trials-{number}.html" for number in (1, 2, 3)]
    assert links == [["2"], ["1", "3"], ["2"]]


def test_confirming_trials_look_different_and_say_what_they_are() -> None:
    html, _ = rendered(a_view(a_run(a_task(k=2), "fpp")))
    dots = re.findall(r'class="dot (\w+(?: confirming)?)" href="[^"]*" title="([^"]*)"', html)
    assert {("failed", "trial 0: failed"), ("passed confirming", "confirming trial 2: passed")} <= set(dots)
    assert ("passed", "trial 1: passed") in dots
