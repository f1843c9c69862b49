"""The way from a sandbox without network to one server, and to nothing else."""

import asyncio
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from tests.processes import marked_processes
from tests.unit.sandboxes.conftest import left_in

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.sandbox import Bridge, ProcessResult
from passgate.tasks.sandboxes import bridge as bridge_program

Handler = Callable[[socket.socket], None]


@contextmanager
def listening() -> Iterator[tuple[list[socket.socket], Bridge]]:
    """Two sockets, on the loopback and on a path, and the bridge to whoever accepts on them."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="passgate-bridge-")))
        loopback = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=1024))
        at_path = stack.enter_context(socket.socket(socket.AF_UNIX))
        at_path.bind(str(folder / "socket"))
        at_path.listen(1024)
        yield [loopback, at_path], Bridge(port=loopback.getsockname()[1], socket=folder / "socket")


@pytest.fixture
def served() -> Iterator[Callable[[Handler], Bridge]]:
    """Serve each connection with a function, in a thread of its own."""
    with ExitStack() as stack:

        def serve(handler: Handler) -> Bridge:
            sockets, bridge = stack.enter_context(listening())
            for each in sockets:
                threading.Thread(target=_accept, args=(each, handler), daemon=True).start()
                stack.callback(each.shutdown, socket.SHUT_RDWR)
            return bridge

        yield serve


def _accept(listener: socket.socket, handler: Handler) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_handle, args=(connection, handler), daemon=True).start()


def _handle(connection: socket.socket, handler: Handler) -> None:
    with connection, suppress(OSError):
        handler(connection)


def says_hello(connection: socket.socket) -> None:
    connection.sendall(b"hello")


def echoes(connection: socket.socket) -> None:
    while data := connection.recv(65536):
        connection.sendall(data)


def counts_to_the_end(connection: socket.socket) -> None:
    size = 0
    while data := connection.recv(65536):
        size += len(data)
    connection.sendall(b"%d" % size)


@pytest.fixture
def web() -> Iterator[Bridge]:
    """A web server of the kind that the meter is."""
    begun = asyncio.Event()

    async def answer(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"] == "/go-on":
            begun.set()
        if scope["path"] == "/stream":
            await send({"type": "http.response.body", "body": b"first\n", "more_body": True})
            await begun.wait()
        more = scope["path"] == "/echo"
        while more:
            message = await receive()
            more = message["more_body"]
            await send({"type": "http.response.body", "body": message["body"], "more_body": True})
        await send({"type": "http.response.body", "body": b"last\n"})

    with listening() as (sockets, bridge):
        server = uvicorn.Server(uvicorn.Config(answer, lifespan="off", log_config=None, loop="asyncio", ws="none"))
        serving = threading.Thread(target=server.run, args=(sockets,))
        serving.start()
        yield bridge
        server.should_exit = True
        serving.join()


def python(program: str, *arguments: object) -> list[str]:
    """A program of Python; `connected()` in it is a connection to the port that is its first argument."""
    connects = (
        "import socket, sys\nconnected = lambda: socket.create_connection(('127.0.0.1', int(sys.argv[1])), 240)\n"
    )
    return [sys.executable, "-c", connects + textwrap.dedent(program), *map(str, arguments)]


@pytest.fixture
def run(sandbox_of):
    """Run an agent's command that has a bridge."""

    async def _run(bridge: Bridge | None, command: list[str], **changes: Any) -> ProcessResult:
        async with sandbox_of(bridge=bridge) as sandbox:
            return await sandbox.for_the_agent.run(command, **{"seconds": 240, **changes})

    return _run


