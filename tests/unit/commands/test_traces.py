"""Traces of a run, received by an OTLP endpoint on the loopback."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from passgate.tasks.commands import traces
from passgate.tasks.commands.traces import TraceExportError, send_traces
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.transcript import EndReason, Message, ToolCall, Transcript, Usage
from passgate.tasks.model.trial import FinishedTrial, TrialStatus
from tests.answering import Answer, serving
from tests.builders import STARTED, a_plan, a_task, a_trial

RUN = "20260131T120000Z-ci_merge-0a0b"
TASK = a_task()
TRANSCRIPT = Transcript(
    messages=(
        Message(role="user", content="Mend it."),
        Message(
            role="assistant",
            content="I look.",
            model="model-1",
            latency_ms=1500,
            usage=Usage(tokens_in=100, tokens_out=20, tokens_cached=60),
            tool_calls=(
                ToolCall(tool="read", arguments={"path": "a"}, result="text", duration_ms=250),
                ToolCall(tool="delete", refused=True),
            ),
        ),
    ),
    end=EndReason.FORBIDDEN_CALL,
    wall_time_seconds=2.0,
)


class Collector:
    """Keeps the spans that it gets, and answers with a status."""

    url: str
    status = 200

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.resources: list[dict[str, str]] = []

    def answer(self, _: BaseHTTPRequestHandler, body: bytes) -> Answer:
        for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resources.append(attributes(of_resource.resource))
            self.spans += [span for of_scope in of_resource.scope_spans for span in of_scope.spans]
        return self.status, {}, b""


def attributes(of: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in of.attributes}


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    with serving(collector.answer) as url:
        collector.url = f"{url}/v1/traces"
        yield collector


@pytest.fixture(autouse=True)
def _run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    grade = Grade(name="tests", type="tests", score=0.5, passed=False)
    trials = [
        a_trial(TASK, 0, status=TrialStatus.FAILED, reason="it failed", transcript_digest="d0", grades=(grade,)),
        a_trial(TASK, 1, status=TrialStatus.PASSED, transcript_digest="d1"),
    ]
    store = RunStore.of(RUN)
    store.here.mkdir(parents=True)
    store.plan.write_text(a_plan(TASK).model_dump_json(), encoding="utf-8")
    lines = [FinishedTrial(trial=one, transcript=TRANSCRIPT).model_dump_json() for one in trials]
    store.journal.write_text("\n".join(lines) + "\n", encoding="utf-8")


def sent(collector: Collector, *, with_content: bool = False) -> list[Any]:
    """The spans that the collector gets now."""
    collector.spans.clear()
    assert send_traces(RUN, endpoint=collector.url, with_content=with_content) == len(collector.spans)
    return collector.spans


def test_a_trial_is_a_trace_of_its_steps_and_tool_calls(collector: Collector) -> None:
    every = sent(collector)
    assert (len(every), len({span.trace_id for span in every})) == (8, 2)
    first = [span for span in every if span.trace_id == every[0].trace_id]
    spans = {span.name: span for span in first}
    root = spans["invoke_agent cli:my-agent"]
    assert set(spans) == {root.name, "chat model-1", "execute_tool read", "execute_tool delete"}
    assert {span.parent_span_id for span in first} == {b"", root.span_id}
    begin = round(STARTED.timestamp()) * 10**9
    times = [
        ((spans[name].start_time_unix_nano - begin) / 1e9, (spans[name].end_time_unix_nano - begin) / 1e9)
        for name in ("chat model-1", "execute_tool read", root.name)
    ]
    assert times == [(0.0, 1.5), (1.5, 1.75), (0.0, 2.0)]
    assert collector.resources[0]["passgate.run_id"] == RUN
    assert attributes(root)["passgate.status"] == "failed"
    assert root.status.message == "it failed"
    assert attributes(root.events[0])["gen_ai.evaluation.score.value"] == 0.5
    assert attributes(spans["execute_tool delete"])["error.type"] == "refused"
    step = attributes(spans["chat model-1"])
    assert (step["gen_ai.operation.name"], step["gen_ai.response.model"]) == ("chat", "model-1")
    usage = {name.partition(".usage.")[2]: amount for name, amount in step.items() if "gen_ai.usage." in name}
    assert usage == {"input_tokens": 100, "output_tokens": 20, "cache_read.input_tokens": 60}


def test_content_is_sent_only_where_it_is_asked_for(collector: Collector) -> None:
    names = {name for span in sent(collector) for name in attributes(span)}
    assert not any("messages" in name or "arguments" in name for name in names)
    spans = {span.name: attributes(span) for span in sent(collector, with_content=True)}
    assert "Mend it." in spans["chat model-1"]["gen_ai.input.messages"]
    assert spans["execute_tool read"]["gen_ai.tool.call.arguments"] == '{"path": "a"}'


def test_a_trial_that_is_sent_again_has_the_same_ids(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    before = [(span.trace_id, span.span_id) for span in sent(collector)]
    monkeypatch.setattr(traces, "_SPANS_AT_ONCE", 3)
    assert [(span.trace_id, span.span_id) for span in sent(collector)] == before


def test_an_endpoint_that_refuses_is_an_error(collector: Collector) -> None:
    collector.status = 400
    with pytest.raises(TraceExportError):
        sent(collector)
