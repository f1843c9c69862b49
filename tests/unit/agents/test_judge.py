"""Who marks rubrics: a real HTTP server, or replies written down."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.agents.judge import HttpJudge, RecordedJudge, make_judge
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.model.judge import Judge, JudgeMessage, JudgeRequest
from passgate.tasks.model.policy import JudgePolicy

REQUEST = JudgeRequest(
    messages=(JudgeMessage(role="system", content="Mark."), JudgeMessage(role="user", content="Größe?")),
    fingerprint="f1",
)
GOOD = json.dumps({"choices": [{"message": {"content": '{"score": 1}'}}]})


@dataclass
class Endpoint:
    """A chat endpoint that gives one answer and keeps what it was asked."""

    url: str = ""
    status: int = 200
    body: str = GOOD
    hang_up: bool = False
    asked: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    answer = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer.asked.append((self.path, dict(self.headers), json.loads(body)))
            if answer.hang_up:
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(answer.status)
            self.end_headers()
            self.wfile.write(answer.body.encode())

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        answer.url = f"http://127.0.0.1:{server.server_port}/v1"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield answer
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PASSGATE_JUDGE_BASE_URL", "PASSGATE_JUDGE_MODEL", "PASSGATE_JUDGE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def judge_at(url: str, *, api_key: str = "", seconds: float = 10) -> HttpJudge:
    return HttpJudge(url, "gpt-judge", api_key, seconds)


async def failure(judge: Judge) -> MeasurementError:
    with pytest.raises(MeasurementError) as caught:
        await judge.reply(REQUEST)
    return caught.value


async def test_the_question_and_the_answer(endpoint: Endpoint) -> None:
    assert await judge_at(endpoint.url, api_key="k-1").reply(REQUEST) == '{"score": 1}'
    ((path, headers, body),) = endpoint.asked
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer k-1"
    assert body == {
        "model": "gpt-judge",
        "temperature": 0,
        "messages": [{"role": "system", "content": "Mark."}, {"role": "user", "content": "Größe?"}],
    }


async def test_without_a_key_none_is_sent(endpoint: Endpoint) -> None:
    await judge_at(f"{endpoint.url}/").reply(REQUEST)
    ((path, headers, _),) = endpoint.asked
    assert path == "/v1/chat/completions"
    assert "Authorization" not in headers


@pytest.mark.parametrize(
    ("status", "transient"),
    [(500, True), (502, True), (503, True), (429, True), (408, True), (400, False), (401, False), (404, False)],
)
async def test_a_refusal_may_be_gone_at_the_next_attempt_or_not(
    endpoint: Endpoint, status: int, transient: bool
) -> None:
    endpoint.status, endpoint.body = status, "the reason " + "x" * 1000
    error = await failure(judge_at(endpoint.url))
    assert f"answered {status}: the reason" in str(error)
    assert error.transient is transient
    assert len(str(error)) < 500


async def test_a_redirection_is_not_followed(endpoint: Endpoint) -> None:
    endpoint.status = 302
    assert "answered 302" in str(await failure(judge_at(endpoint.url)))


@pytest.mark.parametrize(
    "body",
    ["", "<html>", "3", "[]", "{}", '{"choices": []}', '{"choices": [{}]}', '{"choices": [{"message": "yes"}]}'],
)
async def test_an_answer_that_is_no_completion_cannot_be_measured(endpoint: Endpoint, body: str) -> None:
    endpoint.body = body
    error = await failure(judge_at(endpoint.url))
    assert "no chat completion" in str(error)
    assert error.transient is False


@pytest.mark.parametrize("content", [None, 3, [{"type": "text"}]])
async def test_an_answer_without_a_text_cannot_be_measured(endpoint: Endpoint, content: Any) -> None:
    endpoint.body = json.dumps({"choices": [{"message": {"content": content}}]})
    assert "without a text" in str(await failure(judge_at(endpoint.url)))


async def test_a_refused_connection_may_be_gone_at_the_next_attempt() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    error = await failure(judge_at(url))
    assert f"{url}/chat/completions cannot be reached: ConnectError" in str(error)
    assert error.transient is True


async def test_a_broken_connection_may_be_gone_at_the_next_attempt(endpoint: Endpoint) -> None:
    endpoint.hang_up = True
    assert (await failure(judge_at(endpoint.url))).transient is True


async def test_an_answer_that_does_not_come_is_waited_for_only_so_long() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        error = await failure(judge_at(f"http://127.0.0.1:{silent.getsockname()[1]}", seconds=0.2))
    assert "ReadTimeout" in str(error)
    assert error.transient is True


async def test_what_is_no_url_cannot_be_measured() -> None:
    error = await failure(judge_at("http://host:port/v1"))
    assert "is not a URL" in str(error)
    assert error.transient is False


@pytest.mark.parametrize("url", ["host/v1", "ftp://host/v1"])
async def test_another_protocol_cannot_be_measured(url: str) -> None:
    assert "cannot be reached" in str(await failure(judge_at(url)))


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[[str, str], Path]:
    def _recorded(name: str, text: str) -> Path:
        folder = tmp_path / "replies"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
        return folder

    return _recorded


async def test_recorded_replies_go_by_the_fingerprint(recorded: Callable[[str, str], Path]) -> None:
    recorded("a.yaml", "replies:\n  - {fingerprint: f0, reply: zero}\n  - {fingerprint: f1, reply: one}\n")
    folder = recorded("b.yaml", "replies:\n  - fingerprint: f2\n    reply: |\n      Größe\n")
    judge = RecordedJudge.from_folder(folder)
    assert await judge.reply(REQUEST) == "one"
    assert await judge.reply(REQUEST.model_copy(update={"fingerprint": "f2"})) == "Größe\n"
    assert judge.name == "recorded replies"


async def test_an_unknown_fingerprint_says_what_to_do(recorded: Callable[[str, str], Path]) -> None:
    folder = recorded("a.yaml", "replies: []\n")
    error = await failure(RecordedJudge.from_folder(folder))
    assert "fingerprint f1" in str(error)
    assert "PASSGATE_JUDGE_MODEL" in str(error)
    assert str(folder) in str(error)
    assert error.transient is False


@pytest.mark.parametrize(
    "text",
    ["", "3", "[]", "{}", "replies: 3", "replies: [3]", "replies: [{reply: a}]", "replies: [", "replies: 2026-99-99"],
)
def test_a_file_of_another_shape_is_refused(recorded: Callable[[str, str], Path], text: str) -> None:
    with pytest.raises(UsageError, match=r"a\.yaml: not a file of recorded replies"):
        RecordedJudge.from_folder(recorded("a.yaml", text))


async def test_a_folder_that_is_not_there_holds_no_reply(tmp_path: Path) -> None:
    assert "no recorded judge reply" in str(await failure(RecordedJudge.from_folder(tmp_path / "gone")))


MODEL = {"base_url": "http://file/v1", "model": "file-model"}


def test_without_a_configuration_there_is_no_judge(tmp_path: Path) -> None:
    assert make_judge(JudgePolicy(), tmp_path) is None


def test_a_model_of_the_policy(tmp_path: Path) -> None:
    judge = make_judge(JudgePolicy(**MODEL), tmp_path)
    assert isinstance(judge, HttpJudge)
    assert judge.name == "file-model"


def test_a_model_goes_before_recorded_replies(tmp_path: Path) -> None:
    assert isinstance(make_judge(JudgePolicy(recorded="replies", **MODEL), tmp_path), HttpJudge)
    assert isinstance(make_judge(JudgePolicy(recorded="replies"), tmp_path), RecordedJudge)


def test_recorded_replies_lie_in_the_suites_folder(recorded: Callable[[str, str], Path], tmp_path: Path) -> None:
    recorded("a.yaml", "not replies")
    with pytest.raises(UsageError, match="replies"):
        make_judge(JudgePolicy(recorded="replies"), tmp_path)


async def test_the_environment_goes_before_the_file(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSGATE_JUDGE_BASE_URL", endpoint.url)
    monkeypatch.setenv("PASSGATE_JUDGE_MODEL", "environment-model")
    monkeypatch.setenv("MY_KEY", "k-2")
    judge = make_judge(JudgePolicy(api_key_variable="MY_KEY", **MODEL), tmp_path)
    assert judge is not None
    assert judge.name == "environment-model"
    await judge.reply(REQUEST)
    ((_, headers, body),) = endpoint.asked
    assert (headers["Authorization"], body["model"]) == ("Bearer k-2", "environment-model")


def test_the_environment_can_complete_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSGATE_JUDGE_MODEL", "environment-model")
    judge = make_judge(JudgePolicy(base_url="http://file/v1"), tmp_path)
    assert judge is not None
    assert judge.name == "environment-model"


@pytest.mark.parametrize("half", [{"base_url": "http://file/v1"}, {"model": "m"}, {"model": "m", "recorded": "r"}])
def test_half_a_configuration_is_refused(half: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs both a base URL and a model"):
        make_judge(JudgePolicy(**half), tmp_path)


def test_half_a_configuration_in_the_environment_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSGATE_JUDGE_BASE_URL", "http://environment/v1")
    with pytest.raises(UsageError, match="needs both"):
        make_judge(JudgePolicy(recorded="replies"), tmp_path)