HELLO = "print(connected().makefile().read())"
ENDS_ONE_SIDE = """
    connection = connected()
    connection.sendall(b"x" * 3_000_000)
    connection.shutdown(socket.SHUT_WR)
    print(connection.makefile().read())
"""
HUNDREDS_AT_ONCE = """
    connections = [connected() for _ in range(400)]
    for number, connection in enumerate(connections):
        connection.sendall(b"%03d" % number)
    print(all(connection.recv(3) == b"%03d" % number for number, connection in enumerate(connections)))
"""
TAKE_TURNS = """
    import concurrent.futures
    def echoed(number):
        with connected() as connection:
            connection.sendall(b"%03d" % number)
            return connection.recv(3) == b"%03d" % number
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        print(list(pool.map(echoed, range(200))).count(True))
"""
LARGE_BODIES = """
    import urllib.request
    body = bytes(range(256)) * 20_000
    with urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/echo", data=body) as answer:
        print(answer.status, answer.read() == body + b"last\\n")
"""
# The server sends its second piece only when the first one was seen.
PIECE_BY_PIECE = """
    import urllib.request
    base = f"http://127.0.0.1:{sys.argv[1]}"
    with urllib.request.urlopen(base + "/stream", timeout=240) as answer:
        print(answer.readline())
        urllib.request.urlopen(base + "/go-on").read()
        print(answer.readline())
"""


async def test_an_agent_reaches_the_server_however_it_is_isolated(isolation: str, run, served) -> None:
    bridge = served(says_hello)
    result = await run(bridge, python(HELLO, bridge.port))
    assert (result.exit_code, result.stdout) == (0, "hello\n"), result.stderr


