"""How wrong the approximate minibatch tests are, and how many examples they look at, against their
error parameter.

    python docs/approximate_tests.py        # prints the table and writes
    docs/results/approximate-tests.png

Chains start at the end of an exact run. The chain with the test in question and one with the same
test over all data then use the same momenta, batches and uniform numbers, so that they differ only
where the test decides otherwise, and the bias is seen as the mean of a difference, free of most of
the noise.
"""

import dataclasses
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import amagold
from amagold import acceptance, gradients
from amagold.mode._mode_search import find_mode
from amagold.samplers import Sampler

NUM_EXAMPLES, NUM_PREDICTORS = 2000, 5
NUM_CHAINS, NUM_TRANSITIONS, NUM_BURN_IN = 1024, 40, 10
BATCH_SIZE = 50
SEEN = 2.8  # the largest of ten standardised errors without any bias is above this in 5 % of runs
PICTURE = Path(__file__).parent / "results" / "approximate-tests.png"
ERRORS = {
    "austerity": (0.5, 0.3, 0.1, 0.03, 0.01, 0.001),
    "confidence": (0.9, 0.1, 0.001),
    "barker": (1.0, 0.3, 0.1, 0.01),
}
COLOURS = {"austerity": "#c8553d", "confidence": "#6a4c93", "barker": "#1f6f8b"}
INK, QUIET = "#1f2933", "#6b7785"
FLOOR = 3e-4  # of the bias axis: less is drawn there
BIAS_LABELS = {
    ("austerity", 0): (0.012, 0.07),
    ("austerity", 2): (9e-4, 1.15e-3),
    ("barker", 0): (0.19, 1.2e-3),
    ("barker", 2): (0.011, 0.029),
}
SHARE_LABELS = {
    ("austerity", 0): (0.14, 0.35),
    ("austerity", 2): (1.1e-3, 0.04),
    ("barker", 0): (0.3, 1.12),
    ("barker", 2): (0.13, 0.018),
    ("confidence", 0): (0.03, 1.12),
    ("confidence", 2): (1.1e-3, 0.62),
}


class Row(NamedTuple):
    """One test at one error."""

    test: str
    order: int
    error: float
    # the largest of |mean error| and |error of the standard deviation|, in posterior standard
    # deviations
    bias: float
    bias_error: float  # its standard error
    share: float  # examples per test over N
    acceptance: float
    is_seen: bool  # told apart from zero


def problem(num_examples: int = NUM_EXAMPLES) -> amagold.Posterior:
    """A logistic regression with strong effects, so that the posterior is not quite a Gaussian."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(num_examples, NUM_PREDICTORS)).astype(np.float32)
    odds = X @ np.array([1.0, -1.0, 0.5, 0.0, 2.0])
    return amagold.models.logistic(
        X,
        generator.random(num_examples) < 1.0 / (1.0 + np.exp(-odds)),
        prior_scale=1.0,
        intercept=False,
    )


def sampler_with(
    target: amagold.Posterior, center: Any, test: Any, step_size: float = 1.4
) -> Sampler:
    """One leapfrog step in the posterior's own units, so broad that the test matters: without any,
    sds are a quarter too small.
    """
    mass = np.asarray(
        jax.hessian(
            lambda at: -target.log_likelihoods(at, target.data).sum() - target.log_prior(at)
        )(center)
    )
    gradient = gradients.control_variate(32, 2, center=center)
    sampler = amagold.amagold(
        target,
        step_size=step_size,
        friction=0.0,
        num_steps=1,
        mass=mass,
        gradient=gradient,
        acceptance=test,
    )
    # the label is static: without it all errors of a test share one compiled program
    return sampler if not hasattr(sampler.acceptance, "differences") else _unlabelled(sampler)


def _unlabelled(sampler: Sampler) -> Sampler:
    return dataclasses.replace(
        sampler, acceptance=dataclasses.replace(sampler.acceptance, label="approximate")
    )


@jax.jit
def run(
    sampler: Sampler, positions: jax.Array, key: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Positions (transition, chain, ...), mean count and mean acceptance."""
    states = jax.vmap(sampler.init)(positions, jax.random.split(key, len(positions)))

    def transition(states: Any, key: jax.Array) -> tuple[Any, Any]:
        states, info = jax.vmap(sampler.step)(jax.random.split(key, len(positions)), states)
        return states, (
            states.position,
            jnp.mean(info.num_energy_examples),
            jnp.mean(info.is_accepted),
        )

    _, (positions, counts, accepted) = jax.lax.scan(
        transition, states, jax.random.split(key, NUM_TRANSITIONS)
    )
    return positions, counts.mean(), accepted.mean()


