"""Start a command where one server outside of its network can be reached, and nothing else.

    python -I -S bridge.py PORT SOCKET COMMAND...

Listens on 127.0.0.1:PORT, leaves a process behind that hands every connection on to the Unix socket SOCKET, and
becomes COMMAND. The network it is started in, and with it every process of a sandbox, ends with COMMAND.

It is run by its path inside of sandboxes, so it imports nothing of passgate and little of anything else.
"""

import os
import signal
import socket
import sys

_CHUNK = 64 * 1024


def main(port: int, path: str, command: list[str]) -> None:
    """Never returns: raises `OSError` when the command or the bridge cannot be started."""
    with socket.create_server(("127.0.0.1", port), backlog=1024) as listener:
        _leave_behind(listener, path)
    # Python ignores these two, and a command would inherit that.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    os.execvp(command[0], command)  # noqa: S606 - becoming the command is the purpose


def _leave_behind(listener: socket.socket, path: str) -> None:
    """Start the forwarder as nobody's child: a command that waits for its children must not find one it never had."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        os.setsid()  # a command may send signals to its whole group
        if os.fork() == 0:
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(nothing, stream)  # else a reader of the command's output would never see its end
            _forward(listener, path)
    finally:
        os._exit(0)


def _forward(listener: socket.socket, path: str) -> None:
    import threading  # the command need not wait for it

    def relay(inside: socket.socket, outside: socket.socket) -> None:
        with inside, outside:
            inside.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            outside.connect(path)
            back = threading.Thread(target=_pump, args=(outside, inside))
            back.start()
            _pump(inside, outside)
            back.join()

    threading.stack_size(256 * 1024)  # two threads for each connection, which only hand bytes on
    while True:
        try:
            outside = socket.socket(socket.AF_UNIX)
            inside, _ = listener.accept()
            threading.Thread(target=relay, args=(inside, outside)).start()
        except (OSError, RuntimeError):
            # Too many open files or threads: who comes now waits until others have gone.
            threading.Event().wait(0.05)


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Hand on what comes, as it comes, and that it has ended. What breaks on one side is ended on both."""
    try:
        while data := source.recv(_CHUNK):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for side in (source, target):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