@pytest.mark.usefixtures("needs_bubblewrap")
class TestBubblewrap:
    @pytest.mark.parametrize(
        ("program", "printed"), [(LARGE_BODIES, "200 True\n"), (PIECE_BY_PIECE, "b'first\\n'\nb'last\\n'\n")]
    )
    async def test_bodies_go_both_ways_and_streams_arrive_piece_by_piece(self, run, web, program, printed) -> None:
        assert (await run(web, python(program, web.port))).stdout == printed

    @pytest.mark.parametrize(
        ("handler", "program", "printed"),
        [
            (counts_to_the_end, ENDS_ONE_SIDE, "3000000\n"),
            (echoes, HUNDREDS_AT_ONCE, "True\n"),
            (lambda connection: None, HELLO, "\n"),
        ],
        ids=["one side ends before the other", "hundreds at once", "a server that hangs up"],
    )
    async def test_connections_are_carried_whole(
        self, run, served, handler: Handler, program: str, printed: str
    ) -> None:
        bridge = served(handler)
        assert (await run(bridge, python(program, bridge.port))).stdout == printed

    def test_more_connections_than_files_may_be_open_take_turns(self, served) -> None:
        bridge = served(echoes)
        few_files = ["sh", "-c", 'ulimit -n 48; exec "$@"', "sh"]
        across = [sys.executable, "-I", "-S", bridge_program.__file__, str(bridge.port), str(bridge.socket)]
        sandbox = ["bwrap", "--dev-bind", "/", "/", "--unshare-net", "--unshare-pid", "--die-with-parent", "--"]
        command = [*sandbox, *few_files, *across, *python(TAKE_TURNS, bridge.port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert done.stdout == "200\n", done.stderr

    async def test_nothing_else_is_reached(self, run, served, port: int) -> None:
        bridge = served(says_hello)
        assert (await run(bridge, python(HELLO, port))).exit_code != 0
        assert (await run(bridge, python(HELLO, port), network=True)).exit_code == 0, "it is there"

    async def test_only_agents_have_it_and_each_command_has_one(self, sandbox_of, served) -> None:
        bridge = served(says_hello)
        at_path = python("socket.socket(socket.AF_UNIX).connect(sys.argv[1])", bridge.socket)
        async with sandbox_of(bridge=bridge) as sandbox:
            for command in (python(HELLO, bridge.port), at_path):
                assert (await sandbox.run(command, seconds=240)).exit_code != 0
                assert (await sandbox.for_the_agent.run(command, seconds=240)).exit_code == 0
            commands = (sandbox.for_the_agent.run(python(HELLO, bridge.port), seconds=240) for _ in range(4))
            assert [result.stdout for result in await asyncio.gather(*commands)] == ["hello\n"] * 4

    async def test_with_the_network_there_is_no_bridge(self, run, served) -> None:
        bridge = served(says_hello)
        listed = "cat /proc/[0-9]*/cmdline"
        assert str(bridge.socket) in (await run(bridge, ["sh", "-c", listed])).stdout
        assert str(bridge.socket) not in (await run(bridge, ["sh", "-c", listed], network=True)).stdout
        assert (await run(bridge, python(HELLO, bridge.port), network=True)).stdout == "hello\n"

    async def test_a_server_that_is_gone_is_a_closed_connection(self, run) -> None:
        with listening() as (sockets, bridge):
            for each in sockets:
                each.close()
            assert (await run(bridge, python(HELLO, bridge.port))).stdout == "\n"

    async def test_an_agent_that_ends_its_group_keeps_its_way(self, run, served) -> None:
        bridge = served(says_hello)
        command = ["sh", "-c", 'trap "" TERM; kill -TERM 0; exec "$@"', "sh", *python(HELLO, bridge.port)]
        assert (await run(bridge, command)).stdout == "hello\n"

    async def test_a_bridge_that_does_not_work_is_no_reason_for_less_isolation(self, workbench_of, temporary) -> None:
        with pytest.raises(MeasurementError, match=r"cannot reach their models: .*socket"):
            workbench_of(bridge=Bridge(port=1025, socket=temporary / "meter/socket"))
        assert left_in(temporary) == []

    SEEN = """
        import json, os, signal, sys
        OTHERS = {"HOME", "TMPDIR", "PWD", "PASSGATE_PROCESS"}
        try:
            os.waitpid(-1, os.WNOHANG)
            children = "some"
        except ChildProcessError:
            children = "none"
        status = open("/proc/self/status").read().splitlines()
        print(json.dumps({
            "children": children,
            "signals": [line for line in status if line.startswith(("SigBlk", "SigIgn", "SigCgt", "CapEff"))],
            "files": sorted(os.listdir("/proc/self/fd")),
            "environment": sorted(item for item in os.environ.items() if item[0] not in OTHERS),
            "folder": os.path.basename(os.getcwd()),
            "arguments": sys.argv[1:],
            "umask": os.umask(0),
            "stdin": sys.stdin.read(),
        }))
    """

    async def test_a_command_cannot_tell_the_difference(self, run, served) -> None:
        command = python(self.SEEN, "a b", "", "\udcff", "--", "$x")
        told = {"stdin": b"told", "environment": {"GIVEN": "\udcfe"}}
        with_one, without = await run(served(says_hello), command, **told), await run(None, command, **told)
        assert with_one.stdout == without.stdout
        assert '"stdin": "told"' in without.stdout
        assert '"children": "none"' in without.stdout

    @pytest.mark.parametrize(
        "command",
        [
            *(
                ["sh", "-c", text]
                for text in ("echo out; echo err >&2; exit 7", "yes | head -n 1", "ulimit -c; ulimit -f")
            ),
            *(["sh", "-c", f"kill -{name} $$"] for name in ("TERM", "KILL")),
            *([program] for program in ("no-such-command", "./no-such-file", "/", "/etc/passwd", "")),
        ],
        ids=" ".join,
    )
    async def test_a_command_ends_as_it_would_without(self, run, served, command: list[str]) -> None:
        with_one, without = await run(served(says_hello), command), await run(None, command)
        end = (with_one.exit_code, with_one.stdout, with_one.stderr)
        assert end == (without.exit_code, without.stdout, without.stderr)

    async def test_a_command_that_does_not_listen_is_told_nothing(self, run, served) -> None:
        """Nobody else holds the other end of its standard input."""
        command = ["sh", "-c", "exec 0<&-; sleep 0.2; echo done"]
        assert (await run(served(says_hello), command, stdin=b"x" * 5_000_000)).stdout == "done\n"

    @pytest.mark.parametrize(
        ("command", "seconds"), [("true", 240), ("setsid sleep 600 & exit 3", 240), ("sleep 600", 0.2)]
    )
    async def test_nothing_of_it_is_left(self, sandbox_of, served, command: str, seconds: float) -> None:
        bridge = served(says_hello)
        async with sandbox_of(bridge=bridge) as sandbox:
            await sandbox.for_the_agent.run(["sh", "-c", command], seconds=seconds)
            assert marked_processes(str(bridge.socket)) == []