def bias(found: np.ndarray, exact: np.ndarray) -> tuple[float, float, bool]:
    """The largest error of a mean or standard deviation, its standard error, and whether it is
    seen; arrays (transition, chain, d).
    """
    mean, spread = exact.mean(axis=(0, 1)), exact.std(axis=(0, 1))
    left, right = (found - mean) / spread, (exact - mean) / spread
    # the error of the mean, and that of the standard deviation to first order: half that of the
    # variance
    each = np.concatenate(
        [(left - right).mean(axis=0), 0.5 * (left**2 - right**2).mean(axis=0)], axis=-1
    )
    errors = each.std(axis=0, ddof=1) / np.sqrt(len(each))
    means = each.mean(axis=0)
    worst = int(np.argmax(np.abs(means)))
    return (
        float(np.abs(means[worst])),
        float(errors[worst]),
        bool(np.any(np.abs(means) > SEEN * np.maximum(errors, 1e-12))),
    )


def measure(
    num_chains: int = NUM_CHAINS, errors: dict[str, tuple[float, ...]] = ERRORS
) -> tuple[list[Row], list[Row]]:
    """All approximate tests, and the exact ones."""
    target = problem()
    center = find_mode(target, target.init).position
    spread = np.linalg.cholesky(
        np.linalg.inv(np.asarray(jax.hessian(lambda at: -_log_density(target, at))(center)))
    )
    positions = (
        center + jax.random.normal(jax.random.key(1), (num_chains, NUM_PREDICTORS)) @ spread.T
    )
    start = time.perf_counter()
    careful = sampler_with(target, center, acceptance.full(), step_size=0.8)
    positions = run(careful, positions, jax.random.key(2))[0][-1]
    key = jax.random.key(3)
    makers = {name: getattr(acceptance, name) for name in errors}

    def done(test: Any) -> tuple[np.ndarray, float, float]:
        positions_, count, accepted = run(sampler_with(target, center, test), positions, key)
        return (
            np.asarray(positions_, np.float64)[NUM_BURN_IN:],
            float(count) / target.num_examples,
            float(accepted),
        )

    # all data in one block: exact, and with the random numbers of the tests that stop early
    exact = {
        name: done(makers[name](batch_size=target.num_examples, order=0))
        for name in ("austerity", "barker")
        if name in errors
    }
    print(
        f"{'test':<12} {'order':>5} {'error':>7} {'bias':>8} {'(se)':>9} {'share of N':>11} "
        f"{'accepted':>9}"
    )
    rows, references = [], []
    for name, values in errors.items():
        twin = exact["barker" if name == "barker" else "austerity"][0]
        for order in (0, 2):
            for error in values:
                found, share, accepted = done(makers[name](error, BATCH_SIZE, order))
                rows.append(
                    Row(
                        name,
                        order,
                        error,
                        *bias(found, twin)[:2],
                        share,
                        accepted,
                        bias(found, twin)[2],
                    )
                )
                show(rows[-1])
    for name in ("tuna",):
        found, share, accepted = done(getattr(acceptance, name)())
        references.append(
            Row(
                name,
                2,
                float("nan"),
                *bias(found, exact["austerity"][0])[:2],
                share,
                accepted,
                False,
            )
        )
        show(references[-1])
    full = exact["austerity"]
    references.append(Row("full", 0, float("nan"), 0.0, 0.0, *full[1:], False))
    show(references[-1])
    print(f"{time.perf_counter() - start:.0f} s")
    return rows, references


