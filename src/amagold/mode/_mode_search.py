"""The mode of the target: where chains start, where the curvature is taken and what control
variates are about.
"""

import dataclasses
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from amagold.core import checks, trees
from amagold.core.shapes import Flag, Number, PerRow, Position, Scalar, Vector, Whole
from amagold.data import Chunk
from amagold.energy import _chunks as chunks
from amagold.energy._wide_sums import Wide, add_to, subtract, zero
from amagold.mode._derivatives import Derivatives, KnownBounds, derivatives_at, has_sparse_rows
from amagold.mode._newton import Descent, Point, descend
from amagold.mode._row_bounds import TaylorBound, bound_sums
from amagold.target import Posterior, Target

NEWTON_PARAMETERS = 256  # up to this many, the search is Newton's
NEWTON_SPARSE = 2048  # and up to this many, where rows are zero but for a few places
FEW = 2**15  # examples that a first mode is found from
MORE = 2**19  # that it is then found from, where there are many more
# examples times squared parameters: passes over less cost no more than compiling another program
MUCH_WORK = 2 * 10**8
MEMORY_SIZE = 10  # past steps that L-BFGS builds its inverse Hessian from
TRIALS = 20  # energies per line search
# where rounding stops the search, a decrement up to this many tolerances still counts as the mode
STALLED = 100.0
PATIENCE = 3  # iterations in a row without a gain before the search gives up
ROUNDING = 1e-6  # of an energy in float32
PROBE = 1e-3  # how far to look for the slope to rise again
# examples, and numbers in their gradients, that the rough scales are taken from
SCALE_EXAMPLES, SCALE_VALUES = 1024, 2**22
LEVEL = 0.1  # the share of the slope at the start that may be left at a mode
# without a mode, the place reached is kept only if its squared distance to one seems below this,
# per parameter
NEAR = 0.01

FlatEnergy = Callable[[Vector], Scalar]


class Mode(NamedTuple):
    """Where the search ended.

    The position is the mode if `is_converged`. If not, it is a place near which one seemed to be,
    and else the start: a density without a mode would otherwise be followed into its spike.
    """

    position: Position
    is_converged: bool
    num_iterations: int
    of_data: Derivatives | None = None  # at the position, where the search has taken them


class Search(NamedTuple):
    """One L-BFGS iteration's state, over the flattened position in units of its rough scales."""

    position: Vector
    memory: trees.PyTree  # what L-BFGS knows
    best: Vector
    best_energy: Scalar
    best_gradient: Vector
    # g . H^-1 g at the best position, with the inverse Hessian that L-BFGS has built
    decrement: Scalar
    num_iterations: Whole
    num_stalls: Whole  # iterations in a row that found nothing better


def find_mode(
    target: Target, position: trees.PyTree, *, max_iterations: int = 200, tolerance: float = 1e-4
) -> Mode:
    """The mode: by Newton's method for up to 256 parameters, or 2,048 of factors, else by L-BFGS;
    data are visited in chunks.

    The search stops where g . H^-1 g, twice the energy left to lose and the squared distance to the
    mode in posterior standard deviations, falls below `tolerance` per parameter. That has no units
    and is made of gradients, which float32 sums of many examples keep better than energies.

    Args:
      target: an `amagold.Posterior` or `amagold.Density`.
      position: where to start, inside the domain.
      max_iterations: steps before giving up.
      tolerance: the squared distance to the mode, in standard deviations and per parameter, that
        will do; a draw's is 1.
    """
    checks.whole_number(
        "max_iterations", max_iterations, at_least=1, remedy="give the number of steps allowed"
    )
    checks.number(
        "tolerance",
        tolerance,
        above=0.0,
        remedy="give a squared distance in posterior standard deviations",
    )
    position = trees.as_position(position)
    target.check(position)
    if is_newtons(target, position):
        return mode_from(newton_descent(target, position, tolerance, max_iterations), position)
    found, is_converged, num_iterations = _search()(target, position, max_iterations, tolerance)
    return Mode(found, bool(is_converged), int(num_iterations))


def is_newtons(target: Target, position: Position) -> bool:
    """Whether second derivatives are cheap enough for Newton's search."""
    most = NEWTON_SPARSE if has_sparse_rows(target) else NEWTON_PARAMETERS
    return trees.size(position) <= most


def newton_descent(
    target: Target, start: Position, tolerance: float, max_iterations: int
) -> Descent:
    """Newton's search. Many examples are searched from the mode of some of them: from that of K,
    which is sqrt(N / K) standard deviations away, one step leads to within a hundredth of one, so
    that the second pass over all data is the last.
    """
    is_much = has_much(target, start)
    # some rows do not stand for all where levels have few of them, and a pass is quick there
    for count in (FEW, MORE) if is_much and not has_sparse_rows(target) else ():
        if target.num_examples < 8 * count:
            break
        some, weight = standing_for_all(target, count)
        found = descend(some, start, weight=weight, tolerance=1e-2, max_iterations=max_iterations)
        start = found.end.position if found.is_converged else start
    return descend(
        target, start, tolerance=tolerance, max_iterations=max_iterations, saves_passes=is_much
    )


