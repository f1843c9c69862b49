"""The verdict as a comment, against a service that answers as GitHub and GitLab do."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from passgate.tasks.commands import comment as comments
from passgate.tasks.commands.comment import CommentError, comment, comment_service
from passgate.tasks.errors import UsageError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.masker import Masker
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import GateName
from passgate.tasks.model.verdict import Decision, Verdict
from tests.builders import a_plan, a_run_id
from tests.unit.reports.measurements import a_failed_task, a_task
from tests.unit.reports.verdicts import a_reason, a_verdict

CLIENT = httpx.Client
URL = "https://forge.example"
GITHUB = {
    "GITHUB_REPOSITORY": "ada/shop",
    "GITHUB_REF": "refs/pull/7/merge",
    "GITHUB_API_URL": URL,
    "GITHUB_TOKEN": "t0ken",
}
GITLAB = {"CI_PROJECT_ID": "12", "CI_MERGE_REQUEST_IID": "7", "CI_API_V4_URL": URL, "GITLAB_TOKEN": "t0ken"}


class Forge:
    """Keeps comments as GitHub and GitLab do, for one token and one pull request."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.requests: list[tuple[str, str]] = []
        self.failures: list[int] = []  # Statuses of the next answers
        self.user: dict[str, Any] | None = {"id": 42, "type": "User"}  # None for the token of an app
        self.headers: dict[str, str] = {}  # Of the failures
        self.pauses: list[float] = []  # Before it was asked again

    def answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path == "/user":
            return httpx.Response(200, json=self.user) if self.user else httpx.Response(403, json={"message": "none"})
        self.requests.append((request.method, path))
        if self.failures:
            return httpx.Response(self.failures.pop(0), json={"message": "no\x1b[31m"}, headers=self.headers)
        if "t0ken" not in (request.headers.get("Private-Token"), request.headers.get("Authorization", "")[7:]):
            return httpx.Response(401, json={"message": "Bad credentials"})
        if request.method == "GET":
            page = int(request.url.params["page"])
            return httpx.Response(200, json=self.comments[(page - 1) * 100 : page * 100])
        if request.method == "POST":
            by = "author" if "/notes" in path else "user"
            self.comments.append({"id": len(self.comments) + 1, by: self.user or {"id": 9, "type": "Bot"}})
        one = self.comments[-1] if request.method == "POST" else self._named(path)
        one |= {"html_url": "https://forge.example/7#1", **json.loads(request.content)}
        return httpx.Response(200, json=one)

    def _named(self, path: str) -> dict[str, Any]:
        return next(one for one in self.comments if path.endswith(f"/{one['id']}"))


