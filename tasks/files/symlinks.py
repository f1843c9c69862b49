"""The symbolic links that a path leads through."""

import os
from pathlib import Path

_MOST_STEPS = 1000


def way(path: Path) -> tuple[list[Path], Path]:
    """Return the links that an absolute path leads through, and its end, which need not exist."""
    links: list[Path] = []
    here, rest = Path(path.anchor), [*path.parts[1:]]
    for _ in range(_MOST_STEPS):
        if not rest:
            break
        part = rest.pop(0)
        step = here.parent if part == os.pardir else here / part
        if step.is_symlink():
            links.append(step)
            target = step.readlink()
            here = Path(target.anchor) if target.is_absolute() else here
            rest = [*target.parts[len(Path(target.anchor).parts) :], *rest]
        else:
            here = step
    return links, here
