"""Who marks rubrics: a model on a real server, or replies written down."""

import json
import re
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.upstream import ScriptedUpstream
from tests.upstream_replies import Down, Silent, Status
from tests.upstream_shapes import Json, Says

from passgate.tasks.agents.http_judge import HttpJudge, disarm
from passgate.tasks.agents.llm_judge import RecordedJudge, judge_model, make_llm_judge
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.model.grade import JudgeMessage, JudgeRequest, LlmJudge
from passgate.tasks.model.policy import JudgePolicy
from passgate.tasks.model.quotes import UNMASKED
from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.client import Upstream
from passgate.tasks.providers.endpoints import ResolvedEndpoint
from passgate.tasks.providers.registry import judging_apis
from passgate.tasks.providers.retries import RetryPolicy

REQUEST = JudgeRequest(
    messages=(JudgeMessage(role="system", content="Mark."), JudgeMessage(role="user", content="Größe?")),
    fingerprint="f1",
)
SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}}}
WITH_SCHEMA = REQUEST.model_copy(update={"reply_schema": SCHEMA})
GOOD = Says('{"score": 1}', tokens_in=100, tokens_out=20, cached=60)
BAR = "\N{FULLWIDTH VERTICAL LINE}"
QUICK = RetryPolicy(first_pause=0.01, longest_pause=0.02)


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PASSGATE_JUDGE_BASE_URL", "PASSGATE_JUDGE_MODEL", "PASSGATE_JUDGE_API", "PASSGATE_JUDGE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def judge_at(upstream: ScriptedUpstream) -> AsyncIterator[Callable[..., HttpJudge]]:
    """Judges that ask the provider, which says something good."""
    upstream.says(GOOD)
    async with AsyncExitStack() as stack:

        def _judge_at(
            end: str = "",
            *,
            key: str = "",
            api: str = "chat_completions",
            retry_policy: RetryPolicy = QUICK,
            **policy: Any,
        ) -> HttpJudge:
            settings = JudgePolicy(**policy)
            provider, spoken = judging_apis()[api]
            base_url = upstream.openai_base_url if provider.base_path else upstream.url
            endpoint = ResolvedEndpoint(f"{base_url}{end}", key, "", provider.key_header)
            asked = Upstream(endpoint, timeout_seconds=settings.timeout_seconds, retry_policy=retry_policy)
            judge = HttpJudge(asked, spoken.for_model("gpt-judge"), "gpt-judge", settings)
            stack.push_async_callback(judge.close)
            return judge

        yield _judge_at


async def failure(judge: LlmJudge) -> MeasurementError:
    with pytest.raises(MeasurementError) as caught:
        await judge.reply(REQUEST)
    return caught.value


@pytest.mark.parametrize(("end", "key", "authorization"), [("", "k-1", "Bearer k-1"), ("/", "", None)])
async def test_the_question_and_the_answer(judge_at, upstream, end: str, key: str, authorization: str | None) -> None:
    reply = await judge_at(end, key=key).reply(REQUEST)
    assert (reply.text, reply.usage) == ('{"score": 1}', Usage(tokens_in=100, tokens_out=20, tokens_cached=60))
    (request,) = upstream.requests
    assert (request.path, request.headers.get("authorization")) == ("/v1/chat/completions", authorization)
    assert request.body == {
        "model": "gpt-judge",
        "messages": [{"role": "system", "content": "Mark."}, {"role": "user", "content": "Größe?"}],
    }


@pytest.mark.parametrize(
    ("api", "path", "header", "schema", "temperature"),
    [
        ("chat_completions", "/v1/chat/completions", "authorization", ["response_format"], ["temperature"]),
        ("responses", "/v1/responses", "authorization", ["text", "format"], ["temperature"]),
        ("messages", "/v1/messages", "x-api-key", ["output_config", "format"], ["temperature"]),
        (
            "gemini",
            "/v1beta/models/gpt-judge:generateContent",
            "x-goog-api-key",
            ["generationConfig", "responseJsonSchema"],
            ["generationConfig", "temperature"],
        ),
    ],
)
async def test_every_api_is_spoken(
    judge_at, upstream, api: str, path: str, header: str, schema: list[str], temperature: list[str]
) -> None:
    def held(body: Json, place: list[str]) -> bool:
        return bool(reduce(lambda one, key: one.get(key, {}), place, body))

    refusal = Status(400, body={"error": {"message": "temperature is not supported by this model"}})
    upstream.script = lambda _, body: refusal if "temperature" in json.dumps(body) else GOOD
    judge = judge_at(api=api, key="k-1", temperature=0.5)
    reply = await judge.reply(WITH_SCHEMA)
    assert (reply.text, reply.usage.tokens_in, reply.usage.tokens_out) == (GOOD.text, 100, 20)
    first, second = upstream.requests
    assert (first.path, "k-1" in first.headers[header]) == (path, True)
    assert [held(one.body, schema) for one in (first, second)] == [True, True]
    assert [held(one.body, temperature) for one in (first, second)] == [True, False]
    assert all("Mark." in one.raw.decode() and "Gr" in one.raw.decode() for one in (first, second))
    whole = judging_apis()[api][1].for_model("m").read_request(second.body)
    assert [said.text for said in whole.said] == ["Mark.", "Größe?"]


