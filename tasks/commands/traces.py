"""Traces: the recorded trials of a run as OpenTelemetry traces, a trace each, sent to an OTLP endpoint."""

from passgate import __version__
from passgate.tasks.errors import UsageError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.transcript import Transcript


def send_traces(run_id: str, *, endpoint: str | None, with_content: bool) -> int:
    """Send a trace of every finished trial of a run; gives the number of spans.

    `endpoint` is the URL that takes traces; `None` takes the one of OpenTelemetry's environment variables. With
    content the spans hold what was said and the arguments and results of tools. A trial that is sent again has the
    same ids. Raises `UsageError` without the extra `otel` and for a run that is not there, and `TraceExportError`.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider

        from passgate.tasks.commands.trace_spans import SpanBatches, TrialIds, TrialTrace
    except ImportError as error:
        raise UsageError("traces need the extra `otel`: pip install 'passgate[otel]'") from error

    store = RunStore.of(run_id)
    plan = store.read_plan()
    service = {"service.name": "passgate", "service.version": __version__}
    of_run = {"passgate.run_id": run_id, "passgate.gate": str(plan.gate)}
    exporter = OTLPSpanExporter(endpoint=endpoint)
    try:
        batches, ids = SpanBatches(exporter), TrialIds()
        provider = TracerProvider(resource=Resource.create(service | of_run), id_generator=ids, shutdown_on_exit=False)
        provider.add_span_processor(batches)
        trace = TrialTrace(provider.get_tracer("passgate", __version__), plan, with_content)
        for trial in store.read_trials():
            transcript = store.read_transcript(trial.transcript_digest) if trial.transcript_digest else None
            ids.begin(f"{run_id}/{trial.suite}/{trial.task_id}/{trial.trial}")
            trace.send(trial, transcript or Transcript())
        batches.send()
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]
    return batches.sent
