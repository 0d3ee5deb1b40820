"""The one observed site of a row whose distribution is of a known kind: the numbers by which it
sees the position, and what it says of the row.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import distributions
from numpyro.distributions import ExpandedDistribution, Independent, MaskedDistribution

from amagold.interop._affine_trace import evaluate
from amagold.interop._model_arguments import Fixed
from amagold.interop._one_row import InsideLikelihood, NumpyroModel, as_one_row, is_inside
from amagold.interop._traced_numbers import FIXED, Traced

# what a distribution's likelihood depends on, by the names of its class
PARAMETERS = {
    distributions.BernoulliLogits: ("logits",),
    distributions.BinomialLogits: ("logits", "total_count"),
    distributions.Poisson: ("rate",),
    distributions.Normal: ("loc", "scale"),
    distributions.StudentT: ("df", "loc", "scale"),
    distributions.NegativeBinomial2: ("concentration", "rate"),
}
MOST_HELD = 2**16  # numbers beside the rows, that may be constants of a program


@dataclass(frozen=True)
class ObservedSite:
    """Of a model; equal models have equal sites, so that nothing compiles again."""

    model: NumpyroModel
    held: Fixed  # arrays beside the rows
    form: tuple[tuple[str, tuple[int, ...]], ...]  # of positions

    @classmethod
    def of(cls, likelihood: InsideLikelihood, position: dict[str, Any]) -> "ObservedSite":
        held = {name: np.asarray(value) for name, value in likelihood.held.items()}
        form = tuple((name, np.shape(value)) for name, value in position.items())
        return cls(likelihood.model, Fixed(held if held else None), form)

    def at(self, position: Any, example: Any) -> tuple[type | None, dict[str, Traced]]:
        """The kind of the distribution (None where it is none of those above, or not alone), its
        parameters, the outcome and its weight.
        """
        kinds: list[type | None] = []

        def look(position: Any, rows: Any) -> dict[str, Any]:
            held = self.held.value or {}
            values = self.model.constrained(position, rows, held)
            kind, found = observed_numbers(self.model, self.model.sites(values, rows, held))
            kinds.append(kind)
            return found

        found = evaluate(look, position, as_one_row(example))
        return kinds[-1], found

    def of_row(self, example: Any) -> dict[str, jax.Array]:
        """What does not depend on the position, by name."""
        anywhere = {name: jnp.zeros(shape) for name, shape in self.form}
        _, found = self.at(anywhere, example)
        return {
            name: jnp.asarray(each.value, jnp.result_type(float)).reshape(())
            for name, each in found.items()
            if each.kind in FIXED
        }


def observed_numbers(model: NumpyroModel, sites: Any) -> tuple[type | None, dict[str, Any]]:
    """The distribution of the one observed site inside the plate, and what it is given."""
    inside = [
        site
        for site in sites.values()
        if site["type"] == "sample" and site["is_observed"] and is_inside(site, model.plate)
    ]
    if len(inside) != 1:
        return None, {}
    fn, weight = inside[0]["fn"], jnp.ones(())
    while isinstance(fn, (ExpandedDistribution, Independent, MaskedDistribution)):
        if isinstance(fn, MaskedDistribution):
            weight = weight * fn._mask
        fn = fn.base_dist
    if inside[0]["scale"] is not None:
        weight = weight * inside[0]["scale"]
    parameters = PARAMETERS.get(type(fn), ())
    found = {name: jnp.asarray(getattr(fn, name)) for name in parameters}
    found |= {"outcome": jnp.asarray(inside[0]["value"]), "weight": jnp.asarray(weight)}
    is_one = all(value.size == 1 for value in found.values())
    return (type(fn), found) if parameters and is_one else (None, {})
