"""pass@k and pass^k by their unbiased estimators."""

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64] | list[int] | int
Floats = npt.NDArray[np.float64]


def pass_at_k(n: Integers, c: Integers, k: Integers) -> Floats:
    """The chance that at least one of k trials passes, estimated from c passes in n trials.

    1 - C(n-c, k) / C(n, k) (Chen et al. 2021, arXiv:2107.03374). Arrays broadcast; NaN where n < k, because
    fewer than k trials say nothing of k trials. Raises `ValueError` unless 0 <= c <= n and k >= 1.
    """
    trials, passed, size = _checked(n, c, k)
    return 1.0 - _all_drawn(trials, trials - passed, size)


def pass_hat_k(n: Integers, c: Integers, k: Integers) -> Floats:
    """The chance that all of k trials pass, estimated from c passes in n trials.

    C(c, k) / C(n, k) (Yao et al. 2024, arXiv:2406.12045). Arrays broadcast; NaN where n < k.
    Raises `ValueError` unless 0 <= c <= n and k >= 1.
    """
    trials, passed, size = _checked(n, c, k)
    return _all_drawn(trials, passed, size)


def _checked(
    n: Integers, c: Integers, k: Integers
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    trials, passed, size = np.broadcast_arrays(*(np.asarray(value, dtype=np.int64) for value in (n, c, k)))
    if np.any(passed < 0) or np.any(passed > trials) or np.any(size < 1):
        raise ValueError("needs 0 <= c <= n and k >= 1")
    return trials, passed, size


def _all_drawn(total: npt.NDArray[np.int64], marked: npt.NDArray[np.int64], size: npt.NDArray[np.int64]) -> Floats:
    """C(marked, size) / C(total, size): the chance that a draw without replacement finds only marked ones.

    Multiplied up factor by factor, so that no binomial coefficient can overflow.
    """
    result = np.where(total >= size, 1.0, np.nan)
    for drawn in range(int(size.max(initial=0))):
        left = np.maximum(total - drawn, 1)
        factor = np.clip((marked - drawn) / left, 0.0, 1.0)
        result = np.where(drawn < size, result * factor, result)
    return result
