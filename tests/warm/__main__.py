"""The process that has passgate imported and forks for each command: `python tests/warm SOCKET MODULE ...`.

It reads no request itself: a forked process reads its own from the connection that came with it. So this process stays
as it is after the imports, with one thread and without an event loop.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from contextlib import suppress
from types import FrameType, ModuleType
from typing import NoReturn

_MOST_DESCRIPTORS = 4  # The connection of a command and its three standard streams


def main() -> None:
    """Import, then fork for each command that comes over a socket, until its other end is closed."""
    control = socket.socket(fileno=int(sys.argv[1]))
    for name in sys.argv[2:]:
        _import(name)
    # Without this, the collector of each forked process writes to the pages of all that is imported.
    gc.freeze()
    signals, wakeup = socket.socketpair()
    wakeup.setblocking(False)
    signal.set_wakeup_fd(wakeup.fileno())
    signal.signal(signal.SIGCHLD, _do_nothing)
    # Of a terminal, where it is for the tests.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _serve(control, signals)


def _serve(control: socket.socket, signals: socket.socket) -> None:
    running: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        for source in (control, signals):
            selector.register(source, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is signals:
                    signals.recv(4096)
                    _report_ended(running)
                    continue
                sent, descriptors, _, _ = socket.recv_fds(control, 1, _MOST_DESCRIPTORS)
                if not sent:
                    return
                connection, *streams = descriptors
                process = os.fork()
                if process == 0:
                    _run(connection, streams)
                running[process] = socket.socket(fileno=connection)
                _send(running[process], process)
                for stream in streams:
                    os.close(stream)


def _report_ended(running: dict[int, socket.socket]) -> None:
    """Send the exit status of each command that has ended, as `waitpid` returns it."""
    while running:
        process, status = os.waitpid(-1, os.WNOHANG)
        if process == 0:
            return
        with running.pop(process) as connection:
            _send(connection, status)


def _send(connection: socket.socket, number: int) -> None:
    with suppress(OSError):  # The test has ended without waiting for its command.
        connection.sendall(f"{number}\n".encode())


def _run(connection: int, streams: list[int]) -> NoReturn:
    """Become the process of a command."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # A shell has the jobs in its background ignore some of them, nohup others.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with socket.socket(fileno=connection) as asked:
        request = json.loads(asked.makefile().readline())
    if request["new_session"]:
        os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, 1024)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    tempfile.tempdir = None
    sys.path[0] = request["folder"]
    _open_standard_streams()
    _exit(_exit_code(request["command"]))


def _exit_code(command: list[str]) -> int:
    try:
        return _passgate(command[3:]) if command[1:3] == ["-m", "passgate"] else _other(command)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")
            return 1
        return ended.code or 0
    except BaseException:  # noqa: BLE001 - as the interpreter does; this process must not go on as a server
        traceback.print_exc()
        return 1


def _passgate(arguments: list[str]) -> int:
    main_module = importlib.import_module("passgate.__main__")
    sys.modules["__main__"] = main_module
    sys.argv = [str(main_module.__file__), *arguments]
    return int(main_module.main())


def _other(command: list[str]) -> int:
    """Run `-m prefect`, or the code after `-c`, with Prefect's settings as they are in this environment."""
    if "prefect" in sys.modules:
        importlib.import_module("prefect.context").refresh_global_settings_context()
    if "-m" in command[:2]:
        _, _, module, *arguments = command
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        code, *arguments = command[command.index("-c") + 1 :]
        sys.argv = ["-c", *arguments]
        main_module = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(code, "<string>", "exec"), main_module.__dict__)
    return 0


def _exit(code: int) -> NoReturn:
    """End as the interpreter does, but leave the memory of all modules to the kernel."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _open_standard_streams() -> None:
    """Open them as Python does when it starts."""
    lines = "PYTHONUNBUFFERED" in os.environ
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    for number, name, errors in ((1, "stdout", "strict"), (2, "stderr", "backslashreplace")):
        stream = open(number, "w", encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
        stream.reconfigure(line_buffering=number == 2 or stream.isatty(), write_through=lines)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _import(name: str) -> None:
    """Import a module, and all modules of a package whose name ends with `.*`."""
    module = importlib.import_module(name.removesuffix(".*"))
    if name.endswith(".*"):
        for found in pkgutil.walk_packages(module.__path__, f"{module.__name__}."):
            importlib.import_module(found.name)


def _do_nothing(_kind: int, _frame: FrameType | None) -> None:
    """The number of the signal is read from the socket."""


if __name__ == "__main__":
    main()