def _log_density(target: amagold.Posterior, at: jax.Array) -> jax.Array:
    return target.log_likelihoods(at, target.data).sum() + target.log_prior(at)


def show(row: Row) -> None:
    words = (
        f"{row.test:<12} {row.order:>5} {row.error:>7g} {row.bias:>8.4f} ({row.bias_error:.4f}) "
        f"{row.share:>11.4f} {row.acceptance:>9.3f}"
    )
    print(words if row.is_seen else f"{words}  not told from zero", flush=True)


def draw(rows: list[Row], references: list[Row], picture: Path = PICTURE) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(13.5, 5.8), layout="constrained")
    for name, colour in COLOURS.items():
        for order in (0, 2):
            mine = sorted(
                (row for row in rows if row.test == name and row.order == order),
                key=lambda row: row.error,
            )
            style = dict(color=colour, linestyle="-" if order else (0, (4, 2)), linewidth=1.6)
            errors = [row.error for row in mine]
            right.plot(errors, [row.share for row in mine], "o", **style, markersize=5)
            right.text(
                *SHARE_LABELS[name, order], words_of(name, order), color=colour, fontsize=10.5
            )
            if name == "confidence":
                continue  # no decision differs, so there is nothing to draw
            # what cannot be told from zero is drawn hollow, where a bias would have been seen
            heights = [
                max(row.bias if row.is_seen else SEEN * row.bias_error, FLOOR) for row in mine
            ]
            left.plot(errors, heights, **style, alpha=0.8)
            for row, height in zip(mine, heights, strict=True):
                bars = 2.0 * row.bias_error if row.is_seen else None
                fill = colour if row.is_seen else "white"
                left.errorbar(
                    row.error,
                    height,
                    bars,
                    fmt="o",
                    color=colour,
                    markerfacecolor=fill,
                    markersize=6,
                    elinewidth=1.2,
                )
            left.text(*BIAS_LABELS[name, order], words_of(name, order), color=colour, fontsize=10.5)
    for row in references:
        words = "full test: exact" if row.test == "full" else "tuna, control variates: exact"
        right.axhline(row.share, color=INK, linewidth=1.2, linestyle=":")
        right.text(8e-4, row.share * 1.12, words, color=INK, fontsize=10.5, va="bottom")
        if row.test == "tuna":
            left.axhline(SEEN * row.bias_error, color=INK, linewidth=1.2, linestyle=":")
            left.text(
                8e-4,
                SEEN * row.bias_error * 1.12,
                "tuna: exact",
                color=INK,
                fontsize=10.5,
                va="bottom",
            )
    left.text(
        8e-4,
        FLOOR * 1.6,
        "confidence: no decision differs",
        color=COLOURS["confidence"],
        fontsize=10.5,
    )
    left.set(
        ylabel="bias, in posterior standard deviations",
        ylim=(0.8 * FLOOR, 0.6),
        title="Only plain austerity shows a bias",
    )
    right.set(
        ylabel="examples per test, as a share of all data",
        ylim=(1.5e-3, 2.4),
        title="The exact test on a few examples looks at the fewest",
    )
    for axis in (left, right):
        axis.set(xscale="log", yscale="log", xlim=(7e-4, 1.6))
        axis.set_xlabel(
            "error parameter (austerity: p-value; confidence: failure probability; barker: "
            "variance)",
            color=QUIET,
        )
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(colors=QUIET)
        axis.title.set(fontsize=12.5, fontweight="bold", color=INK)
    left.text(
        8e-4,
        0.42,
        "filled: bias, with two standard errors\nhollow, dotted: none seen; one above the mark "
        "would have been",
        color=QUIET,
        fontsize=9.5,
        va="center",
    )
    figure.savefig(picture, dpi=150)
    print(f"wrote {picture}")


def words_of(name: str, order: int) -> str:
    return f"{name}, {'control variates' if order else 'plain'}"


def main() -> None:
    draw(*measure())


if __name__ == "__main__":
    main()
