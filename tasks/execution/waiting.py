"""The trials of a batch that have not begun: each begins once, or is given back to the coordinator."""

from collections.abc import Callable, Iterable

from passgate.tasks.execution.scheduler import TrialKey

_Order = Callable[[TrialKey], tuple[bool, int]]


class WaitingTrials:
    """Trials that wait for their turn, in their order."""

    def __init__(self, keys: Iterable[TrialKey]) -> None:
        self._waiting = dict.fromkeys(keys)
        self._begun: set[str] = set()  # Eval tasks
        self.released: tuple[TrialKey, ...] = ()
        """The trials that were given back."""

    @property
    def keys(self) -> tuple[TrialKey, ...]:
        return tuple(self._waiting)

    def __contains__(self, key: TrialKey) -> bool:
        return key in self._waiting

    def begin(self, key: TrialKey) -> bool:
        """Take a trial whose turn has come; whether it is still to be run."""
        if key not in self._waiting:
            return False
        del self._waiting[key]
        self._begun.add(key[0])
        return True

    def release(self, parts: int) -> tuple[TrialKey, ...]:
        """Give back all but one of so many equal parts of what waits, once; gives what was given back.

        Eval tasks of which no trial has begun are given back first, and each as a whole as far as that can be: whether
        the trials of an eval task are still needed is decided where they run.
        """
        if not self.released:
            wanted = len(self._waiting) - -(-len(self._waiting) // parts)
            given = set(sorted(self._waiting, key=self._release_order())[:wanted])
            self.released = tuple(key for key in self._waiting if key in given)
            for key in self.released:
                del self._waiting[key]
        return self.released

    def _release_order(self) -> _Order:
        places = {task_id: place for place, task_id in enumerate(dict.fromkeys(key[0] for key in self._waiting))}
        return lambda key: (key[0] in self._begun, -places[key[0]])
