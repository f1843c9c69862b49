"""How far the gate can be trusted: `python -m bench.gate_trust [--rates FILE.json] [--k N]`.

Gates drawn at random and decided by the gate's own code, under the policy that is shipped: how often an unchanged agent
is red, and how surely one that has fallen is found (a), what any test could find (b), limits on latency and cost (d),
early stop (e), intervals (g) and the first gates of a team (y). With --rates, a JSON list of
true pass rates or an object of name and rate, sections a and e of these tasks. Ends with 1 when a target is missed.
`--out` writes the results, `--page` the tables of docs/statistics.md, and with `--from` those of earlier results.
"""

import argparse
import resource
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from bench.gate_trust import bounds, early_stop, intervals, latency, trust, young
from bench.gate_trust.figures import Block
from bench.gate_trust.page import read_results, write_page, write_results
from bench.gate_trust.rates import read_rates
from bench.gate_trust.setting import TASKS, Scale, shipped_regression
from bench.gate_trust.worlds import RUN_EFFECT, World, worlds
from passgate.tasks.errors import InputError

SEED = 20260131
GATES = 10_000
MOST_LATENCY = 2_000
"""Gates of section d, which draws every trial of their baselines."""
MOST_K = 50
MOST_TRUST_GATES = 2_000
"""Of a world in section a: each has a baseline of its own draw, which takes long."""
MOST_YOUNG_GATES = 1_000
"""Of a world in section y, for each number of runs at the baseline."""
SECTIONS = "abdegy"


class Job(NamedTuple):
    """A part of a section, to be computed wherever there is a core."""

    work: Callable[..., Block]
    arguments: tuple[Any, ...]


def jobs(k: int | None, scale: Scale, sections: str) -> list[Job]:
    """Everything, in the order in which it is printed."""
    found = {
        "a": _trust_jobs([*worlds(RUN_EFFECT), *worlds()], scale),
        "b": [Job(bounds.of_a_task, ("b", tasks, k)) for tasks, k in ((TASKS, 3), (50, 4))],
        "d": _latency_jobs(scale),
        "e": [Job(early_stop.compared, ("e", kind, scale)) for kind in _kinds(k or 10)],
        "y": [Job(young.first_gates, ("y", agent, scale.at_most(MOST_YOUNG_GATES))) for agent in worlds()[:3]],
        "g": [Job(intervals.of_a_task, ("g",)), Job(intervals.of_a_suite, ("g",))],
    }
    return [job for section in sections for job in found[section]]


def _trust_jobs(agents: Sequence[World], scale: Scale) -> list[Job]:
    # The largest first, so that both cores have work until the end.
    scale = scale.at_most(MOST_TRUST_GATES)
    return [Job(trust.trusted, ("a", agent, scale)) for agent in reversed(agents)]


def _latency_jobs(scale: Scale) -> list[Job]:
    few = replace(scale, gates=min(scale.gates, MOST_LATENCY))
    noises = [
        *(latency.Noise(sigma) for sigma in latency.SIGMAS),
        *(latency.Noise(latency.SIGMAS[0], runs=runs) for runs in latency.THIN),
        *(latency.Noise(latency.SIGMAS[0], whole_run=by, persistence=lasts) for by, lasts in latency.WHOLE_RUN),
    ]
    return [
        *(Job(latency.noisy, ("d", noise, few)) for noise in noises),
        Job(latency.few_pairs, ("d", few)),
        Job(latency.busy, ("d", few)),
    ]


def _kinds(k: int) -> list[early_stop.Kind]:
    return [
        *(early_stop.strict(f"AND rule, 2 tasks x {k} at {rate}", (rate,) * 2, k) for rate in (0.5, 0.9, 0.99)),
        early_stop.strict(f"AND rule, 4 tasks x {k}, one at 0.5, the others at 0.99", (0.5, 0.99, 0.99, 0.99), k),
        *(early_stop.any_passes(f"OR rule, 3 tasks x 5 at {rate}", (rate,) * 3, 5) for rate in (0.5, 0.9)),
        *(early_stop.as_shipped(f"ci_merge as shipped, 2 % errors, at {rate}", rate, 0.02) for rate in (0.9, 0.99)),
    ]


