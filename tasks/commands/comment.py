"""Comment: the verdict of a run as a comment of its pull request or merge request, one per gate, kept up to date.

The APIs: https://docs.github.com/rest/issues/comments and https://docs.gitlab.com/api/notes/#merge-requests.
"""

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import httpx

from passgate.tasks.errors import ExitCode, PassgateError, UsageError
from passgate.tasks.files.proxies import is_loopback, via_proxy
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.run_view import RunView
from passgate.tasks.reports.escape import printable
from passgate.tasks.reports.markdown import markdown

_SECONDS: Final = 20.0
_PAGE: Final = 100
_MOST_PAGES: Final = 50
_PAUSES: Final = (1.0, 3.0)
_LONGEST_PAUSE: Final = 60.0
_REFUSED: Final = frozenset({401, 403, 404})
_BUSY: Final = frozenset({429, 500, 502, 503, 504})
_LONGEST_ANSWER: Final = 300
_PULL_REQUEST: Final = re.compile(r"refs/pull/(\d+)/")


class CommentError(PassgateError):
    """A comment could not be written; the text says what the service answered."""

    exit_code = ExitCode.INCONCLUSIVE


@dataclass(frozen=True)
class CommentService:
    """Where the comments of one pull request or merge request are, and how they are written."""

    name: str
    comments: str
    """The URL of all comments."""
    comment: str
    """The URL of one, before its id."""
    user: str
    """The URL that says whose the token is."""
    method: str
    """How a comment is changed."""
    headers: Mapping[str, str]
    longest: int
    """Characters of a comment."""


def comment_service(environment: Mapping[str, str], pull_request: int | None) -> CommentService:
    """The service that the variables of a CI job name. `pull_request` is the number of the pull request or merge
    request; `None` takes that of the job.

    Raises `UsageError` where a variable is missing, and for an API without TLS that is not on this machine.
    """
    if environment.get("GITHUB_REPOSITORY"):
        service = _github(environment, pull_request)
    elif environment.get("CI_PROJECT_ID"):
        service = _gitlab(environment, pull_request)
    else:
        raise UsageError("no pull request is known: run this in a job of GitHub Actions or GitLab CI")
    url = httpx.URL(service.comments)
    if url.scheme != "https" and not is_loopback(url.host):
        raise UsageError(f"{service.name}'s API {url.host} is not reached by https, so it would get the token in clear")
    return service


def _github(environment: Mapping[str, str], pull_request: int | None) -> CommentService:
    found = _PULL_REQUEST.match(environment.get("GITHUB_REF", ""))
    number = pull_request or (int(found[1]) if found else None)
    if number is None:
        raise UsageError("this job is not of a pull request: name one with --pull-request NUMBER")
    token = _variable(environment, "GITHUB_TOKEN", "set it to ${{ github.token }} in the step's env")
    api = environment.get("GITHUB_API_URL", "https://api.github.com").rstrip("/")
    issues = f"{api}/repos/{quote(environment['GITHUB_REPOSITORY'])}/issues"
    return CommentService(
        name="GitHub",
        comments=f"{issues}/{number}/comments",
        comment=f"{issues}/comments",
        user=f"{api}/user",
        method="PATCH",
        headers={"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"},
        longest=65_000,
    )


def _gitlab(environment: Mapping[str, str], pull_request: int | None) -> CommentService:
    iid = environment.get("CI_MERGE_REQUEST_IID", "")
    number = pull_request or (int(iid) if iid.isdecimal() else None)
    if number is None:
        raise UsageError("this job is not of a merge request: name one with --pull-request NUMBER")
    token = _variable(environment, "GITLAB_TOKEN", "set it to a project access token with the scope `api`")
    api = environment.get("CI_API_V4_URL", "https://gitlab.com/api/v4").rstrip("/")
    notes = f"{api}/projects/{quote(environment['CI_PROJECT_ID'], safe='')}/merge_requests/{number}/notes"
    return CommentService(
        name="GitLab",
        comments=notes,
        comment=notes,
        user=f"{api}/user",
        method="PUT",
        headers={"PRIVATE-TOKEN": token},
        longest=900_000,
    )


def _variable(environment: Mapping[str, str], name: str, remedy: str) -> str:
    value = environment.get(name, "").strip()
    if not value:
        raise UsageError(f"{name} is not set: {remedy}")
    if not value.isascii() or not value.isprintable():
        raise UsageError(f"{name} has characters that no token has")
    return value


