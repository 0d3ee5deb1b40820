"""Rows of a NumPyro model as those of a mixed one, read off the derivatives of its predictor."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.core.compiling import ONCE, jit
from amagold.interop._affine_trace import evaluate
from amagold.interop._mixed_families import MixedFamily, mixed_family
from amagold.interop._mixed_sites import MixedSites
from amagold.interop._observed_site import observed_numbers
from amagold.interop._one_row import as_one_row
from amagold.interop._traced_numbers import FIXED as KNOWN, SCALE, numbered


class MixedRows(NamedTuple):
    """All rows, in arrays."""

    slopes: Any  # of the coefficients
    offset: Any
    codes: tuple[Any, ...]
    columns: tuple[Any, ...]
    own: Any
    weight: Any


@trees.record()
class RowNumbers:
    """What the observed site of a row is given, traced."""

    sites: MixedSites

    def traced(self, numbers: Any, example: Any) -> tuple[type | None, dict[str, Any]]:
        kinds: list[type | None] = []

        def look(numbers: Any, rows: Any) -> dict[str, Any]:
            kind, found = observed_numbers(self.sites.model, self.sites.sites(numbers, rows))
            kinds.append(kind)
            return found

        found = evaluate(look, numbers, as_one_row(example), self.sites.roles.kinds())
        return kinds[-1], found

    def family(self, example: Any) -> MixedFamily | None:
        kind, found = self.traced(self.sites.at_zero(), example)
        roles = self.sites.roles
        noise = None if roles.noise is None else numbered(SCALE, len(roles.effects))
        return mixed_family(kind, found, noise)

    def predictor(self, numbers: Any, example: Any) -> jax.Array:
        """z of one row, affine in coefficients and effects where all scales are one."""
        family = self.family(example)
        assert family is not None
        _, found = self.traced(numbers, example)
        values = {
            name: None if each.value is None else _number(each.value)
            for name, each in found.items()
        }
        return jnp.asarray(family.predictor(values))

    def own(self, example: Any) -> tuple[Any, jax.Array]:
        """The row as an example of its family, and how often it counts."""
        family = self.family(example)
        assert family is not None
        _, found = self.traced(self.sites.at_zero(), example)
        row = {name: _number(each.value) for name, each in found.items() if each.kind in KNOWN}
        return family.example(row), row["weight"]


def _number(value: Any) -> jax.Array:
    return jnp.reshape(jnp.asarray(value, jnp.result_type(float)), ())


def mixed_rows(numbers: RowNumbers, arrays: Any, num_rows: int) -> MixedRows | None:
    """Slopes by coefficients, and of every effect which level a row has and what it is times: read
    off the derivatives of z along whole effects, and along the digits of their levels.
    """
    sites, zeros = numbers.sites, numbers.sites.at_zero()
    directions: list[dict[str, np.ndarray]] = []
    for unit in jnp.eye(sites.num_coefficients):
        directions.append({n: np.asarray(v) for n, v in sites.coefficients(unit).items()})
    digits = []
    for effect in sites.roles.effects:
        size = 1 if effect.is_of_rows else effect.num_levels
        directions.append({effect.name: np.ones(size, np.float32)})
        digits.append(math.ceil(math.log2(size)))
        for digit in range(digits[-1]):
            directions.append({effect.name: (np.arange(size) >> digit & 1).astype(np.float32)})
    along = [
        {name: one.get(name, np.zeros(zero.shape, np.float32)) for name, zero in zeros.items()}
        for one in directions
    ]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *along)
    offset, found = map(np.asarray, _along(numbers, zeros, stacked, arrays))
    own, weight = jax.tree.map(np.asarray, _own(numbers, arrays))
    if not np.isfinite(found).all() or not np.isfinite(offset).all() or weight.min() < 0.0:
        return None
    place = sites.num_coefficients
    slopes, codes, columns = found[:place].T, [], []
    for effect, count in zip(sites.roles.effects, digits, strict=True):
        column, bits = found[place], found[place + 1 : place + 1 + count]
        place += 1 + count
        if effect.is_of_rows:
            code = np.arange(num_rows)
        else:
            with np.errstate(invalid="ignore", divide="ignore"):
                is_set = np.nan_to_num(bits / column) > 0.5
            code = (is_set.astype(np.int64) << np.arange(count)[:, None]).sum(axis=0)
        codes.append(code.astype(np.int32))
        columns.append(column)
    return MixedRows(slopes, offset, tuple(codes), tuple(columns), own, weight)


@jit(ONCE)
def _along(numbers: RowNumbers, zeros: Any, directions: Any, arrays: Any) -> Any:
    """z at zero, and its derivatives along each direction."""

    def of_all(direction: Any) -> jax.Array:
        def of_row(example: Any) -> jax.Array:
            z = lambda at: numbers.predictor(at, example)  # noqa: E731
            return jax.jvp(z, (zeros,), (direction,))[1]

        return jax.vmap(of_row)(arrays)

    offset = jax.vmap(lambda example: numbers.predictor(zeros, example))(arrays)
    return offset, jax.lax.map(of_all, directions)


@jit(ONCE)
def _own(numbers: RowNumbers, arrays: Any) -> Any:
    return jax.vmap(numbers.own)(arrays)
