"""Log likelihoods in float64, for energies whose float32 values round by more than is promised of
their sum.

A sum in float64 cannot mend terms that were rounded before: with values of some hundreds, ten
million of them are off by 0.01. How much a likelihood rounds is measured, because its inner values
are not seen from outside.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, jaxpr_as_fun

from amagold.core import trees
from amagold.core.array_types import Float64
from amagold.core.compiling import ONCE, jit
from amagold.core.shapes import Position, Rows, Scalar
from amagold.data import Chunk
from amagold.energy import _chunks as chunks
from amagold.energy._wide_sums import Wide, add_to, zero
from amagold.target import Posterior, Target

MANY = 2**18  # examples from which on it is measured how much they round
NUM_SLOPES = 1024  # examples that the posterior's width is judged by
PROMISE = 1e-3  # what an energy difference may be off by


def in_double(is_wide: bool) -> AbstractContextManager[object]:
    """Float64 switched on, or all as it is: who has it switched on everywhere keeps it."""
    return jax.enable_x64(True) if is_wide else nullcontext()


def widen(tree: trees.PyTree) -> trees.PyTree:
    """Every floating-point array in float64, where that is switched on."""
    return jax.tree.map(
        lambda leaf: (
            leaf.astype(jnp.float64)
            if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
            else leaf
        ),
        tree,
    )


def wide_log_likelihoods(
    target: Posterior, position: Position, rows: Rows
) -> Float64[Array, " rows"]:
    """One log likelihood for each of the rows, in float64 from the float32 numbers as they are."""
    with jax.enable_x64(True):
        wide = (widen(position), widen(rows))
        if not jax.sharding.get_abstract_mesh().empty:
            # a program that was traced apart knows another mesh than the one that it is part of
            return target.log_likelihoods(*wide).astype(jnp.float64)
        likelihoods = jax.make_jaxpr(lambda at, rows: target.log_likelihoods(at, rows))(*wide)
        found = jaxpr_as_fun(_in_their_own_type(likelihoods))(*jax.tree.leaves(wide))
        return found[0].astype(jnp.float64)


def _in_their_own_type(program: Any) -> Any:
    """The program with products that do not ask for the type that they have: JAX would grant them
    float32 where chains are batched around float64.
    """
    inner = program.jaxpr if isinstance(program, ClosedJaxpr) else program

    def changed(value: Any) -> Any:
        if isinstance(value, (ClosedJaxpr, Jaxpr)):
            return _in_their_own_type(value)
        return tuple(map(changed, value)) if type(value) is tuple else value

    equations = []
    for equation in inner.eqns:
        params = {name: changed(value) for name, value in equation.params.items()}
        if equation.primitive.name == "dot_general":
            wanted = params["preferred_element_type"]
            if all(wanted == operand.aval.dtype for operand in equation.invars):
                params["preferred_element_type"] = None
        equations.append(equation.replace(params=params))
    inner = inner.replace(eqns=equations)
    return program.replace(jaxpr=inner) if isinstance(program, ClosedJaxpr) else inner


def can_widen(target: Posterior, position: Position) -> bool:
    """Whether the user's functions take float64: some fix their types, and are then evaluated in
    float32 as they are.

    So are those that read from outside: JAX keeps a NumPy array in the type that it first saw it
    in.
    """
    if any(getattr(part, "reading", None) for part in (target.log_likelihood, target.log_prior)):
        return False
    try:
        with jax.enable_x64(True):
            rows = jax.tree.map(
                lambda leaf: jax.ShapeDtypeStruct((1, *leaf.shape), leaf.dtype), target.example
            )
            jax.eval_shape(lambda at, rows: wide_log_likelihoods(target, at, rows), position, rows)
            jax.eval_shape(lambda at: target.log_prior(widen(at)), position)
    except (TypeError, ValueError):
        return False
    return True


def rounding_of(target: Posterior, position: Position) -> float:
    """What float32 values may round a difference of two energies by, near a position: one pass over
    the data.

    The error of one difference of the kind that a test meets, and two standard deviations of what
    it is for others.
    """
    found, spread = _error_and_spread(target, position)
    return abs(float(found)) + 2.0 * float(spread)


def needs_double(target: Target, position: Position | None) -> bool:
    """Whether so many float32 values would break the promise, and float64 ones keep it.

    Measured by a pass over the data, where there are many and they can be looked at.
    """
    is_known = position is not None and target.examples.is_concrete and trees.is_concrete(position)
    if not (is_known and isinstance(target, Posterior) and target.num_examples >= MANY):
        return False
    return can_widen(target, position) and not rounding_of(target, position) <= PROMISE


@jit(ONCE)
def _error_and_spread(target: Posterior, position: Position) -> tuple[Scalar, Scalar]:
    # to either side of the position, as far as the posterior is wide: 1 / sqrt(N E[g^2]) for a
    # gradient g of one example
    flat = trees.flatten(position)
    some = target.examples.some(NUM_SLOPES)
    rows = some.rows(jnp.arange(some.num_examples))
    slopes = jax.vmap(lambda row: trees.flatten(jax.grad(target.log_likelihood)(position, row)))(
        rows
    )
    squares = target.num_examples * jnp.mean(slopes**2, axis=0)
    away = jnp.cos(jnp.arange(flat.shape[0])) * jnp.where(squares > 0, jax.lax.rsqrt(squares), 0.0)
    # not as far to both sides: what rounds alike there would cancel
    a, b = (trees.unflatten_like(flat + length * away, position) for length in (1.0, -2.0))

    def visit(total: tuple[Wide, Wide], chunk: Chunk) -> tuple[Wide, Wide]:
        narrow = target.log_likelihoods(b, chunk.rows) - target.log_likelihoods(a, chunk.rows)
        wide = [wide_log_likelihoods(target, at, chunk.rows) for at in (b, a)]
        with jax.enable_x64(True):
            errors = chunk.only_new(narrow.astype(jnp.float64) - (wide[0] - wide[1]))
            return add_to(total[0], errors), add_to(total[1], errors**2)

    error, total = chunks.fold(
        target, position, visit, (zero(), zero()), chunks.chunk_size_for(target, position) // 4 + 1
    )
    # roundings of the examples are independent, or nearly
    return error.high, jnp.sqrt(total.high)
