"""The verdict as a comment, against servers on the loopback that answer as GitHub and GitLab do."""

import json
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from passgate.tasks.commands import comment as comments
from passgate.tasks.commands.comment import CommentError, comment, comment_service
from passgate.tasks.errors import UsageError
from passgate.tasks.history.masking import Masker
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import GateName
from passgate.tasks.model.verdict import Decision, Verdict
from tests.builders import a_plan, a_run_id
from tests.unit.reports.measurements import a_failed_task, a_task
from tests.unit.reports.verdicts import a_reason, a_verdict


class Forge(ThreadingHTTPServer):
    """Keeps comments as GitHub and GitLab do, for one token and one pull request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.comments: list[dict[str, Any]] = []
        self.requests: list[tuple[str, str]] = []
        self.failures: list[int] = []  # Statuses of the next answers
        self.user: dict[str, Any] | None = {"id": 42, "type": "User"}  # None for the token of an app
        self.headers: dict[str, str] = {}  # Of the failures

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def github(self) -> dict[str, str]:
        return {
            "GITHUB_REPOSITORY": "ada/shop",
            "GITHUB_REF": "refs/pull/7/merge",
            "GITHUB_API_URL": self.url,
            "GITHUB_TOKEN": "t0ken",
        }

    @property
    def gitlab(self) -> dict[str, str]:
        return {"CI_PROJECT_ID": "12", "CI_MERGE_REQUEST_IID": "7", "CI_API_V4_URL": self.url, "GITLAB_TOKEN": "t0ken"}


class _Answers(BaseHTTPRequestHandler):
    server: Forge

    def do_GET(self) -> None:
        if self.path == "/user":
            self._send(200, self.server.user) if self.server.user else self._send(403, {"message": "no user"})
            return
        page = int(parse_qs(urlsplit(self.path).query)["page"][0])
        if not self._refused():
            self._send(200, self.server.comments[(page - 1) * 100 : page * 100])

    # What a request changes is stored before it is answered: the test looks as soon as it has the answer.
    def do_POST(self) -> None:
        by = "author" if "/notes" in self.path else "user"
        one = {"id": len(self.server.comments) + 1, by: self.server.user or {"id": 9, "type": "Bot"}, **self._body()}
        one["html_url"] = f"{self.server.url}/7#1"
        if not self._refused():
            self.server.comments.append(one)
            self._send(201, one)

    def do_PATCH(self) -> None:
        one = next(one for one in self.server.comments if self.path.endswith(f"/{one['id']}"))
        if not self._refused():
            one |= self._body()
            self._send(200, one)

    def do_PUT(self) -> None:
        self.do_PATCH()

    def _body(self) -> Any:
        if not hasattr(self, "_read"):
            self._read = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        return self._read

    def _refused(self) -> bool:
        """Whether the request is refused; answers it then."""
        self.server.requests.append((self.command, self.path))
        token = self.headers.get("Authorization", "").removeprefix("Bearer ") or self.headers.get("PRIVATE-TOKEN")
        if self.server.failures:
            self._send(self.server.failures.pop(0), {"message": "no\x1b[31m"})
        elif token != "t0ken":
            self._send(401, {"message": "Bad credentials"})
        else:
            return False
        return True

    def _send(self, status: int, document: Any) -> None:
        if self.command != "GET":
            self._body()
        body = json.dumps(document).encode()
        self.send_response(status)
        for name, value in self.server.headers.items() if status >= 400 else ():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def forge() -> Iterator[Forge]:
    with Forge() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(comments, "_PAUSES", (0.0, 0.0))
    monkeypatch.chdir(tmp_path)


def failing_verdict() -> Verdict:
    task = a_failed_task()
    return a_verdict(Decision.FAIL, (task,), reasons=(a_reason(task, Rule.GOLDEN_REGRESSION, "it fell"),))


def passing_verdict() -> Verdict:
    return a_verdict(Decision.PASS, (a_task(),))


def kept(verdict: Verdict) -> str:
    store = RunStore.of(verdict.run_id)
    store.path.mkdir(parents=True, exist_ok=True)
    store.write_reports(verdict, {})
    return verdict.run_id


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_a_gate_has_one_comment_that_each_run_changes(forge: Forge, kind: str) -> None:
    service = comment_service(getattr(forge, kind), None)
    forge.comments = [{"id": number, "body": "looks good"} for number in range(1, 151)]
    assert comment(kept(failing_verdict()), service)
    assert len(forge.comments) == 151
    assert "FAIL" in forge.comments[-1]["body"]
    comment(kept(passing_verdict()), service)
    assert len(forge.comments) == 151
    assert "PASS" in forge.comments[-1]["body"]
    assert "FAIL" not in forge.comments[-1]["body"]


@pytest.mark.parametrize("user", [{"id": 42, "type": "User"}, None], ids=["of a user", "of an app"])
def test_the_comment_of_somebody_else_is_left_alone_whatever_it_begins_with(
    forge: Forge, user: dict[str, Any] | None
) -> None:
    forge.user = user
    comment(kept(failing_verdict()), comment_service(forge.github, None))
    forged = {**forge.comments[0], "id": 7, "user": {"id": 6, "type": "User"}}
    forge.comments.insert(0, forged)
    comment(kept(passing_verdict()), comment_service(forge.github, None))
    assert ["PASS" in one["body"] for one in forge.comments] == [False, True]


def test_each_gate_has_a_comment_of_its_own(forge: Forge) -> None:
    service = comment_service(forge.github, None)
    comment(kept(failing_verdict()), service)
    nightly = passing_verdict().model_copy(update={"gate": GateName.NIGHTLY, "run_id": "20260402T020000Z-nightly-5f3a"})
    comment(kept(nightly), service)
    assert len(forge.comments) == 2


def test_the_addresses_are_those_of_the_apis(forge: Forge) -> None:
    comment(kept(failing_verdict()), comment_service(forge.github, None))
    comment(kept(failing_verdict()), comment_service(forge.github, None))
    comment(kept(failing_verdict()), comment_service(forge.gitlab, None))
    asked = [(method, re.sub(r"\?.*", "", path)) for method, path in forge.requests]
    assert asked[1] == ("POST", "/repos/ada/shop/issues/7/comments")
    assert asked[3] == ("PATCH", "/repos/ada/shop/issues/comments/1")
    assert asked[5] == ("PUT", "/projects/12/merge_requests/7/notes/1")


def test_a_busy_service_is_asked_again(forge: Forge) -> None:
    forge.failures = [503, 429]
    comment(kept(failing_verdict()), comment_service(forge.github, None))
    assert len(forge.comments) == 1


@pytest.mark.parametrize(("failures", "said"), [([403], "needs permission"), ([503, 503, 503], "answered 503")])
def test_what_the_service_refuses_is_said_in_its_words(forge: Forge, failures: list[int], said: str) -> None:
    forge.failures = failures
    with pytest.raises(CommentError, match=said) as raised:
        comment(kept(failing_verdict()), comment_service(forge.github, None))
    assert "t0ken" not in str(raised.value)
    assert "\x1b" not in str(raised.value)


@pytest.mark.parametrize("headers", [{"Retry-After": "0"}, {"X-RateLimit-Remaining": "0"}])
def test_a_rate_limit_is_waited_for_and_is_no_question_of_permission(forge: Forge, headers: dict[str, str]) -> None:
    forge.headers, service = headers, comment_service(forge.github, None)
    forge.failures = [403, 429]
    comment(kept(failing_verdict()), service)
    assert len(forge.comments) == 1
    forge.failures = [403, 403, 403]
    with pytest.raises(CommentError, match=r"answered 403: .* that is its rate limit"):
        comment(kept(failing_verdict()), service)


def test_the_pause_that_a_service_asks_for_is_kept(forge: Forge) -> None:
    forge.headers, forge.failures = {"Retry-After": "1"}, [429]
    began = time.monotonic()
    comment(kept(failing_verdict()), comment_service(forge.github, None))
    assert time.monotonic() - began >= 1


def test_a_service_that_is_not_there_is_said() -> None:
    environment = {
        "GITHUB_REPOSITORY": "ada/shop",
        "GITHUB_REF": "refs/pull/7/merge",
        "GITHUB_API_URL": "http://127.0.0.1:1",
        "GITHUB_TOKEN": "t0ken",
    }
    with pytest.raises(CommentError, match="GitHub cannot be reached"):
        comment(kept(failing_verdict()), comment_service(environment, None))


def test_a_long_comment_is_cut_and_says_so(forge: Forge, monkeypatch: pytest.MonkeyPatch) -> None:
    service = comment_service(forge.github, None)
    monkeypatch.setattr(comments, "markdown", lambda _: "a line\n\n" * 20_000)
    comment(kept(failing_verdict()), service)
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
def test_a_job_that_cannot_comment_says_what_it_lacks(forge: Forge, changes: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        comment_service(forge.github | changes, None)


def test_the_pull_request_can_be_named(forge: Forge) -> None:
    service = comment_service(forge.github | {"GITHUB_REF": "refs/heads/main"}, 9)
    assert service.comments.endswith("/issues/9/comments")


def test_a_run_without_a_verdict_is_refused(forge: Forge) -> None:
    run_id = a_run_id("20260401")
    RunStore.of(run_id).write_plan(a_plan(run_id=run_id), Masker([]))
    with pytest.raises(UsageError, match=f"no verdict: carry it on with `passgate run ci_merge --resume {run_id}`"):
        comment(run_id, comment_service(forge.github, None))
