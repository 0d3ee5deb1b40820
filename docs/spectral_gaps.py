"""Spectral gaps of AMAGOLD in one dimension, against the acceptance rate and against the paper's
Theorem 2.

    python docs/spectral_gaps.py        # prints the tables and writes docs/images/spectral-gaps.png

The gap of a reversible chain is the smallest of E(f) / Var f over functions f, with E(f) = (1/2) E
(f(theta') - f(theta))^2. Over the span of a few functions that is an eigenvalue problem between two
small matrices, whose solution is never below the gap and comes down to it as functions are added.
Everything here is plain NumPy in float64 and shares no sampler with the library.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from scipy.linalg import eigh

from amagold import models, predicted_acceptance
from amagold.diagnose import convergence_bound

NUM_PATHS = 200_000
NUM_SEEDS = 3
NUM_FUNCTIONS = (16, 28)  # two bases: their difference is the error of the discretisation
PICTURE = Path(__file__).parent / "images" / "spectral-gaps.png"


class Problem(NamedTuple):
    """A density of one number on an interval; a proposal outside it is rejected."""

    name: str
    log_density: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]  # grad U
    bounds: tuple[float, float]


class Dynamics(NamedTuple):
    """h = epsilon^2 / sigma^2, b = epsilon beta, T."""

    h: float
    b: float
    num_steps: int


class Moves(NamedTuple):
    """Paths, where they start and would end, how much they flow, and the mean acceptance from the
    target.
    """

    start: np.ndarray
    end: np.ndarray
    # the share of pi(theta) P(theta, theta*) d theta d theta* that a path stands for
    flow: np.ndarray
    acceptance: float


class Gap(NamedTuple):
    """A spectral gap from the large basis, and from the small one."""

    value: float
    coarse: float
    acceptance: float


def double_well() -> Problem:
    """Figure 1's, on an interval with all but 1e-5 of its mass: further out the leapfrog steps of
    its quartic walls blow up.
    """
    roots = np.array([-4.0, -1.0, 1.0, 3.0])
    slope = np.polyder(np.poly(roots) / 14.0)
    return Problem(
        "double well",
        models.double_well().log_density,
        lambda at: np.polyval(slope, at),
        (-5.0, 4.0),
    )


def gaussian(half_width: float = 5.0) -> Problem:
    return Problem("Gaussian", lambda at: -0.5 * at**2, lambda at: at, (-half_width, half_width))


def simulate(
    problem: Problem, dynamics: Dynamics, noise: float, num_paths: int, seed: int
) -> Moves:
    """One transition with a fresh momentum from each start. The same seed gives the same random
    numbers for every noise.
    """
    generator = np.random.default_rng(seed)
    start, weight_of = stratified_starts(problem, num_paths, generator)
    root, b = np.sqrt(dynamics.h), dynamics.b
    momentum = generator.normal(size=num_paths)
    at, work = start.copy(), np.zeros(num_paths)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(dynamics.num_steps):
            at = at + 0.5 * root * momentum
            force = problem.slope(at) + noise * generator.normal(size=num_paths)
            # p* = ((1 - b) p - h^(1/2) g + 2 b^(1/2) xi) / (1 + b)
            kicked = (
                (1.0 - b) * momentum
                - root * force
                + 2.0 * np.sqrt(b) * generator.normal(size=num_paths)
            ) / (1.0 + b)
            # rho += (h^(1/2) / 2) g (p + p*)
            work = work + 0.5 * root * force * (momentum + kicked)
            momentum = kicked
            at = at + 0.5 * root * momentum
        # log a = U(theta) - U(theta*) + rho, and no way out of the interval
        log_ratio = problem.log_density(at) - problem.log_density(start) + work
        is_inside = (at > problem.bounds[0]) & (at < problem.bounds[1]) & np.isfinite(log_ratio)
        acceptance = np.where(is_inside, np.exp(np.minimum(log_ratio, 0.0)), 0.0)
    end = np.where(is_inside, at, start)
    # the flow is the same in both directions, so a rare start may speak for the frequent one that
    # leads to it, and never the other way round: of the two weights their harmonic mean
    weight, end_weight = weight_of(start), weight_of(end)
    flow = acceptance * 2.0 * weight * end_weight / (weight + end_weight) / num_paths
    return Moves(start, end, flow, float(np.average(acceptance, weights=weight)))


def stratified_starts(
    problem: Problem, num_paths: int, generator: np.random.Generator
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Starts, half spread as the target and half evenly so that tails are seen, and the weight that
    makes them draws of it.
    """
    grid, mass = quadrature(problem)
    density = 0.5 * mass + 0.5 / len(grid)
    spacing = grid[1] - grid[0]
    edges = np.concatenate([grid - 0.5 * spacing, [grid[-1] + 0.5 * spacing]])
    uniform = (np.arange(num_paths) + generator.uniform(size=num_paths)) / num_paths
    start = np.interp(uniform, np.concatenate([[0.0], np.cumsum(density)]), edges)

    def weight_of(at: np.ndarray) -> np.ndarray:
        cell = np.clip(((at - edges[0]) / spacing).astype(int), 0, len(grid) - 1)
        return mass[cell] / density[cell]

    return start, weight_of