@pytest.fixture(autouse=True)
def forge(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Forge:
    monkeypatch.chdir(tmp_path)
    forge = Forge()
    monkeypatch.setattr(httpx, "Client", partial(httpx.Client, transport=httpx.MockTransport(forge.answer)))
    monkeypatch.setattr("passgate.tasks.commands.comment.time.sleep", forge.pauses.append)
    return forge


FAILED = a_failed_task()
FAIL = a_verdict(Decision.FAIL, (FAILED,), reasons=(a_reason(FAILED, Rule.GOLDEN_REGRESSION, "it fell"),))
PASS = a_verdict(Decision.PASS, (a_task(),))


def commented(verdict: Verdict, environment: dict[str, str] = GITHUB) -> str:
    store = RunStore.of(verdict.run_id)
    store.path.mkdir(parents=True, exist_ok=True)
    store.write_reports(verdict, {})
    return comment(verdict.run_id, comment_service(environment, None))


@pytest.mark.parametrize("environment", [GITHUB, GITLAB], ids=["GitHub", "GitLab"])
def test_a_gate_has_one_comment_that_each_run_changes(forge: Forge, environment: dict[str, str]) -> None:
    forge.comments = [{"id": number, "body": "looks good"} for number in range(1, 151)]
    assert commented(FAIL, environment)
    assert len(forge.comments) == 151
    assert "FAIL" in forge.comments[-1]["body"]
    commented(PASS, environment)
    assert len(forge.comments) == 151
    assert "PASS" in forge.comments[-1]["body"]
    assert "FAIL" not in forge.comments[-1]["body"]
    commented(PASS.model_copy(update={"gate": GateName.NIGHTLY}), environment)
    assert len(forge.comments) == 152, "each gate has a comment of its own"


@pytest.mark.parametrize("user", [{"id": 42, "type": "User"}, None], ids=["of a user", "of an app"])
def test_the_comment_of_somebody_else_is_left_alone(forge: Forge, user: dict[str, Any] | None) -> None:
    forge.user = user
    commented(FAIL)
    forged = {**forge.comments[0], "id": 7, "user": {"id": 6, "type": "User"}}
    forge.comments.insert(0, forged)
    commented(PASS)
    assert ["PASS" in one["body"] for one in forge.comments] == [False, True]


def test_the_addresses_are_those_of_the_apis(forge: Forge) -> None:
    for environment in (GITHUB, GITHUB, GITLAB):
        commented(FAIL, environment)
    assert forge.requests[1] == ("POST", "/repos/ada/shop/issues/7/comments")
    assert forge.requests[3] == ("PATCH", "/repos/ada/shop/issues/comments/1")
    assert forge.requests[5] == ("PUT", "/projects/12/merge_requests/7/notes/1")


@pytest.mark.parametrize(
    ("failures", "headers", "pauses"),
    [
        ([503, 429], {}, [1.0, 3.0]),
        ([403, 429], {"Retry-After": "20"}, [20.0, 20.0]),
        ([403, 429], {"X-RateLimit-Remaining": "0"}, [1.0, 3.0]),
    ],
)
def test_a_busy_service_is_asked_again_after_the_pause_that_it_asks_for(
    forge: Forge, failures: list[int], headers: dict[str, str], pauses: list[float]
) -> None:
    forge.failures, forge.headers = failures, headers
    commented(FAIL)
    assert (len(forge.comments), forge.pauses) == (1, pauses)


@pytest.mark.parametrize(
    ("failures", "headers", "said"),
    [
        ([403], {}, "needs permission"),
        ([503, 503, 503], {}, "answered 503"),
        ([403, 403, 403], {"Retry-After": "0"}, "answered 403: .* that is its rate limit"),
        ([403, 403, 403], {"X-RateLimit-Remaining": "0"}, "answered 403: .* that is its rate limit"),
    ],
)
def test_what_the_service_refuses_is_said(
    forge: Forge, failures: list[int], headers: dict[str, str], said: str
) -> None:
    forge.failures, forge.headers = failures, headers
    with pytest.raises(CommentError, match=said) as raised:
        commented(FAIL)
    assert not any(bad in str(raised.value) for bad in ("t0ken", "\x1b"))


def test_a_service_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(httpx, "Client", CLIENT)
    with pytest.raises(CommentError, match="GitHub cannot be reached"):
        commented(FAIL, GITHUB | {"GITHUB_API_URL": "http://127.0.0.1:1"})


def test_a_long_comment_is_cut_and_says_so(forge: Forge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comments, "markdown", lambda _: "a line\n\n" * 20_000)
    commented(FAIL)
    body = forge.comments[0]["body"]
    assert len(body) < 65_536
    assert body.endswith("The rest is left out: GitHub takes no longer comment.")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"GITHUB_REPOSITORY": ""}, "run this in a job of GitHub Actions or GitLab CI"),
        ({"GITHUB_REF": "refs/heads/main"}, "--pull-request NUMBER"),
        ({"GITHUB_TOKEN": " "}, "GITHUB_TOKEN is not set"),
        ({"GITHUB_TOKEN": "a\nb"}, "characters that no token has"),
        ({"GITHUB_API_URL": "http://github.example"}, "not reached by https"),
    ],
)
def test_a_job_that_cannot_comment_says_what_it_lacks(changes: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        comment_service(GITHUB | changes, None)


def test_the_pull_request_can_be_named() -> None:
    service = comment_service(GITHUB | {"GITHUB_REF": "refs/heads/main"}, 9)
    assert service.comments.endswith("/issues/9/comments")


def test_a_run_without_a_verdict_is_refused() -> None:
    run_id = a_run_id("20260401")
    RunStore.of(run_id).write_plan(a_plan(run_id=run_id), Masker([]))
    with pytest.raises(UsageError, match=f"no verdict: carry it on with `passgate run ci_merge --resume {run_id}`"):
        comment(run_id, comment_service(GITHUB, None))