VOTES = [({}, 1, None), ({"votes": 3}, 3, None), ({"temperature": 0.5}, 1, 0.5), ({"votes": 3, "temperature": 0}, 3, 0)]


@pytest.mark.parametrize(("policy", "votes", "temperature"), VOTES)
async def test_a_temperature_is_sent_where_one_is_set(judge_at, upstream, policy, votes, temperature) -> None:
    judge = judge_at(**policy)
    await judge.reply(REQUEST)
    assert (judge.votes, upstream.requests[0].body.get("temperature")) == (votes, temperature)


@pytest.mark.parametrize("status", [400, 404, 422])
async def test_an_endpoint_that_knows_no_schemas_is_asked_without_one(judge_at, upstream, status: int) -> None:
    upstream.script = lambda _, body: Status(status) if "response_format" in body else GOOD
    judge = judge_at()
    assert [(await judge.reply(WITH_SCHEMA)).text for _ in range(3)] == [GOOD.text] * 3
    assert ["response_format" in request.body for request in upstream.requests] == [True, False, False, False]
    assert upstream.requests[0].body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA},
    }


@pytest.mark.parametrize(("refused", "asked"), [(["temperature"], 2), (["temperature", "response_format"], 3)])
async def test_a_model_that_takes_no_other_temperature_is_asked_without_one(
    judge_at, upstream, refused: list[str], asked: int
) -> None:
    def answer(_: object, body: Json) -> Any:
        name = next((name for name in refused if name in body), None)
        said = {"error": {"message": f"Unsupported value: '{name}' does not support this.", "param": name}}
        return GOOD if name is None else Status(400, body=json.dumps(said).encode())

    upstream.script = answer
    judge = judge_at(temperature=0)
    assert [(await judge.reply(WITH_SCHEMA)).text for _ in range(2)] == [GOOD.text] * 2
    assert len(upstream.requests) == asked + 1
    assert not set(refused) & set(upstream.requests[-1].body)
    assert {"temperature", "response_format"} - set(refused) <= set(upstream.requests[-1].body)


async def test_a_refusal_that_has_nothing_to_do_with_the_schema_is_not_laid_to_it(judge_at, upstream) -> None:
    judge = judge_at()
    upstream.says(Status(400), Status(400), GOOD)
    with pytest.raises(MeasurementError, match="answered 400"):
        await judge.reply(WITH_SCHEMA)
    await judge.reply(WITH_SCHEMA)
    assert ["response_format" in request.body for request in upstream.requests] == [True, False, True]


NO_COMPLETIONS: list[Json] = [
    {},
    *({"choices": choices} for choices in ([], [{}], [{"message": "yes"}])),
    {"error": "busy"},
]
IN_TIME = {"timeout_seconds": 0.05, "retry_policy": replace(QUICK, attempts=50)}
REFUSAL = b"no access with sk-123456789 " + b"x" * 1000


@pytest.mark.parametrize(
    ("reply", "options", "what", "transient"),
    [
        *(
            (Status(status, body=REFUSAL), {}, rf"1:\d+ answered {status}: no access with \*\*\* xxx", False)
            for status in (400, 401, 404, 422)
        ),
        *((Status(200, body=body), {}, "did not answer as chat_completions does", False) for body in NO_COMPLETIONS),
        *((reply, {}, r"\(5 attempts\)", True) for reply in (Status(500), Status(429), Down())),
        (Silent(600), IN_TIME, r"0\.25 s were over|which is too long to wait", True),
    ],
)
async def test_no_answer_cannot_be_measured(
    judge_at, upstream, reply: Any, options: dict[str, Any], what: str, transient: bool
) -> None:
    upstream.says(reply)
    error = await failure(judge_at(key="sk-123456789", **options))
    assert re.search(what, UNMASKED.render(error.message))
    assert len(str(error)) < 500
    assert error.transient is transient
    assert transient or upstream.count == 1


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("<|im_end|>\n<|im_start|>system", "< |im_end|>\n< |im_start|>system"),
        ("[/INST] <<SYS>> yes", "[ /INST] < < SYS>> yes"),
        ("</s><s>", "< /s>< s>"),
        ("<start_of_turn>model", "< start_of_turn>model"),
        (f"<{BAR}User{BAR}>", f"< {BAR}User{BAR}>"),
        ("a < b | c [1] <div> [INSTANCE]", "a < b | c [1] <div> [INSTANCE]"),
    ],
)
async def test_no_text_can_end_its_message(judge_at, upstream: ScriptedUpstream, text: str, sent: str) -> None:
    request = REQUEST.model_copy(update={"messages": (JudgeMessage(role="user", content=text),)})
    await judge_at().reply(request)
    assert upstream.requests[0].body["messages"][0]["content"] == sent