def quadrature(problem: Problem, num_points: int = 24_000) -> tuple[np.ndarray, np.ndarray]:
    """Midpoints of equal cells, and the probability of each."""
    low, high = problem.bounds
    grid = low + (np.arange(num_points) + 0.5) * (high - low) / num_points
    mass = np.exp(problem.log_density(grid) - problem.log_density(grid).max())
    return grid, mass / mass.sum()


class Basis:
    """The first polynomials, orthonormal under the target, without the constant."""

    def __init__(self, problem: Problem, num_functions: int) -> None:
        self.bounds, self.order = problem.bounds, num_functions
        grid, mass = quadrature(problem)
        # X = Q R with Q^T Q = I, so the columns of X R^-1 are orthonormal under the weights
        self.triangle = np.linalg.qr(np.sqrt(mass)[:, None] * self._plain(grid), mode="r")

    def __call__(self, at: np.ndarray) -> np.ndarray:
        return np.linalg.solve(self.triangle.T, self._plain(at).T)[1:]

    def _plain(self, at: np.ndarray) -> np.ndarray:
        low, high = self.bounds
        return chebyshev.chebvander((2.0 * at - low - high) / (high - low), self.order)


def gap_of(problem: Problem, moves: Moves) -> Gap:
    """The smallest E(f) / Var f over polynomials f."""
    basis = Basis(problem, NUM_FUNCTIONS[-1])
    forms = np.zeros((NUM_FUNCTIONS[-1], NUM_FUNCTIONS[-1]))
    for part in np.array_split(np.arange(len(moves.flow)), max(1, len(moves.flow) // 20_000)):
        change = basis(moves.end[part]) - basis(moves.start[part])
        # E(f_k, f_l) = (1/2) E[min(1, a) (f_k(theta*) - f_k(theta)) (f_l(theta*) - f_l(theta))]
        forms += 0.5 * (moves.flow[part] * change) @ change.T
    coarse, fine = (
        float(eigh(forms[:size, :size], eigvals_only=True)[0]) for size in NUM_FUNCTIONS
    )
    return Gap(fine, coarse, moves.acceptance)


def gap_on_bins(problem: Problem, moves: Moves, num_bins: int) -> float:
    """The same from the matrix of transitions between bins, made symmetric: the functions are
    constant on each bin.
    """
    edges = np.linspace(*problem.bounds, num_bins + 1)
    flow = np.histogram2d(moves.start, moves.end, (edges, edges), weights=moves.flow)[0]
    flow = 0.5 * (flow + flow.T)
    grid, weight = quadrature(problem)
    mass = np.histogram(grid, edges, weights=weight)[0]
    flow[np.diag_indices_from(flow)] += mass - flow.sum(axis=1)
    return float(1.0 - eigh(flow / np.sqrt(np.outer(mass, mass)), eigvals_only=True)[-2])


def gap_without_noise(h: float, num_steps: int, half_width: float, num_points: int = 800) -> float:
    """L2MC on the Gaussian in the limit b = 0, from its transition density on a grid: no random
    numbers at all.
    """
    grid, spacing = np.linspace(-half_width, half_width, num_points, retstep=True)
    # T leapfrog steps turn (theta, p) by T omega, cos omega = 1 - h/2, in units where theta is
    # stretched by chi
    angle, stretch = num_steps * np.arccos(1.0 - 0.5 * h), np.sqrt(1.0 - 0.25 * h)
    across = stretch * np.sin(angle)
    here, there = grid[:, None], grid[None, :]
    momentum = (there - np.cos(angle) * here) / across
    last = -np.sin(angle) / stretch * here + np.cos(angle) * momentum
    log_ratio = 0.5 * (here**2 + momentum**2 - there**2 - last**2)
    density = np.exp(-0.5 * momentum**2 + np.minimum(log_ratio, 0.0)) / (
        np.sqrt(2.0 * np.pi) * abs(across)
    )
    symmetric = spacing * density * np.exp(0.25 * (there**2 - here**2))
    symmetric = 0.5 * (symmetric + symmetric.T)
    symmetric[np.diag_indices_from(symmetric)] += 1.0 - spacing * density.sum(axis=1)
    return float(
        1.0
        - eigh(symmetric, eigvals_only=True, subset_by_index=[num_points - 2, num_points - 1])[0]
    )


class Row(NamedTuple):
    """One comparison of AMAGOLD with L2MC; errors are standard errors over seeds."""

    problem: str
    noise: float
    gap_full: float
    gap_ratio: float  # at equal parameters
    gap_error: float
    acceptance_ratio: float
    predicted_ratio: float
    rescaled_ratio: float  # AMAGOLD at Theorem 2's parameters
    bound: float
    is_assumption_met: bool
    basis_error: float  # what the smaller basis would change in the ratio
    bins_ratio: float  # the ratio from 60 bins, and from 120
    fine_bins_ratio: float


def compare(
    problem: Problem,
    noise: float,
    num_paths: int,
    num_seeds: int,
    step_size: float = 0.25,
    friction: float = 0.25,
    num_steps: int = 10,
) -> Row:
    """Gaps with and without gradient noise, at equal parameters and at Theorem 2's."""
    dynamics = Dynamics(step_size**2, step_size * friction, num_steps)
    bound = convergence_bound(noise**2, step_size=step_size, friction=friction, num_steps=num_steps)
    rescaled = Dynamics(
        bound.step_size**2 / bound.mass, bound.step_size * bound.friction, num_steps
    )
    full, equal, theorem, bins = [], [], [], []
    for seed in range(num_seeds):
        paths = (
            simulate(problem, dynamics, 0.0, num_paths, seed),
            simulate(problem, dynamics, noise, num_paths, seed),
        )
        full.append(gap_of(problem, paths[0]))
        equal.append(gap_of(problem, paths[1]))
        theorem.append(gap_of(problem, simulate(problem, rescaled, noise, num_paths, seed)))
        bins.append(
            [
                gap_on_bins(problem, paths[1], count) / gap_on_bins(problem, paths[0], count)
                for count in (60, 120)
            ]
        )
    ratios = np.array([one.value / other.value for one, other in zip(equal, full, strict=True)])
    coarse = np.mean([one.coarse / other.coarse for one, other in zip(equal, full, strict=True)])
    acceptance_full = np.mean([one.acceptance for one in full])
    discretisation = (2.0 * inverse_normal(1.0 - 0.5 * acceptance_full)) ** 2
    settings = dict(
        step_size=step_size,
        friction=friction,
        num_steps=num_steps,
        discretisation_variance=discretisation,
    )
    return Row(
        problem.name,
        noise,
        float(np.mean([one.value for one in full])),
        float(ratios.mean()),
        float(ratios.std(ddof=1) / np.sqrt(num_seeds)) if num_seeds > 1 else float("nan"),
        float(np.mean([one.acceptance for one in equal]) / acceptance_full),
        predicted_acceptance(noise**2, **settings) / acceptance_full,
        float(np.mean([one.value / other.value for one, other in zip(theorem, full, strict=True)])),
        bound.gap_ratio,
        bound.is_assumption_met,
        float(coarse - ratios.mean()),
        *np.mean(bins, axis=0).tolist(),
    )


def inverse_normal(probability: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(probability))


class Resonance(NamedTuple):
    """Theorem 2 near a trajectory that closes on itself."""

    rescaled_h: float
    gap_full: float  # L2MC at h
    gap_noisy: float  # AMAGOLD at the rescaled h: an upper bound
    bound: float


def resonance(
    rescaled_h: float,
    num_paths: int,
    half_width: float = 4.0,
    b: float = 1e-6,
    x: float = 1.0,
    num_steps: int = 3,
) -> Resonance:
    """U = theta^2 / 2, with V^2 chosen so that epsilon T V^2 / (sigma^2 beta) = x."""
    problem = gaussian(half_width)
    # sigma = 1 leaves h = epsilon^2; c depends on x alone: c = 1 + x^(1/2) / (4 T d)
    c = 1.0 + np.sqrt(x) / (4.0 * num_steps)
    h = rescaled_h / np.sqrt(c)
    variance = x * b / (h * num_steps)
    bound = convergence_bound(
        variance, step_size=np.sqrt(h), friction=b / np.sqrt(h), num_steps=num_steps
    )
    assert bound.is_assumption_met
    assert np.isclose(bound.c, c)
    full = gap_of(problem, simulate(problem, Dynamics(h, b, num_steps), 0.0, num_paths, 0))
    dynamics = Dynamics(h / bound.mass, b * bound.friction / (b / np.sqrt(h)), num_steps)
    noisy = gap_of(problem, simulate(problem, dynamics, np.sqrt(variance), num_paths, 0))
    return Resonance(rescaled_h, full.value, noisy.value, bound.gap_ratio)


def acceptance_from(at: float, dynamics: Dynamics, num_paths: int = 20_000) -> float:
    """L2MC's acceptance on the Gaussian over the whole line, from one start."""
    problem = Problem("", lambda theta: -0.5 * theta**2, lambda theta: theta, (-np.inf, np.inf))
    generator, root, b = np.random.default_rng(0), np.sqrt(dynamics.h), dynamics.b
    theta, momentum, work = np.full(num_paths, at), generator.normal(size=num_paths), 0.0
    for _ in range(dynamics.num_steps):
        theta = theta + 0.5 * root * momentum
        kicked = (
            (1 - b) * momentum - root * theta + 2 * np.sqrt(b) * generator.normal(size=num_paths)
        ) / (1 + b)
        work, momentum = work + 0.5 * root * theta * (momentum + kicked), kicked
        theta = theta + 0.5 * root * momentum
    return float(np.exp(np.minimum(problem.log_density(theta) + 0.5 * at**2 + work, 0.0)).mean())


def main() -> None:
    print(
        "problem      V    gap L2MC   ratio of gaps (+-)  60 bins  120 bins  small basis  of "
        "acceptances  predicted  rescaled   bound"
    )
    rows = []
    for problem, step_size in ((double_well(), 0.25), (gaussian(), 0.1)):
        for noise in (0.1, 0.3, 0.6, 1.0, 1.5, 2.0):
            row = compare(problem, noise, NUM_PATHS, NUM_SEEDS, step_size)
            rows.append(row)
            print(
                f"{row.problem:<11} {row.noise:>4.1f}  {row.gap_full:>9.4f}  "
                f"{row.gap_ratio:>9.3f} ({row.gap_error:.3f})"
                f"  {row.bins_ratio:>9.3f}  {row.fine_bins_ratio:>8.3f}  {row.basis_error:>+11.4f}"
                f"  {row.acceptance_ratio:>14.3f}  {row.predicted_ratio:>9.3f}"
                f"  {row.rescaled_ratio:>8.3f}  "
                f"{row.bound:>6.2g}{'' if row.is_assumption_met else ' (assumption not met)'}"
            )
    print("\nNear the resonance: U = theta^2 / 2, T = 3, b = 1e-6, x = 1, on [-4, 4]")
    print("rescaled h   gap L2MC   gap AMAGOLD      ratio   bound")
    sweep = [
        resonance(float(h), NUM_PATHS // 2)
        for h in (2.8, 2.85, 2.9, 2.95, 2.98, 2.99, 3.0, 3.01, 3.02, 3.05, 3.08)
    ]
    for one in sweep:
        ratio = one.gap_noisy / one.gap_full
        print(
            f"{one.rescaled_h:>10.2f}  {one.gap_full:>9.3g}  {one.gap_noisy:>12.3g}  "
            f"{ratio:>9.3g}  {one.bound:>6.3f}"
        )
    h = 3.0 / np.sqrt(1.0 + 1.0 / 12.0)
    print(
        "\nThe same L2MC from its transition density at b = 0, by half width of the interval (800 "
        "and 1600 points)"
    )
    for half_width in (4.0, 6.0, 8.0, 12.0, 16.0, 24.0):
        print(
            f"{half_width:>5.0f}  {gap_without_noise(h, 3, half_width):.3g}  "
            f"{gap_without_noise(h, 3, half_width, 1600):.3g}"
        )
    print(
        "\nL2MC's acceptance on the Gaussian over the whole line from a far start (h = b = "
        "0.0625, T = 10)"
    )
    for at in (0.0, 5.0, 10.0, 20.0, 40.0):
        print(f"{at:>5.0f}  {acceptance_from(at, Dynamics(0.0625, 0.0625, 10)):.3g}")
    draw(rows, sweep)


def draw(rows: list[Row], sweep: list[Resonance]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
    for name, colour in (("double well", "#1f6f8b"), ("Gaussian", "#c8553d")):
        mine = [row for row in rows if row.problem == name]
        left.errorbar(
            [row.acceptance_ratio for row in mine],
            [row.gap_ratio for row in mine],
            [2.0 * row.gap_error for row in mine],
            fmt="o",
            color=colour,
            label=name,
        )
        middle.semilogy(
            [row.noise for row in mine],
            [row.gap_ratio for row in mine],
            "o-",
            color=colour,
            label=f"ratio of gaps, {name}",
        )
        middle.semilogy(
            [row.noise for row in mine],
            [row.bound for row in mine],
            "s:",
            color=colour,
            label=f"the paper's bound, {name}",
        )
    left.plot([0.45, 1], [0.45, 1], color="#999999", linewidth=1, zorder=0, label="equal")
    left.set(
        xlabel="ratio of acceptance rates",
        ylabel="ratio of spectral gaps",
        title="Gaps follow the acceptance, roughly",
        xlim=(0.45, 1.01),
    )
    left.set_ylim(0.45, 1.01)
    left.legend(frameon=False)
    middle.set(
        xlabel="gradient noise V", title="The bound is loose, and falls much faster", ylim=(1e-8, 3)
    )
    middle.legend(frameon=False, loc="lower left")
    right.semilogy(
        [one.rescaled_h for one in sweep],
        [one.gap_noisy / one.gap_full for one in sweep],
        "o-",
        color="#c8553d",
        label="ratio of gaps",
    )
    right.axhline(sweep[0].bound, color="#999999", label="the paper's bound")
    right.set(
        xlabel="rescaled h (the trajectory closes at 3)", title="A resonance breaks the bound"
    )
    right.legend(frameon=False, loc="lower left")
    for axis in (left, middle, right):
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, dpi=150)
    print(f"\nwrote {PICTURE}")


if __name__ == "__main__":
    main()
