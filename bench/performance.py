"""What passgate costs beside its peers: `python -m bench.performance BEFORE.json AFTER.json`.

Both files are results of a side-by-side benchmark: the same tasks, the same fake agent and the same number of trials at
once for every contender. This writes the figures of both to bench/results/, and docs/performance.md with its chart.
"""

import json
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
RESULTS = REPOSITORY / "bench" / "results"
PAGE = REPOSITORY / "docs" / "performance.md"
CHART = REPOSITORY / "docs" / "images" / "performance.svg"
SIZES = {
    "startup": "1 trial",
    "medium": "100 tasks x 5, 50 ms",
    "large50": "1000 tasks x 5, 50 ms",
    "large0": "1000 tasks x 5, 0 ms",
    "tools": "100 tasks x 5 with tools, 50 ms",
    "cli": "100 tasks x 5, a command, 50 ms",
}
NAMES = {
    "floor": "floor: httpx and one Parquet file",
    "passgate_none": "passgate `--engine none`",
    "passgate": "passgate, embedded Prefect",
    "passgate_server": "passgate, Prefect server up",
    "agentv": "AgentV",
    "promptfoo": "promptfoo",
    "inspect": "Inspect AI",
    "pydantic_evals": "pydantic-evals",
    "deepeval": "DeepEval",
}
FIGURES = ("wall_s", "cpu_s", "peak_rss")
ABOUT = """\
# Performance

What one run costs, with passgate beside its peers: the same tasks, the same fake agent, the same machine.
{machine}. {concurrency} trials run at once.
The agent answers after the latency that a size names. Nine trials in ten pass.
`floor` is no evaluation tool: it sends the requests with httpx and writes one Parquet file.

![Seconds for 5000 trials without latency](images/performance.svg)
"""
READING = """\
## What the time goes to

- **The start.** Importing Python modules takes about 1 s. Embedded Prefect takes about 4 s more, and only shows the
  run: `--engine none` runs the same gate without it.
- **The meter.** The built-in agent asks it in process; an agent of your own over HTTP, with about 2.5 ms of CPU for
  each model call.
- **A sandbox** is made when somebody looks into it. bubblewrap mounts each entry of `/tmp`: a command took 30 ms with
  70 entries there, and 100 ms with 170.
- **Tools and commands** start a process each; the peers call the function in their own process, without isolation. The
  two last columns are without bubblewrap.
- **Loading** 2000 task files takes 0.6 s of CPU: `python -m bench.load_tasks`.

## Measure it yourself

`bench.start_up`, `bench.load_tasks`, `bench.trial_overhead` and `bench.meter_overhead` measure one part each. `python
-m bench.performance BEFORE.json AFTER.json` writes this page from two results of the side-by-side benchmark.
"""


def main() -> None:
    before, after = (json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:3])
    RESULTS.mkdir(exist_ok=True)
    for name, results in (("before", before), ("after", after)):
        text = json.dumps(figures_of(results), indent=1, sort_keys=True)
        (RESULTS / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
    PAGE.write_text(page(figures_of(after), after), encoding="utf-8")
    CHART.write_text(chart(figures_of(before), figures_of(after)), encoding="utf-8")


def figures_of(results: dict[str, Any]) -> dict[str, dict[str, dict[str, float]]]:
    """By size and contender the medians of seconds and bytes. Runs that found other results are left out."""
    return {
        size: {
            name: {figure: round(run["summary"][figure], 3) for figure in FIGURES}
            for name, run in runs.items()
            if name in NAMES and not run["summary"]["wrong"]
        }
        for size, runs in results["runs"].items()
        if size in SIZES
    }


def page(after: dict[str, Any], results: dict[str, Any]) -> str:
    machine, settings = results["machine"], results["settings"]
    about = ABOUT.format(
        machine=f"It has {machine['cpus']} cores ({machine['cpu']}) and Python {machine['python']}",
        concurrency=settings["concurrency"],
    )
    peers = [
        "## Beside the peers",
        "",
        "Seconds from the start of the command to its end, and how often the floor's.",
        "",
    ]
    sizes = [size for size in SIZES if size in after]
    peers.append(f"| | {' | '.join(SIZES[size] for size in sizes)} |")
    peers.append(f"| --- |{' ---: |' * len(sizes)}")
    for name, title in NAMES.items():
        cells = [_seconds(after[size], name) for size in sizes]
        if any(cells):
            peers.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join([about, *peers, "", READING])


def _seconds(runs: dict[str, dict[str, float]], name: str) -> str:
    if name not in runs:
        return ""
    ratio = runs[name]["wall_s"] / runs["floor"]["wall_s"] if "floor" in runs else 0.0
    return f"{runs[name]['wall_s']:.1f} ({ratio:.1f})"


def chart(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Bars of the seconds that 5000 trials without latency take."""
    runs = after["large0"]
    bars = [(title.replace("`", ""), runs[name]["wall_s"]) for name, title in NAMES.items() if name in runs]
    if "passgate_none" in before.get("large0", {}):
        bars.append(("passgate --engine none, before", before["large0"]["passgate_none"]["wall_s"]))
    bars.sort(key=lambda bar: bar[1])
    most, height = max(seconds for _, seconds in bars), 26
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="720" height="{height * len(bars) + 16}">',
        "<style>text { font: 13px sans-serif; fill: #222222 }</style>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for number, (title, seconds) in enumerate(bars):
        y, width = 8 + number * height, max(2.0, 380 * seconds / most)
        color = "#2f6f9f" if title.startswith("passgate") else "#b8c4ce"
        lines += [
            f'<text x="250" y="{y + 17}" text-anchor="end">{title}</text>',
            f'<rect x="260" y="{y + 3}" width="{width:.1f}" height="18" fill="{color}"/>',
            f'<text x="{268 + width:.1f}" y="{y + 17}">{seconds:.1f} s</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    main()
