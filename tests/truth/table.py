"""The table of truth: `python tests/truth/table.py [--seeds 4] [--write] [NAME ...]`, where a name
is any part of a row's.

Without names it runs the whole suite. `--write` keeps the results in tests/truth/results.json, and
the table of all that are kept in docs/truth.md.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "helpers")]

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "2")  # as in the tests

import jax  # noqa: E402
from calibration import Outcome, faults, is_calibrated, rms, verdict, worst_of  # noqa: E402
from running import run_seeds  # noqa: E402
from suite import HARD, ROWS  # noqa: E402

RESULTS = HERE / "results.json"
DOCUMENT = HERE.parent.parent / "docs" / "truth.md"
BEGIN, END = "<!-- the table begins -->", "<!-- the table ends -->"


def load() -> dict[str, list[Outcome]]:
    if not RESULTS.exists():
        return {}
    stored = json.loads(RESULTS.read_text())
    return {
        name: [Outcome(**outcome) for outcome in stored[name]] for name in ROWS if name in stored
    }


def save(results: dict[str, list[Outcome]]) -> None:
    rounded = {
        name: [
            outcome._replace(z={key: round(value, 3) for key, value in outcome.z.items()})._asdict()
            for outcome in outcomes
        ]
        for name, outcomes in results.items()
    }
    RESULTS.write_text(json.dumps(rounded, indent=1) + "\n")


def line(name: str, outcomes: list[Outcome]) -> str:
    """One row of the table."""
    row, seeds = ROWS[name], len(outcomes)
    if any(outcome.failure for outcome in outcomes):
        return f"| {name} | {row.source} | - | - | - | - | FAILED: {outcomes[0].failure} |"
    functional, size = worst_of(outcomes)
    warned = sum(outcome.has_warned for outcome in outcomes)
    said = f"{warned} of {seeds}: {kinds(outcomes)}" if warned else "none"
    overall = rms(value for outcome in outcomes for value in outcome.z.values())
    truth = row.source + (f"; {row.note}" if row.note else "")
    judged = verdict(outcomes)
    if name in HARD:
        judged = f"{judged.replace('good, but warned', 'warned')} (hard: {HARD[name]})"
    return (
        f"| {name} | {truth} | {outcomes[0].plan} | {overall:.2f} ({seeds}) | {size:.1f}, "
        f"{functional} | {said} | {judged} |"
    )


def kinds(outcomes: list[Outcome]) -> str:
    """What the warnings begin with."""
    return ", ".join(
        sorted({sentence.split(":")[0] for outcome in outcomes for sentence in outcome.warnings})
    )


def table(results: dict[str, list[Outcome]]) -> str:
    head = (
        "| posterior | truth | plan | rms z (seeds) | worst | runs that warned | verdict "
        "|\n|---|---|---|---|---|---|---|"
    )
    return "\n".join([head, *(line(name, outcomes) for name, outcomes in results.items())])


def summary(results: dict[str, list[Outcome]]) -> str:
    good = sum(is_calibrated(outcomes) for outcomes in results.values())
    silent = sum(verdict(outcomes).startswith("WRONG") for outcomes in results.values())
    words = faults(results, HARD)
    lines = [f"{len(results)} posteriors: {good} calibrated, {silent} wrong without a warning."]
    return "\n\n".join(
        [
            *lines,
            *(
                ["What breaks the rule:\n\n" + "\n".join(f"- {word}" for word in words)]
                if words
                else []
            ),
        ]
    )


def render(document: str, results: dict[str, list[Outcome]]) -> str:
    """The document with its table made anew."""
    before, rest = document.split(BEGIN)
    return f"{before}{BEGIN}\n\n{summary(results)}\n\n{table(results)}\n\n{END}{rest.split(END)[1]}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="part of a row's name; none is all rows")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument(
        "--write", action="store_true", help="keep the results and renew docs/truth.md"
    )
    parser.add_argument("--list", action="store_true", help="only say the names")
    chosen = parser.parse_args(arguments)
    names = [
        name for name in ROWS if not chosen.names or any(part in name for part in chosen.names)
    ]
    if not names:
        parser.error(
            f"no row has {' or '.join(map(repr, chosen.names))} in its name; --list says them all"
        )
    if chosen.list:
        print("\n".join(names))
        return 0
    results = {}
    for number, name in enumerate(names, 1):
        began = time.monotonic()
        results[name] = run_seeds(ROWS[name], chosen.seeds)
        seconds = time.monotonic() - began
        print(f"[{number}/{len(names)}, {seconds:.0f} s] {line(name, results[name])}", flush=True)
        jax.clear_caches()  # the programs of one row are of no use to the next
    print(summary(results))
    if chosen.write:
        kept = load() | results
        kept = {name: kept[name] for name in ROWS if name in kept}
        save(kept)
        DOCUMENT.write_text(render(DOCUMENT.read_text(), kept))
    return int(bool(faults(results, HARD)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
