"""`passgate view`: the pages of all runs, served on the loopback."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from playwright.sync_api import sync_playwright

from passgate.flows.cli.view import application
from tests.builders import a_finished, a_plan, a_policy, a_task
from tests.cli.commands import refused
from tests.project import Project

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
LIMIT = 300  # Seconds: a busy machine takes long


@contextmanager
def viewer(project: Project, *options: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The command, and the address that it says."""
    with project.started(project.command("view", *options)) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_interrupted(bare_project: Project, kind: signal.Signals) -> None:
    with viewer(bare_project) as (process, address), httpx.Client(timeout=LIMIT, trust_env=False) as client:
        assert address.startswith("http://127.0.0.1:")
        answer = client.get(address)
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
        assert "There are no runs yet" in answer.text
        without_token = address.rstrip("/").rpartition("/")[0]
        for path in ("/", "/x/", "/runs/", "/%FF/"):
            assert client.get(f"{without_token}{path}").status_code == 404
        # The client's connection is still open.
        process.send_signal(kind)
        _, errors = process.communicate()
    assert (process.returncode, errors) == (130, "passgate: interrupted\n")


@pytest.mark.slow
def test_a_port_that_is_taken_is_told(bare_project: Project) -> None:
    with viewer(bare_project, "--quiet") as (_, address):
        port = address.split(":")[2].partition("/")[0]
        assert "choose another one with --port" in refused(bare_project, "view", "--port", port)


async def test_only_who_knows_the_token_gets_an_answer(bare_project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bare_project.path)
    transport = httpx.ASGITransport(app=application("right-token"))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        assert (await client.get("/right-token/")).status_code == 200
        assert (await client.get("/right-token/runs/none/report.html")).status_code == 404
        assert (await client.post("/right-token/")).status_code == 405
        for path in ("/", "/wrong-token/", "/right-toke/", "/right-token-/", "/%C3%A9/", "/right-token"):
            assert (await client.get(path)).status_code == 404


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")
def test_the_page_of_a_run_that_goes_on_follows_it(bare_project: Project) -> None:
    run_id, task = "20260131T000000Z-ci_merge-ffff", a_task()
    plan = a_plan(task, run_id=run_id, policy=a_policy(suites=["golden"]))
    run = bare_project.write(f".passgate/runs/{run_id}/plan.json", plan.model_dump_json(exclude_unset=True)).parent
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with viewer(bare_project, "last", "--quiet") as (_, address), sync_playwright() as playwright:
        assert address.endswith(f"/runs/{run_id}/report.html")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments, timeout=LIMIT * 1000)
        tab = browser.new_page()
        tab.goto(address, timeout=LIMIT * 1000)
        assert "0 of 3 trials are done" in tab.locator("#live").inner_text()
        (run / "journal.jsonl").write_text(f"{a_finished(task, 0).model_dump_json()}\n", encoding="utf-8")
        tab.get_by_text("1 of 3 trials are done").wait_for(timeout=LIMIT * 1000)
        assert "yes" in tab.locator("[id='golden/say-yes/0']").inner_text()
        browser.close()