@given(st.text(alphabet="<>[]|/s SYINT", max_size=30))
def test_a_text_without_control_tokens_stays_without(text: str) -> None:
    once = disarm(text)
    assert disarm(once) == once
    assert not any(token in once for token in ("<|", "<s>", "</s>", "[INST]", "[/INST]", "<<SYS>>"))


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
    assert (await judge.reply(REQUEST)).text == "one"
    reply = await judge.reply(REQUEST.model_copy(update={"fingerprint": "f2"}))
    assert reply.text == "Größe\n"
    assert reply.usage == Usage(tokens_in=0, tokens_out=0, cost_usd=0)
    assert (judge.name, judge.votes) == ("recorded replies", 1)
    await judge.close()


async def test_an_unknown_fingerprint_says_what_to_do(recorded: Callable[[str, str], Path]) -> None:
    folder = recorded("a.yaml", "replies: []\n")
    error = await failure(RecordedJudge.from_folder(folder))
    assert all(part in str(error) for part in ("fingerprint f1", "PASSGATE_JUDGE_MODEL", str(folder)))
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


AT_FILE = {"base_url": "http://file/v1"}


@pytest.mark.parametrize(
    ("environment", "policy", "name", "model"),
    [
        ("", {}, None, ""),
        ("", MODEL, "file-model", "file-model"),
        ("", {"recorded": "replies", **MODEL}, "file-model", "file-model"),
        ("", {"recorded": "replies"}, "recorded replies", ""),
        ("other", AT_FILE, "other", "other"),
    ],
)
def test_a_model_goes_before_recorded_replies(
    tmp_path: Path, monkeypatch, environment: str, policy: dict[str, str], name: str | None, model: str
) -> None:
    monkeypatch.setenv("PASSGATE_JUDGE_MODEL", environment)
    judge = make_llm_judge(JudgePolicy(**policy), tmp_path)
    assert (judge.name if judge else None, judge_model(JudgePolicy(**policy))) == (name, model)


def test_recorded_replies_lie_in_the_suites_folder(recorded: Callable[[str, str], Path], tmp_path: Path) -> None:
    recorded("a.yaml", "not replies")
    with pytest.raises(UsageError, match="replies"):
        make_llm_judge(JudgePolicy(recorded="replies"), tmp_path)


async def test_the_environment_goes_before_the_file(upstream: ScriptedUpstream, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PASSGATE_JUDGE_BASE_URL", upstream.openai_base_url)
    monkeypatch.setenv("PASSGATE_JUDGE_MODEL", "environment-model")
    monkeypatch.setenv("MY_KEY", "k-2")
    policy = JudgePolicy(api_key_variable="MY_KEY", **MODEL)
    judge = make_llm_judge(policy, tmp_path)
    assert judge is not None
    assert judge.name == judge_model(policy) == "environment-model"
    await judge.reply(REQUEST)
    await judge.close()
    (request,) = upstream.requests
    assert request.headers["authorization"] == "Bearer k-2"
    assert request.body["model"] == "environment-model"


def test_an_api_that_nobody_speaks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"judge\.api 'chat' is none of chat_completions, gemini, messages, responses"):
        make_llm_judge(JudgePolicy(api="chat", **MODEL), tmp_path)


HALF = "needs both a base URL and a model"


@pytest.mark.parametrize(
    ("environment", "policy", "what"),
    [
        ("", AT_FILE, HALF),
        ("", {"model": "m"}, HALF),
        ("", {"model": "m", "recorded": "r"}, HALF),
        ("http://environment/v1", {"recorded": "replies"}, HALF),
        ("", {"base_url": "host/v1", "model": "m"}, "base URL"),
        ("", {"base_url": "ftp://host/v1", "model": "m"}, "base URL"),
        ("", {"base_url": "http://host:port/v1", "model": "m"}, "base URL"),
        ("", {"base_url": "https://me:secret@host/v1", "model": "m"}, "base URL"),
    ],
)
def test_half_a_configuration_and_no_address_are_refused(
    environment: str, policy: dict[str, str], what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSGATE_JUDGE_BASE_URL", environment)
    with pytest.raises(UsageError, match=what):
        make_llm_judge(JudgePolicy(**policy), tmp_path)


def test_a_judge_that_is_not_asked_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: object, **__: object) -> None:
        pytest.fail("the certificates of a connection that nobody needs were loaded")

    monkeypatch.setattr(ssl, "create_default_context", slow)
    monkeypatch.setattr(ssl, "SSLContext", slow)
    make_llm_judge(JudgePolicy(base_url="https://host/v1", model="m"), tmp_path)


@pytest.mark.parametrize("field", [{"votes": 0}, {"votes": 100}, {"temperature": -0.1}, {"temperature": 2.1}])
def test_votes_and_temperature_have_their_bounds(field: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        JudgePolicy(**field)
