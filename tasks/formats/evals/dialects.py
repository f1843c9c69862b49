"""The dialects of eval files: to add one, write a file that has its `EvalDialect` and name that here."""

from pathlib import Path

from passgate.tasks.formats.evals.documents import Documents
from passgate.tasks.formats.evals.node import Node
from passgate.tasks.formats.evals.prompts import PROMPTS
from passgate.tasks.formats.evals.raw import EvalDialect, EvalRoot

DIALECTS: list[EvalDialect] = [PROMPTS]
_PLAIN = EvalDialect(lambda _: True, lambda _: False)  # AgentEvals' and AgentV's suites


def find_dialect(root: Node) -> EvalDialect:
    """Return the dialect of the content of an eval file."""
    keys = root.value if isinstance(root.value, dict) else ()
    return next(dialect for dialect in (*DIALECTS, _PLAIN) if dialect.recognises(keys))


def read_root(file: Path, documents: Documents) -> EvalRoot | None:
    """Return the document of an eval file; `None` when it cannot be read."""
    key = ("root", file)
    if key not in documents.known:
        content = documents.content(file)
        documents.known[key] = None
        if content is not None:
            dialect = find_dialect(content)
            content = dialect.reader(documents, content).interpolated(content)
            documents.known[key] = EvalRoot(dialect.canonical(content), dialect)
    root: EvalRoot | None = documents.known[key]
    return root
