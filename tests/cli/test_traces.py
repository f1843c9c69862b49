"""`passgate traces`: what it says once the trials of a run have been sent."""

import json
from http.server import BaseHTTPRequestHandler

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.answering import Answer, serving
from tests.cli.commands import told
from tests.scenarios import Scenario


def test_the_trials_of_a_run_are_sent_and_counted(red: Scenario) -> None:
    names = []

    def answer(_: BaseHTTPRequestHandler, body: bytes) -> Answer:
        for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            names.extend(span.name for of_scope in of_resource.scope_spans for span in of_scope.spans)
        return 200, {}, b""

    with serving(answer) as url:
        said = told(red, "traces", "--endpoint", f"{url}/v1/traces")
        sent = len(names)
        as_json = told(red, "traces", "--endpoint", f"{url}/v1/traces", "--json")
    assert names.count("invoke_agent nop") == 2 * 4
    assert said == f"sent {sent} spans\n"
    assert json.loads(as_json) == {"spans": sent}