def has_much(target: Target, position: Position) -> bool:
    """Whether a pass over all data costs more than compiling another program."""
    work = target.num_examples * trees.size(position) ** 2
    return work >= MUCH_WORK and target.num_examples >= 8 * FEW


def bounds_about(target: Posterior, bound: TaylorBound) -> KnownBounds:
    """The examples' bounds about a position, to the bit as the search for the mode found them."""
    if has_much(target, bound.position):
        known = derivatives_at(target, bound.position, 2, bound).bounds
        assert known is not None
        return known
    return KnownBounds(bound, bound_sums(target, bound.position, bound))


def standing_for_all(target: Target, count: int) -> tuple[Target, float]:
    """The target with some of its examples, evenly spread, and what each of them counts as."""
    few = dataclasses.replace(target, data=target.examples.some(count))
    return few, target.num_examples / few.num_examples


def mode_from(descent: Descent, start: Position) -> Mode:
    """The mode, or where the search came near to one, or the start."""
    if descent.is_converged:
        return _mode_at(descent.end, True, descent.num_iterations)
    if descent.near.is_finite and descent.near is not descent.end:
        return _mode_at(descent.near, False, descent.num_iterations)
    return Mode(start, False, descent.num_iterations)


def _mode_at(point: Point, is_converged: bool, num_iterations: int) -> Mode:
    return Mode(trees.as_position(point.position), is_converged, num_iterations, point.of_data)


@lru_cache(maxsize=1)
def _search() -> Callable[[Target, Position, int, float], tuple[Position, Flag, Whole]]:
    """The jitted search; optax is imported when it is first needed, so that `import amagold` stays
    light.
    """
    import optax as untyped

    optax: Any = untyped

    line_search = optax.scale_by_zoom_linesearch(
        max_linesearch_steps=TRIALS, initial_guess_strategy="one"
    )
    solver = optax.lbfgs(memory_size=MEMORY_SIZE, linesearch=line_search)

    @jax.jit
    def search(
        target: Target, start: Position, max_iterations: Number, tolerance: Number
    ) -> tuple[Position, Flag, Whole]:
        total, gradient = _log_density_and_gradient(target, start)
        scales = _rough_scales(target, start)
        size = scales.shape[0]
        energy = _energy_above(target, start, total, scales)
        origin, first_gradient = jnp.zeros_like(scales), -trees.flatten(gradient) * scales

        def advance(search: Search) -> Search:
            value, gradient = optax.value_and_grad_from_state(energy)(
                search.position, state=search.memory
            )
            slope, is_first = jnp.linalg.norm(gradient), search.num_iterations == 0
            # rounding hides the last gains in energy, so near the best a smaller slope is better
            # too
            is_near = value <= search.best_energy + ROUNDING * jnp.abs(search.best_energy)
            is_flatter = is_near & (slope < jnp.linalg.norm(search.best_gradient))
            is_better = (
                jnp.isfinite(value)
                & trees.all_finite(gradient)
                & ((value < search.best_energy) | is_flatter)
            )
            moves, memory = solver.update(
                gradient,
                search.memory,
                search.position,
                value=value,
                grad=gradient,
                value_fn=energy,
            )
            # moves = -rate P g, so g . P g = -moves . g / rate
            rate = jnp.maximum(memory[-1].learning_rate, jnp.finfo(jnp.float32).tiny)
            decrement = jnp.where(
                jnp.any(moves != 0),
                -jnp.dot(moves, gradient) / rate,
                jnp.where(slope == 0, 0.0, jnp.inf),
            )
            return Search(
                position=search.position + jnp.where(jnp.isfinite(moves), moves, 0.0),
                memory=memory,
                best=jnp.where(is_better, search.position, search.best),
                best_energy=jnp.where(is_better, value, search.best_energy),
                best_gradient=jnp.where(is_better, gradient, search.best_gradient),
                decrement=jnp.where(
                    is_better | is_first | (slope == 0), decrement, search.decrement
                ),
                num_iterations=search.num_iterations + 1,
                num_stalls=jnp.where(is_better | is_first, 0, search.num_stalls + 1),
            )

        def goes_on(search: Search) -> Flag:
            # the first two inverse Hessians are guesses, unless the slope is exactly zero
            is_close = (search.decrement <= tolerance * size) & (
                (search.num_iterations > 2) | jnp.all(search.best_gradient == 0)
            )
            return (
                (search.num_iterations < max_iterations)
                & (search.num_stalls < PATIENCE)
                & ~is_close
            )

        zero_energy, unknown = jnp.zeros((), scales.dtype), jnp.asarray(jnp.inf, scales.dtype)
        begin = Search(
            origin,
            solver.init(origin),
            origin,
            zero_energy,
            first_gradient,
            unknown,
            jnp.int32(0),
            jnp.int32(0),
        )
        end = jax.lax.while_loop(goes_on, advance, begin)
        is_stalled = (end.num_stalls >= PATIENCE) & (end.decrement <= STALLED * tolerance * size)
        # an inverse Hessian that has lost a direction calls any slope along it small, so the slope
        # itself must have gone too
        slope, first_slope = jnp.linalg.norm(end.best_gradient), jnp.linalg.norm(first_gradient)
        is_level = (slope <= LEVEL * first_slope) | (slope**2 <= STALLED * tolerance * size)
        is_close = ((end.decrement <= tolerance * size) | is_stalled) & is_level
        is_converged = is_close & _rises(energy, end.best, end.best_gradient)
        is_kept = is_converged | ((slope <= LEVEL * first_slope) & (end.decrement <= NEAR * size))
        found = _place(start, scales, jnp.where(is_kept, end.best, 0.0))
        return found, is_converged, end.num_iterations

    return search


