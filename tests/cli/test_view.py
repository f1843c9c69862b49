"""`passgate view`: the pages of all runs, served on the loopback."""

import os
import shutil
import signal
import subprocess
from contextlib import AbstractContextManager

import httpx
import pytest
from playwright.sync_api import sync_playwright

from passgate.flows.cli.view import application
from tests.builders import a_finished, a_plan, a_policy, a_task
from tests.cli.commands import refused
from tests.project import Project

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
LIMIT = 300  # Seconds: a busy machine takes long


def viewer(project: Project, *options: str) -> AbstractContextManager[subprocess.Popen[str]]:
    return project.started(project.command("view", *options))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_interrupted(bare_project: Project, kind: signal.Signals) -> None:
    with viewer(bare_project) as process, httpx.Client(timeout=LIMIT, trust_env=False) as client:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        answer = client.get(address)
        assert answer.status_code == 200
        assert "There are no runs yet" in answer.text
        assert answer.headers["cache-control"] == "no-store"
        without_token = address.rstrip("/").rpartition("/")[0]
        for path in ("/", "/x/", "/runs/", "/%FF/"):
            assert client.get(f"{without_token}{path}").status_code == 404
        # The client's connection is still open.
        process.send_signal(kind)
        _, errors = process.communicate()
    assert process.returncode == 130
    assert errors == "passgate: interrupted\n"


@pytest.mark.slow
def test_a_port_that_is_taken_is_told(bare_project: Project) -> None:
    with viewer(bare_project, "--quiet") as process:
        assert process.stdout is not None
        port = process.stdout.readline().split(":")[2].partition("/")[0]
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
    run_id = "20260131T000000Z-ci_merge-ffff"
    task = a_task()
    folder = bare_project.path / ".passgate" / "runs" / run_id
    folder.mkdir(parents=True)
    plan = a_plan(task, run_id=run_id, policy=a_policy(suites=["golden"]))
    (folder / "plan.json").write_text(plan.model_dump_json(exclude_unset=True), encoding="utf-8")
    with (
        (folder / "journal.jsonl").open("a", encoding="utf-8") as journal,
        viewer(bare_project, "last", "--quiet") as process,
        sync_playwright() as playwright,
    ):
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.endswith(f"/runs/{run_id}/report.html")
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments, timeout=LIMIT * 1000)
        tab = browser.new_page()
        tab.goto(address, timeout=LIMIT * 1000)
        assert "0 of 3 trials are done" in tab.locator("#live").inner_text()
        journal.write(f"{a_finished(task, 0).model_dump_json()}\n")
        journal.flush()
        tab.get_by_text("1 of 3 trials are done").wait_for(timeout=LIMIT * 1000)
        assert "yes" in tab.locator("[id='golden/say-yes/0']").inner_text()
        browser.close()
