"""Connect an MCP client that knows only standard input and output with the MCP server of a trial.

    python -I -S mcp_stdio.py URL

Reads JSON-RPC messages from standard input, a line each, posts each of them to the URL and writes the answers. Agents
run it by its path inside of sandboxes, so it imports nothing of passgate.
"""

import json
import sys
import threading
import urllib.error
import urllib.request

_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_writing = threading.Lock()


def main(url: str) -> None:
    """Answer messages until standard input ends. Calls run side by side, as they do over HTTP."""
    running = []
    for line in sys.stdin.buffer:
        if line.strip():
            running.append(threading.Thread(target=_answer, args=(url, line)))
            running[-1].start()
    for thread in running:
        thread.join()


def post(url: str, message: bytes) -> bytes:
    """Return the answer to a message. Raises `OSError`."""
    with _opener.open(urllib.request.Request(url, message, _HEADERS)) as response:  # noqa: S310 - it comes from passgate
        answer: bytes = response.read()
    return answer


def _answer(url: str, line: bytes) -> None:
    try:
        answer = post(url, line)
    except urllib.error.HTTPError as error:
        answer = error.read()
        if not answer.startswith(b"{"):
            answer = _failure(line, f"{error.code} {error.reason}")
    except OSError as error:
        answer = _failure(line, str(error))
    if answer.strip():
        with _writing:
            sys.stdout.buffer.write(answer.strip().replace(b"\n", b" ") + b"\n")
            sys.stdout.buffer.flush()


def _failure(line: bytes, why: str) -> bytes:
    """Return the JSON-RPC error that answers a message; nothing for a notification."""
    try:
        number = json.loads(line).get("id")
    except (ValueError, AttributeError):
        return b""
    error = {"code": -32603, "message": f"passgate's MCP server: {why}"}
    return b"" if number is None else json.dumps({"jsonrpc": "2.0", "id": number, "error": error}).encode()


if __name__ == "__main__":
    main(sys.argv[1])
