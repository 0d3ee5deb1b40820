"""A likelihood of any kind that sees the position through a few affine numbers: its program, cut
there, is a predictor and an outcome whose bounds the machine finds.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.interop._affine_trace import all_traced
from amagold.interop._model_arguments import Fixed
from amagold.interop._one_row import InsideLikelihood
from amagold.interop._program_cut import ProgramCut, smallest_cut, with_calls_opened
from amagold.interop._traced_numbers import AFFINE, ROW, Traced
from amagold.target import LinearBounds
from amagold.target._found_bounds import FoundSize, why_not
from amagold.target._linear_likelihood import MOST_PREDICTORS


@dataclass(frozen=True)
class RowProgram:
    """log p(row | theta) as operations; equal models have equal ones."""

    model: Any
    held: Fixed  # arrays beside the rows
    form: tuple[tuple[str, tuple[int, ...]], ...]  # of positions

    @classmethod
    def of(cls, likelihood: InsideLikelihood, position: dict[str, Any]) -> "RowProgram":
        held = {name: np.asarray(value) for name, value in likelihood.held.items()}
        form = tuple((name, np.shape(value)) for name, value in position.items())
        return cls(likelihood.model, Fixed(held if held else None), form)

    def zeros(self) -> dict[str, jax.Array]:
        return {name: jnp.zeros(shape) for name, shape in self.form}

    def cut(self, example: Any) -> ProgramCut | None:
        """None where it sees the position through more than a few numbers."""
        leaves, form = jax.tree.flatten(example)
        kinds = tuple((np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)
        return _cut(self, form, kinds, jnp.result_type(float))


@lru_cache(maxsize=256)
def _cut(program: RowProgram, form: Any, kinds: tuple[Any, ...], dtype: Any) -> ProgramCut | None:
    example = jax.tree.unflatten(form, [jax.ShapeDtypeStruct(*kind) for kind in kinds])
    position = {
        name: jax.ShapeDtypeStruct(shape, dtype) for name, shape in dict(program.form).items()
    }
    likelihood = InsideLikelihood(program.model, program.held.value or {})
    num_position = len(program.form)
    written = jax.make_jaxpr(likelihood)(position, example)
    kept: list[ProgramCut] = []
    # as it is written its functions are known best; others count where they see fewer numbers
    for most_seen, merged in product((MOST_PREDICTORS, 1), (False, True)):
        opened = with_calls_opened(written, num_position, most_seen, merged=merged)

        def look(*given: Any, opened: Any = opened) -> None:
            known = all_traced(opened.jaxpr, opened.consts, _traced(given, num_position))
            found = smallest_cut(opened, num_position, known, MOST_PREDICTORS)
            kept.extend([] if found is None else [found])

        jax.eval_shape(look, *opened.in_avals)
    return min(kept, key=lambda cut: cut.num_numbers, default=None)


def _traced(given: Any, num_position: int) -> list[Traced]:
    return [Traced(AFFINE if k < num_position else ROW, each) for k, each in enumerate(given)]


@dataclass(frozen=True)
class CutPredictor:
    """z of a row: a number, or a vector of the few numbers."""

    program: RowProgram

    def __call__(self, position: Any, example: Any) -> jax.Array:
        cut = self.program.cut(example)
        assert cut is not None
        given = [jnp.asarray(leaf) for leaf in jax.tree.leaves((position, example))]
        closed = cut.program
        known = all_traced(closed.jaxpr, closed.consts, _traced(given, cut.num_position))
        found = jnp.concatenate([jnp.ravel(known[variable].value) for variable in cut.variables])
        return found[0] if cut.num_numbers == 1 else found


@dataclass(frozen=True)
class CutOutcome:
    """log p(row | z)."""

    program: RowProgram

    def __call__(self, z: jax.Array, example: Any) -> jax.Array:
        return self.of_numbers(list(jnp.atleast_1d(z)), example)

    def of_numbers(self, numbers: list[Any], example: Any) -> jax.Array:
        cut = self.program.cut(example)
        assert cut is not None
        values, start = [], 0
        for variable, is_log in zip(cut.variables, cut.is_log, strict=True):
            shape, dtype = variable.aval.shape, variable.aval.dtype
            size = int(np.prod(shape))
            each = jnp.stack([jnp.asarray(n, dtype) for n in numbers[start : start + size]])
            value = jnp.reshape(each, shape)
            values.append(jnp.exp(value) if is_log else value)
            start += size
        return cut.after(values, [jnp.asarray(leaf) for leaf in jax.tree.leaves(example)])


@trees.record(static=("predictor", "outcome"))
class CutLikelihood:
    """log p(row | theta) = outcome(z, row), z affine in theta."""

    predictor: CutPredictor
    outcome: CutOutcome

    @property
    def composition(self) -> tuple[Any, Any]:
        """Of which it is nothing but the composition: bounds of these two need no comparison."""
        return self.predictor, self.outcome

    def __call__(self, position: trees.PyTree, example: trees.PyTree) -> jax.Array:
        return self.outcome(self.predictor(position, example), example)


def found_for(
    likelihood: InsideLikelihood, position: dict[str, Any], example: Any
) -> tuple[CutLikelihood, LinearBounds] | str:
    """The likelihood cut in two with the bounds that are found, or why there are none."""
    program = RowProgram.of(likelihood, position)
    cut = program.cut(example)
    if cut is None:
        return (
            "No bounds of the likelihood are known, because a row sees the parameters through "
            f"more than {MOST_PREDICTORS} numbers that are affine in free ones: exact tests look "
            "at all data."
        )
    predictor, outcome = CutPredictor(program), CutOutcome(program)
    missing = why_not(outcome, cut.num_numbers, example)
    if missing is not None:
        return (
            f"No bounds of the likelihood were found, because it uses {missing}, which is not "
            "covered: exact tests look at all data."
        )
    bounds = LinearBounds(predictor, outcome, (1.0, 1.0, 1.0), within=FoundSize(outcome))
    return CutLikelihood(predictor, outcome), bounds