def comment(run_id: str, service: CommentService) -> str:
    """Write the comment of a run's gate, or change the one that is there; gives its address, or an empty text.

    The text is made anew from the verdict, so that nothing else in the run's folder gets into it. Raises `UsageError`
    for a run without a verdict, and `CommentError`.
    """
    verdict = RunStore.of(run_id).judged()
    marker = f"<!-- passgate {verdict.gate} -->"
    body = f"{marker}\n{markdown(RunView(verdict))}"
    if len(body) > service.longest:
        kept = body[: service.longest].rpartition("\n\n")[0]
        body = f"{kept}\n\nThe rest is left out: {service.name} takes no longer comment."
    with httpx.Client(headers=dict(service.headers), timeout=_SECONDS) as client:
        author = _author(client, service)
        earlier = next((one for one in _comments(client, service) if _is_ours(one, marker, author)), None)
        if earlier is None:
            written = _asked(client, service, "POST", service.comments, json={"body": body})
        else:
            url = f"{service.comment}/{int(earlier['id'])}"
            written = _asked(client, service, service.method, url, json={"body": body})
    return str(written.get("html_url", "")) if isinstance(written, dict) else ""


def _author(client: httpx.Client, service: CommentService) -> int | None:
    """The id of the user that the token is of; `None` for that of an app, such as a job's own token in GitHub Actions.

    A token that is none at all is refused where the comments are asked for.
    """
    answer = _answered(client, service, "GET", service.user)
    found = None if answer.status_code in _REFUSED else _document(service, answer)
    return found.get("id") if isinstance(found, dict) else None


def _is_ours(one: Any, marker: str, author: int | None) -> bool:
    """Whether a comment is an earlier one of the gate. Anybody can write the marker, and who has written a comment can
    change it after us.
    """
    if not isinstance(one, dict) or not str(one.get("body", "")).startswith(marker):
        return False
    by = one.get("user") or one.get("author")
    if not isinstance(by, dict) or not isinstance(one.get("id"), int):
        return False
    return by.get("type") == "Bot" if author is None else by.get("id") == author


def _comments(client: httpx.Client, service: CommentService) -> Iterator[Any]:
    for page in range(1, _MOST_PAGES + 1):
        found = _asked(client, service, "GET", service.comments, params={"per_page": _PAGE, "page": page})
        if not isinstance(found, list):
            raise CommentError(f"{service.name} gave no list of comments")
        yield from found
        if len(found) < _PAGE:
            return


def _asked(client: httpx.Client, service: CommentService, method: str, url: str, **request: Any) -> Any:
    return _document(service, _answered(client, service, method, url, **request))


def _answered(client: httpx.Client, service: CommentService, method: str, url: str, **request: Any) -> httpx.Response:
    """The answer of the service. One that is busy is asked again."""
    for pause in (*_PAUSES, None):
        try:
            answer = client.request(method, url, **request)
        except httpx.HTTPError as error:
            why = f"{error or type(error).__name__}{via_proxy(url)}"
            raise CommentError(f"{service.name} cannot be reached: {why}") from error
        is_busy = answer.status_code in _BUSY or _is_rate_limited(answer)
        if pause is None or not is_busy:
            return answer
        time.sleep(max(pause, _wanted_pause(answer)))
    raise AssertionError


def _is_rate_limited(answer: httpx.Response) -> bool:
    """GitHub answers 403 too where it limits the rate: https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api"""
    limited = "retry-after" in answer.headers or answer.headers.get("x-ratelimit-remaining") == "0"
    return answer.status_code == 429 or (answer.status_code == 403 and limited)


def _wanted_pause(answer: httpx.Response) -> float:
    """The seconds that the service asks for, within reason."""
    seconds = answer.headers.get("retry-after", "")
    return min(float(seconds), _LONGEST_PAUSE) if seconds.isdecimal() else 0.0


def _document(service: CommentService, answer: httpx.Response) -> Any:
    if not answer.is_success:
        text = printable(answer.text, _LONGEST_ANSWER)
        remedy = "; the token needs permission to write comments" if answer.status_code in _REFUSED else ""
        if _is_rate_limited(answer):
            remedy = "; that is its rate limit, so run the job again later"
        raise CommentError(f"{service.name} answered {answer.status_code}: {text}{remedy}")
    try:
        return answer.json()
    except ValueError as error:
        raise CommentError(f"{service.name} answered {answer.status_code} with no JSON") from error
