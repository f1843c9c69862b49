"""`passgate comment`: what it says once the verdict stands with a pull request, and what without a service."""

import json
from http.server import BaseHTTPRequestHandler

from tests.answering import Answer, serving
from tests.cli.commands import refused, told
from tests.scenarios import Scenario


def test_the_verdict_becomes_a_comment_whose_address_is_told(red: Scenario) -> None:
    bodies = []

    def answer(request: BaseHTTPRequestHandler, body: bytes) -> Answer:
        if request.command == "GET":
            return 200, {}, b'{"id": 42, "type": "User"}' if request.path.startswith("/user") else b"[]"
        bodies.append(json.loads(body)["body"])
        return 201, {}, b'{"id": 1, "html_url": "https://forge.example/7#1"}'

    with serving(answer) as url:
        github = {"GITHUB_REPOSITORY": "ada/shop", "GITHUB_API_URL": url, "GITHUB_TOKEN": "t0ken"}
        said = told(red, "comment", "--pull-request", "7", **github)
        as_json = told(red, "comment", "--pull-request", "7", "--json", **github)
    assert said.split() == ["commented", "https://forge.example/7#1"]
    assert json.loads(as_json)["address"] == "https://forge.example/7#1"
    assert len(bodies) == 2
    assert "ci_merge FAIL" in bodies[0]


def test_outside_of_ci_nobody_knows_whose_comment_it_would_be(red: Scenario) -> None:
    assert "run this in a job of GitHub Actions or GitLab CI" in refused(red, "comment")
