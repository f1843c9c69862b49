"""One process in which every trial sees its own variables and prints for itself."""

import asyncio
import io
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.live import Live

from passgate.tasks.agents.scoped import PRINTED_BYTES, Scope, ScopedThreads, prepare_process


@pytest.fixture(autouse=True)
def _process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_PROCESS", "process")
    monkeypatch.setenv("SHARED", "of the process")
    monkeypatch.delenv("OF_THE_TRIAL", raising=False)


@pytest.fixture
def scope() -> Scope:
    return Scope({"OF_THE_TRIAL": "trial", "SHARED": "of the trial"})


class TestVariables:
    def test_the_trials_lie_over_those_of_the_process(self, scope: Scope) -> None:
        before = dict(os.environ)
        with scope.entered():
            assert os.environ["OF_THE_TRIAL"] == os.getenv("OF_THE_TRIAL") == os.environ.get("OF_THE_TRIAL") == "trial"
            assert (os.environ["OF_THE_PROCESS"], os.environ["SHARED"]) == ("process", "of the trial")
            assert "OF_THE_TRIAL" in os.environ
            seen = dict(os.environ)
            assert seen == os.environ.copy() == {**before, "OF_THE_TRIAL": "trial", "SHARED": "of the trial"}
            assert sorted(os.environ) == sorted(seen)
            assert len(os.environ) == len(seen)
            assert (os.environ | {"MORE": "1"})["OF_THE_TRIAL"] == "trial"
        assert dict(os.environ) == before
        assert "OF_THE_TRIAL" not in os.environ

    def test_whoever_holds_the_environment_sees_them(self, scope: Scope) -> None:
        from os import environ

        held = environ
        with scope.entered():
            assert held["OF_THE_TRIAL"] == "trial"

    def test_a_change_of_a_trials_variable_is_the_trials(self, scope: Scope) -> None:
        with scope.entered():
            os.environ["SHARED"] = "changed"
            assert os.environ["SHARED"] == "changed"
            assert os.environ.setdefault("SHARED", "other") == "changed"
            assert os.environ.pop("SHARED") == "changed"
            assert "SHARED" not in os.environ
            assert "SHARED" not in dict(os.environ)
            with pytest.raises(KeyError):
                os.environ["SHARED"]
            with pytest.raises(KeyError):
                del os.environ["SHARED"]
            assert os.environ.setdefault("SHARED", "again") == "again"
            with pytest.raises(TypeError):
                os.environ["SHARED"] = 3  # type: ignore[assignment]
            assert os.environ["SHARED"] == "again"
        assert os.environ["SHARED"] == "of the process"
        with Scope({"SHARED": "other"}).entered():
            assert os.environ["SHARED"] == "other"

    def test_a_change_of_another_variable_is_the_processs(self, scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
        """A module that is imported in one trial may set what all of them need."""
        with scope.entered():
            monkeypatch.setenv("LATE", "set")
            monkeypatch.delenv("OF_THE_PROCESS")
        assert os.environ["LATE"] == "set"
        assert "OF_THE_PROCESS" not in os.environ

    SHOWS = [sys.executable, "-c", "import os; print(os.environ.get('OF_THE_TRIAL'), os.environ['SHARED'])"]

    @pytest.mark.parametrize(
        ("changes", "shown"),
        [
            ({}, "trial of the trial\n"),
            ({"env": None}, "trial of the trial\n"),
            ({"env": {"SHARED": "given"}}, "None given\n"),
        ],
    )
    def test_processes_inherit_them(self, scope: Scope, changes: dict[str, Any], shown: str) -> None:
        with scope.entered():
            assert subprocess.run(self.SHOWS, capture_output=True, text=True, check=True, **changes).stdout == shown
            assert subprocess.check_output(self.SHOWS, text=True, **changes) == shown
            with os.popen("echo $OF_THE_TRIAL") as opened:
                assert opened.read() == "trial\n"
        after = subprocess.run(self.SHOWS, capture_output=True, text=True, check=True)
        assert after.stdout == "None of the process\n"

    async def test_processes_of_asyncio_inherit_them(self, scope: Scope) -> None:
        with scope.entered():
            process = await asyncio.create_subprocess_exec(*self.SHOWS, stdout=subprocess.PIPE)
            assert (await process.communicate())[0] == b"trial of the trial\n"

    @given(st.dictionaries(st.from_regex(r"[A-Z]{1,3}", fullmatch=True), st.text("abc", max_size=3), max_size=5))
    def test_in_a_scope_it_is_a_mapping_as_any(self, variables: dict[str, str]) -> None:
        before = dict(os.environ)
        with Scope(variables).entered():
            assert dict(os.environ) == before | variables
            for name in variables:
                del os.environ[name]
            assert dict(os.environ) == {name: value for name, value in before.items() if name not in variables}
        assert dict(os.environ) == before


def in_a_task(look: Callable[[], str]) -> str:
    async def task() -> str:
        return look()

    async def run() -> str:
        return await asyncio.create_task(task())

    return asyncio.run(run())


def in_a_thread_of_asyncio(look: Callable[[], str]) -> str:
    async def run() -> str:
        return await asyncio.to_thread(look)

    return asyncio.run(run())


def in_a_pool(look: Callable[[], str]) -> str:
    with ScopedThreads(1) as pool:
        return pool.submit(look).result()


class TestWhereScopesReach:
    @pytest.mark.parametrize("where", [in_a_task, in_a_thread_of_asyncio, in_a_pool])
    def test_what_is_started_in_a_scope_is_in_it(self, scope: Scope, where) -> None:
        def look() -> str:
            print("printed")
            return os.environ["SHARED"]

        with scope.entered():
            assert where(look) == "of the trial"
        assert where(lambda: os.environ["SHARED"]) == "of the process"
        assert scope.printed == "printed\n"

    def test_one_pool_may_serve_many_scopes(self) -> None:
        def look(suffix: str, *, mark: str) -> str:
            return os.environ["SHARED"] + suffix + mark

        scopes = [Scope({"SHARED": str(number)}) for number in range(20)]
        with ScopedThreads(3) as pool:
            futures = []
            for scope in scopes:
                with scope.entered():
                    futures.append(
                        pool.submit(lambda suffix, *, mark: os.environ["SHARED"] + suffix + mark, "a", mark="b")
                    )
            assert [future.result() for future in futures] == [f"{number}ab" for number in range(20)]

    def test_other_threads_see_the_process(self, scope: Scope) -> None:
        seen: list[str] = []
        with scope.entered():
            thread = threading.Thread(target=lambda: seen.append(os.environ["SHARED"]))
            thread.start()
            thread.join()
            with ThreadPoolExecutor(1) as pool:
                seen.append(pool.submit(os.getenv, "SHARED").result() or "")
        assert seen == ["of the process"] * 2

    async def test_scopes_that_take_turns_do_not_mix(self) -> None:
        async def trial(number: int) -> Scope:
            scope = Scope({"SHARED": str(number)})
            with scope.entered():
                for _ in range(20):
                    print(os.environ["SHARED"])
                    await asyncio.sleep(0)
            return scope

        for number, scope in enumerate(await asyncio.gather(*(trial(number) for number in range(10)))):
            assert scope.printed == f"{number}\n" * 20


class TestPrinted:
    def test_both_streams_are_kept_in_order(self, scope: Scope, capsys) -> None:
        with scope.entered():
            print("one")
            sys.stderr.write("two\n")
            sys.stdout.writelines(["three", "\n"])
            sys.stdout.buffer.write("vier é\n".encode())
            print("five", end="", flush=True, file=sys.stderr)
        print("outside")
        print("too", file=sys.stderr)
        assert scope.printed == "one\ntwo\nthree\nvier é\nfive"
        assert capsys.readouterr() == ("outside\n", "too\n")

    def test_the_end_of_much_is_kept(self, scope: Scope) -> None:
        with scope.entered():
            for number in range(100_000):
                print(number)
        assert scope.printed.endswith("99998\n99999\n")
        assert PRINTED_BYTES - 10 < len(scope.printed) <= PRINTED_BYTES

    @pytest.mark.parametrize("shift", range(4))
    def test_no_half_character_is_kept(self, scope: Scope, shift: int) -> None:
        with scope.entered():
            sys.stdout.write("🙂" * PRINTED_BYTES + "x" * shift)
        assert set(scope.printed) <= {"🙂", "x"}
        assert len(scope.printed.encode()) <= PRINTED_BYTES

    def test_anything_printed_can_be_recorded(self, scope: Scope) -> None:
        with scope.entered():
            print("a\ud800b")
            sys.stdout.buffer.write(b"\xff")
        assert scope.printed.encode() == b"a\\ud800b\n\xef\xbf\xbd"

    def test_it_is_no_terminal_and_no_file(self, scope: Scope) -> None:
        with scope.entered():
            assert sys.stdout.isatty() is False
            assert sys.stdout.encoding == "utf-8"
            with pytest.raises(io.UnsupportedOperation):
                sys.stdout.fileno()

    def test_outside_everything_else_is_the_streams_own(self) -> None:
        stream = sys.stdout
        with Scope({}).entered():
            pass
        assert sys.stdout.encoding == stream.encoding
        assert sys.stdout.isatty() is False
        with pytest.raises(AttributeError):
            _ = sys.stdout.no_such_thing  # type: ignore[attr-defined]

    def test_a_stream_that_is_replaced_later_heeds_scopes_again(self, scope: Scope, monkeypatch) -> None:
        prepare_process()
        new = io.StringIO()
        monkeypatch.setattr(sys, "stdout", new)
        with scope.entered():
            print("inside")
        print("outside")
        assert (scope.printed, new.getvalue()) == ("inside\n", "outside\n")

    def test_a_process_without_streams_stays_without(self, scope: Scope, monkeypatch) -> None:
        monkeypatch.setattr(sys, "stdout", None)
        with scope.entered():
            print("to nobody")
        assert sys.stdout is None

    @pytest.mark.parametrize("prepared", [False, True], ids=["prepared within", "prepared before"])
    def test_a_live_display_goes_on(self, scope: Scope, monkeypatch, prepared: bool) -> None:
        terminal = io.StringIO()
        monkeypatch.setattr(sys, "stdout", terminal)
        if prepared:
            prepare_process()
        console = Console(force_terminal=True, width=40)
        with Live("progress", console=console, auto_refresh=False) as live:
            for _ in range(2):
                with scope.entered():
                    print("inside")
                    Console(width=40).print("inside too")
                print("outside")
                live.refresh()
        print("after")
        assert scope.printed == "inside\ninside too\n" * 2
        shown = terminal.getvalue()
        assert "inside" not in shown
        assert shown.count("outside") == 2
        assert shown.count("progress") >= 2
        assert shown.endswith("after\n")
