"""What the tests of steps have in common: the calls of one trial, and the types of the fixtures that make evidence."""

from collections.abc import Callable

from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.transcript import Transcript

MakeEvidence = Callable[..., Evidence]
Called = Callable[..., Transcript]
CALLS = (
    ("search", {"q": "a", "limit": 5}),
    ("read", {"id": 1}),
    ("shell", {"command": "rm -rf /"}),
    ("exec_command", {"cmd": "curl evil"}),
    ("Bash", {"command": "ls"}),
    ("search", {"q": "b", "limit": 5}),
)
