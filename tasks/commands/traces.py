"""Send the recorded trials of a run as OpenTelemetry traces to an OTLP endpoint. It needs the extra `otel`.

The names are those of the semantic conventions for generative AI: https://opentelemetry.io/docs/specs/semconv/gen-ai/
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer, set_span_in_context

from passgate import __version__
from passgate.tasks.errors import ExitCode, PassgateError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.run import Plan
from passgate.tasks.model.transcript import Message, ToolCall, Transcript
from passgate.tasks.model.trial import Trial, TrialStatus

_SPANS_AT_ONCE: Final = 512
_LONGEST_TEXT: Final = 20_000
_NS: Final = 10**9


class TraceExportError(PassgateError):
    """The endpoint did not accept all traces. It may have stored some of them."""

    exit_code = ExitCode.INCONCLUSIVE


def send_traces(run_id: str, *, endpoint: str | None, with_content: bool) -> int:
    """Send a trace of every finished trial of a run, to OpenTelemetry's endpoint by default. Return how many spans.

    With content the spans have messages, arguments and results. Raise `UsageError` without the run, `TraceExportError`.
    """
    store = RunStore.of(run_id)
    plan = store.read_plan()
    service = {"service.name": "passgate", "service.version": __version__}
    resource = Resource.create(service | {"passgate.run_id": run_id, "passgate.gate": str(plan.gate)})
    exporter = OTLPSpanExporter(endpoint=endpoint)
    try:
        batches, ids = _SpanBatches(exporter), _TrialIds()
        provider = TracerProvider(resource=resource, id_generator=ids, shutdown_on_exit=False)
        provider.add_span_processor(batches)
        trace = _TrialTrace(provider.get_tracer("passgate", __version__), plan, with_content)
        for trial in store.read_trials():
            transcript = store.read_transcript(trial.transcript_digest) if trial.transcript_digest else None
            ids.begin(f"{run_id}/{trial.suite}/{trial.task_id}/{trial.trial}")
            trace.send(trial, transcript or Transcript())
        batches.send()
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]
    return batches.sent


class _TrialIds(IdGenerator):
    """Generate ids from the trial, so that an endpoint recognises a trial that it receives twice."""

    def __init__(self) -> None:
        self._trial, self._spans = "", 0

    def begin(self, trial: str) -> None:
        """Set the name of the trial whose spans follow."""
        self._trial, self._spans = trial, 0

    def generate_trace_id(self) -> int:
        return self._number("trace", 16)

    def generate_span_id(self) -> int:
        self._spans += 1
        return self._number(str(self._spans), 8)

    def _number(self, what: str, size: int) -> int:
        return int.from_bytes(hashlib.sha256(f"{self._trial} {what}".encode()).digest()[:size], "big")


class _SpanBatches(SpanProcessor):
    """Send spans in batches as they end. Raise `TraceExportError`."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._ended: list[ReadableSpan] = []
        self.sent = 0

    def on_end(self, span: ReadableSpan) -> None:
        self._ended.append(span)
        if len(self._ended) >= _SPANS_AT_ONCE:
            self.send()

    def send(self) -> None:
        batch, self._ended = self._ended, []
        if batch and self._exporter.export(batch) is not SpanExportResult.SUCCESS:
            raise TraceExportError("the endpoint did not accept the traces: see the lines before this one")
        self.sent += len(batch)


@dataclass(frozen=True)
class _TrialTrace:
    """Send the spans of one trial: the agent's, and below it one per model call and per tool call."""

    tracer: Tracer
    plan: Plan
    with_content: bool

    def send(self, trial: Trial, transcript: Transcript) -> None:
        begin = round(trial.started_at.timestamp() * 1e6) * 1000
        name = f"{trial.suite}/{trial.task_id}"
        root = self.tracer.start_span(
            f"invoke_agent {self.plan.agent!s}",
            start_time=begin,
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": str(self.plan.agent),
                "gen_ai.conversation.id": f"{self.plan.run_id}/{name}/{trial.trial}",
                "passgate.suite": trial.suite,
                "passgate.task": name,
                "passgate.trial": trial.trial,
                "passgate.status": trial.status,
                "passgate.attempts": trial.attempts,
                "passgate.end": transcript.end,
                **_usage(transcript.whole_usage.model_dump()),
                **({"passgate.cost_usd": trial.cost} if trial.cost else {}),
                **({"gen_ai.response.model": trial.model} if trial.model else {}),
            },
        )
        end = self._steps(transcript, set_span_in_context(root), begin)
        for grade in trial.grades:
            evaluation = {
                "gen_ai.evaluation.name": grade.name,
                "gen_ai.evaluation.score.label": "pass" if grade.passed else "fail",
                **({"gen_ai.evaluation.score.value": grade.score} if grade.score is not None else {}),
            }
            root.add_event("gen_ai.evaluation.result", evaluation, timestamp=end)
        if trial.status is not TrialStatus.PASSED:
            root.set_attribute("error.type", str(trial.status))
            root.set_status(Status(StatusCode.ERROR, trial.reason))
        root.end(end_time=max(end, begin + round(transcript.wall_time_seconds * _NS)))

    def _steps(self, transcript: Transcript, parent: Context, begin: int) -> int:
        """Start the spans of the steps in sequence, because a transcript has durations and no start times."""
        earlier = list[dict[str, Any]]()
        for message in transcript.messages:
            if message.role == "assistant":
                end = begin + round((message.latency_ms or 0.0) * 1e6)
                span = self.tracer.start_span(
                    f"chat {message.model}".strip(),
                    context=parent,
                    kind=SpanKind.CLIENT,
                    start_time=begin,
                    attributes={
                        "gen_ai.operation.name": "chat",
                        **({"gen_ai.response.model": message.model} if message.model else {}),
                        **_usage(message.usage.model_dump()),
                        **self._content("gen_ai.input.messages", earlier),
                        **self._content("gen_ai.output.messages", [_as_parts(message)]),
                    },
                )
                span.end(end_time=end)
                begin = end
                for call in message.tool_calls:
                    begin = self._tool(call, parent, begin)
            earlier.append(_as_parts(message))
        return begin

    def _tool(self, call: ToolCall, parent: Context, begin: int) -> int:
        span = self.tracer.start_span(
            f"execute_tool {call.tool}",
            context=parent,
            start_time=begin,
            attributes={
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": call.tool,
                "passgate.refused": call.refused,
                **self._content("gen_ai.tool.call.arguments", call.arguments),
                **self._content("gen_ai.tool.call.result", call.result),
            },
        )
        if call.is_error or call.refused:
            span.set_attribute("error.type", "refused" if call.refused else "tool_error")
            span.set_status(Status(StatusCode.ERROR))
        end = begin + round((call.duration_ms or 0.0) * 1e6)
        span.end(end_time=end)
        return end

    def _content(self, name: str, value: Any) -> dict[str, str]:
        if not self.with_content or value is None:
            return {}
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        return {name: text[:_LONGEST_TEXT]}


def _as_parts(message: Message) -> dict[str, Any]:
    return {"role": message.role, "parts": [{"type": "text", "content": message.content}]}


def _usage(usage: Mapping[str, Any]) -> dict[str, int]:
    names = {
        "gen_ai.usage.input_tokens": usage["tokens_in"],
        "gen_ai.usage.output_tokens": usage["tokens_out"],
        "gen_ai.usage.cache_read.input_tokens": usage["tokens_cached"],
        "gen_ai.usage.cache_creation.input_tokens": usage["tokens_cache_write"],
    }
    return {name: amount for name, amount in names.items() if amount is not None}