def jobs_of_rates(rates: Sequence[float], k: int, scale: Scale, sections: str) -> list[Job]:
    """What is asked of given tasks: sections a and e."""
    agent = World("rates of a file", tuple(rates), k)
    kind = early_stop.strict(f"AND rule, {len(rates)} tasks x {k}", tuple(rates), k)
    found = {
        "a": _trust_jobs([replace(agent, run_effect=RUN_EFFECT), agent], scale),
        "e": [Job(early_stop.compared, ("e", kind, scale))],
    }
    return [job for section in sections for job in found.get(section, [])]


def run(wanted: Sequence[Job], processes: int) -> list[Block]:
    """Print every block as soon as those before it have been."""
    found = []
    with ProcessPoolExecutor(processes) as pool:
        for block in [pool.submit(job.work, *job.arguments) for job in wanted]:
            print(block.result().text(), end="\n\n", flush=True)
            found.append(block.result())
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module. The exit code is 2 for a command line or a file that cannot be used."""
    options = _options(arguments)
    if options.results:
        write_page(options.page, read_results(options.results))
        return 0
    scale, regression = Scale(options.gates, options.seed), shipped_regression()
    try:
        rates = read_rates(options.rates) if options.rates else {}
    except InputError as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)
    wanted = (
        jobs_of_rates(list(rates.values()), options.k or 3, scale, options.sections)
        if rates
        else jobs(options.k, scale, options.sections)
    )
    print(
        f"{scale.gates:,} gates each, seed {scale.seed}; as shipped: alpha {regression.alpha}, at most "
        f"{regression.max_trials} trials, undecided tasks {regression.undecided}\n"
    )
    began = time.perf_counter()
    blocks = run(wanted, options.processes)
    missed = [one for block in blocks for one in block.all_missed()]
    print("\n".join(f"MISSED {one}" for one in missed) or "all targets are met")
    print(f"{time.perf_counter() - began:.0f} s, {_processor_seconds():.0f} s of processor time", file=sys.stderr)
    settings = {"gates": scale.gates, "trust_gates": min(scale.gates, MOST_TRUST_GATES), "seed": scale.seed}
    if options.out:
        write_results(options.out, blocks, settings)
        if options.page:
            write_page(options.page, read_results(options.out))
    return 1 if missed else 0


def _processor_seconds() -> float:
    """Of this process and of those that have ended."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.gate_trust", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rates", type=Path, metavar="FILE.json", help="true pass rates of the tasks to be simulated")
    parser.add_argument("--k", type=_between(1, MOST_K), help="trials of a task in place of 3, in section e of 10")
    parser.add_argument("--gates", type=_between(2, 10_000_000), default=GATES, help="gates of each simulation")
    parser.add_argument("--seed", type=_between(0, 2**63), default=SEED)
    parser.add_argument("--sections", type=_sections, default=SECTIONS, help="as in `ab`; all when not given")
    parser.add_argument("--processes", type=_between(1, 64), default=2)
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="write the results")
    parser.add_argument("--from", type=Path, metavar="FILE.json", dest="results", help="results to write the page from")
    parser.add_argument("--page", type=Path, metavar="PAGE.md", help="write the tables of these results into a page")
    options = parser.parse_args(arguments)
    if (options.results and not options.page) or (options.page and not options.out and not options.results):
        parser.error("--page needs --out or --from, and --from needs --page")
    return options


def _between(least: int, most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isascii() or not text.isdecimal() or not least <= int(text[:20]) <= most:
            raise argparse.ArgumentTypeError(f"expected a whole number from {least} to {most}, not {text!r:.40}")
        return int(text)

    return number


def _sections(text: str) -> str:
    if not text or not set(text) <= set(SECTIONS):
        raise argparse.ArgumentTypeError(f"expected letters of {SECTIONS}, not {text!r:.40}")
    return "".join(sorted(set(text)))


if __name__ == "__main__":
    sys.exit(main())
