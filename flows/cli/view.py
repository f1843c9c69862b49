"""`passgate view`: the pages of all runs in the browser."""

import secrets
import socket
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from passgate.flows.cli import options

if TYPE_CHECKING:
    from starlette.applications import Starlette

_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def view(
    run: Annotated[
        str | None, typer.Argument(metavar="RUN", help="Begin with this run: its id, the start of it, or `last`.")
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="The port on the loopback. 0: any free one.")
    ] = 0,
    open_page: options.OpenOption = False,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Serve the pages of all runs on the loopback, live while a run goes on. Ctrl-C ends it."""
    from passgate.flows.cli.output import json_text
    from passgate.flows.cli.terminal import open_in_browser, say
    from passgate.flows.process.interrupts import until_ended

    begin, token = _begin(run), secrets.token_urlsafe(24)
    with _listener(port) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/{token}/{begin}"
        # Without the address nobody can open the pages, so it is printed whatever is asked for.
        say(json_text({"address": address}) if as_json else address)
        if not (quiet or as_json):
            say("Only who knows this address sees the pages. Ctrl-C ends them.")
        if open_page:
            open_in_browser(address)
        until_ended(_serve(application(token), listener))
    return 0


def _begin(run: str | None) -> str:
    """Return the path of the first page. Raise `UsageError`."""
    from pathlib import Path

    from passgate.tasks.errors import UsageError
    from passgate.tasks.integrity.git import Checkout
    from passgate.tasks.planning.find_run import find_run, refuse_tracked_runs
    from passgate.tasks.reports.page.build import PAGE

    if run is None:
        refuse_tracked_runs(Checkout(Path.cwd()))
        return ""
    found = find_run(run)
    if "://" in found:
        raise UsageError(f"{found} is no run of this folder: write its page with `passgate report {found}`")
    return f"runs/{found}/{PAGE}"


def _listener(port: int) -> socket.socket:
    from passgate.tasks.errors import UsageError

    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise UsageError(f"cannot listen on port {port}: {error.strerror}: choose another one with --port") from error


def application(token: str) -> "Starlette":
    """Make the server. It answers only to paths that begin with the token."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from passgate.tasks.commands.view import HTML, Viewer, why_not
    from passgate.tasks.errors import PassgateError

    viewer = Viewer()

    def answer(request: Request) -> Response:
        # Bytes, because a comparison in constant time takes no other characters than ASCII as text.
        given = str(request.path_params["token"]).encode("utf-8", "surrogatepass")
        if not secrets.compare_digest(given, token.encode()):
            return Response("Not found", 404, _HEADERS)
        try:
            found = viewer.answer(str(request.path_params["path"]))
        except PassgateError as error:
            return Response(why_not(error), 500, _HEADERS, HTML)
        if found is None:
            return Response("Not found", 404, _HEADERS)
        return Response(found.text, 200, _HEADERS, found.content_type)

    served = Starlette(routes=[Route("/{token}/{path:path}", answer)])
    served.router.redirect_slashes = False
    return served


async def _serve(application: "Starlette", listener: socket.socket) -> None:
    import uvicorn

    config = uvicorn.Config(application, log_config=None, lifespan="off", access_log=False)
    server = uvicorn.Server(config)
    # Signals are the command's: uvicorn would wait for open connections first, and a browser keeps some.
    server.capture_signals = nullcontext  # type: ignore[method-assign,assignment]
    await server.serve([listener])
