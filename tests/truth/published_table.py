"""The table of posteriordb's posteriors: `python tests/truth/published_table.py [--write] [NAME
...]` runs them, each as a NumPyro model and by hand, and renews docs/truth.md.
"""

import os
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "helpers")]
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "2")  # as in the tests

import jax  # noqa: E402
import numpy as np  # noqa: E402
from calibration import z_score  # noqa: E402
from published import MADE, Published, moments_of  # noqa: E402
from published_suite import POSTERIORS  # noqa: E402
from running import plan_in_short  # noqa: E402

import amagold  # noqa: E402

DOCUMENT = HERE.parent.parent / "docs" / "truth.md"
BEGIN, END = "<!-- the published begin -->", "<!-- the published end -->"
HEAD = (
    "| posterior | reference | written | plan | rms z | worst z | R-hat | warned |\n"
    + 8 * "|---"
    + "|"
)
WAYS = ("NumPyro", "by hand")


class PublishedOutcome(NamedTuple):
    """What one run gave."""

    plan: str
    rms: float
    worst: float
    r_hat: float
    warnings: tuple[str, ...]


def outcome_of(posterior: Published, way: str, seed: int = 0) -> PublishedOutcome:
    """`amagold.sample(target)`, and how far its moments are from the published ones."""
    if way == "NumPyro":
        target = amagold.from_numpyro(posterior.model, *posterior.args, plate=posterior.plate)
    else:
        target = posterior.by_hand()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = amagold.sample(target, seed=seed, progress=False)
    draws = {str(name): np.float64(x.to_numpy()) for name, x in run.posterior.data_vars.items()}
    named = draws if way == "NumPyro" else posterior.named(draws)
    scores = []
    for moments in moments_of(posterior):
        series = moments.of(named)
        scores.append(z_score(series, moments.mean, moments.mean_error))
        scores.append(z_score(series**2, moments.square, moments.square_error))
    said = tuple(sentence.split(":")[0] for sentence in run.warnings)
    return PublishedOutcome(
        plan_in_short(run.plan),
        float(np.sqrt(np.mean(np.square(scores)))),
        float(np.max(np.abs(scores))),
        float(run.summary()["r_hat"].max()),
        said,
    )


def line(posterior: Published, way: str, found: PublishedOutcome) -> str:
    reference = "NUTS, ours" if posterior.name in MADE else "posteriordb"
    said = ", ".join(found.warnings) or "no"
    said += f" (hard: {posterior.hard})" if posterior.hard else ""
    return (
        f"| {posterior.name} | {reference} | {way} | {found.plan} | {found.rms:.2f} | "
        f"{found.worst:.1f} | {found.r_hat:.3f} | {said} |"
    )


def main(arguments: list[str]) -> None:
    names = [each for each in arguments if not each.startswith("--")]
    before, rest = DOCUMENT.read_text().split(BEGIN)
    kept, after = rest.split(END)
    lines = {
        tuple(part.strip() for part in row.split("|"))[1:4:2]: row
        for row in kept.splitlines()[4:]
        if row.startswith("|")
    }
    for posterior in POSTERIORS:
        for way in WAYS if not names or posterior.name in names else ():
            lines[posterior.name, way] = line(posterior, way, outcome_of(posterior, way))
            print(lines[posterior.name, way], flush=True)
            jax.clear_caches()
            order = [(each.name, how) for each in POSTERIORS for how in WAYS]
            rows = [lines[key] for key in order if key in lines]
            if "--write" in arguments:
                table = "\n".join([HEAD, *rows])
                DOCUMENT.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}")


if __name__ == "__main__":
    main(sys.argv[1:])