def _place(start: Position, scales: Vector, distance: Vector) -> Position:
    """The position at a distance from the start that is measured in units of the rough scales."""
    return trees.unflatten_like(trees.flatten(start) + scales * distance, start)


def _rough_scales(target: Target, position: Position) -> Vector:
    """One over the root of each parameter's information: the prior's, and N times the mean square
    of some examples' gradients.

    Predictors in different units differ by orders of magnitude, which L-BFGS would need many
    iterations to learn.
    """
    like = trees.flatten(position)
    if not isinstance(target, Posterior):
        return jnp.ones_like(like)
    num_rows = max(1, min(target.num_examples, SCALE_EXAMPLES, SCALE_VALUES // like.shape[0]))
    some = target.examples.some(num_rows)
    rows = some.rows(jnp.arange(some.num_examples))
    gradients = jax.vmap(lambda row: trees.flatten(jax.grad(target.log_likelihood)(position, row)))(
        rows
    )
    # H times ones is the diagonal of a prior that treats parameters independently
    ones = jax.tree.map(jnp.ones_like, position)
    of_prior = trees.flatten(jax.jvp(jax.grad(target.smooth_log_prior), (position,), (ones,))[1])
    information = target.num_examples * jnp.mean(gradients**2, axis=0) + jnp.abs(of_prior)
    # a parameter that nothing is known about keeps its own units
    return jnp.where(
        jnp.isfinite(information) & (information > 0), 1.0 / jnp.sqrt(information), 1.0
    ).astype(like.dtype)


def _energy_above(target: Target, start: Position, origin: Wide, scales: Vector) -> FlatEnergy:
    """U(theta) - U(start) at a scaled distance from the start; infinite, with no slope, outside the
    domain or where it is not finite.

    Its derivative comes from the same pass over the data, so that the chunks need not be kept for a
    backward pass.
    """

    def value_and_gradient(flat: Vector) -> tuple[Scalar, Vector]:
        position = _place(start, scales, flat)
        total, gradient = _log_density_and_gradient(target, position)
        value = subtract(origin, total).astype(flat.dtype)
        is_good = jnp.isfinite(value) & trees.all_finite(gradient) & target.is_inside(position)
        return jnp.where(is_good, value, jnp.inf), jnp.where(
            is_good, -trees.flatten(gradient) * scales, 0.0
        ).astype(flat.dtype)

    @jax.custom_vjp
    def energy(flat: Vector) -> Scalar:
        return value_and_gradient(flat)[0]

    energy.defvjp(value_and_gradient, lambda gradient, above: (above * gradient,))
    return energy


def _log_density_and_gradient(target: Target, position: Position) -> tuple[Wide, Position]:
    """log pi, accumulated in float64, and its gradient, in one pass."""

    def visit(carry: tuple[Wide, Position], chunk: Chunk) -> tuple[Wide, Position]:
        def log_likelihood(at: Position) -> tuple[Scalar, PerRow]:
            values = chunk.only_new(target.log_likelihoods(at, chunk.rows))
            return values.sum(), values

        gradient, values = jax.grad(log_likelihood, has_aux=True)(position)
        return add_to(carry[0], values), trees.add(carry[1], gradient)

    value, gradient = jax.value_and_grad(target.smooth_log_prior)(position)
    return chunks.fold(target, position, visit, (add_to(zero(), value[None]), gradient))


def _rises(energy: FlatEnergy, at: Vector, gradient: Vector) -> Flag:
    """Whether the slope grows away from a point, as it does around a minimum and does not where the
    density is flat.
    """
    step = (
        PROBE
        * (1.0 + jnp.abs(at))
        * jnp.where(jnp.arange(at.shape[0]) % 2 == 0, 1.0, -1.0).astype(at.dtype)
    )
    return jnp.dot(jax.grad(energy)(at + step) - gradient, step) > 0
