"""A NumPyro model seen one row at a time: what is inside the data plate, and what is outside."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from numpyro import handlers
from numpyro.infer import util as numpyro_util
from numpyro.primitives import Messenger

from amagold.core import trees
from amagold.interop._model_arguments import CallForm
from amagold.interop._truncated_sites import without_switches

Site = dict[str, Any]


def is_inside(site: Site, plate: str | None) -> bool:
    """Whether a site belongs to the plate."""
    return any(frame.name == plate for frame in site.get("cond_indep_stack", ()))


class RowHandler(Messenger):
    """The plate holds one row, whatever its size, and counts it once.

    NumPyro multiplies the log density of a subsample by size / length: that is taken out again.
    """

    def __init__(self, model: Any, plate: str, *, only_outside: bool = False) -> None:
        super().__init__(model)
        self.plate, self.only_outside, self.size = plate, only_outside, 1

    def process_message(self, msg: Any) -> None:
        if msg["type"] == "plate" and msg["name"] == self.plate:
            self.size = msg["args"][0]
            msg["value"] = jnp.zeros(1, jnp.int32)
        elif msg["type"] == "sample" and is_inside(msg, self.plate):
            if self.size != 1:
                msg["scale"] = msg["scale"] / self.size
            if self.only_outside:
                msg["fn"] = msg["fn"].mask(False)


@dataclass(frozen=True)
class NumpyroModel:
    """A model, the name of its data plate (None has none) and the form of its call: all that JAX
    does not trace. Positions are dicts of unconstrained values by the names of latent sites.
    """

    model: Any
    plate: str | None
    form: CallForm
    deterministic: tuple[str, ...] = ()  # the sites that are reported
    inside: tuple[str, ...] = ()  # latent ones inside the plate, which those do not depend on

    def constrained(self, position: Any, rows: Any, held: Any) -> dict[str, jax.Array]:
        """Values of the latent sites, by NumPyro's own bijections."""
        arguments, keywords = self.form.call(rows, held)
        return numpyro_util.constrain_fn(self.of_rows(), arguments, keywords, position)

    def unconstrained(self, values: Any, rows: Any, held: Any) -> dict[str, jax.Array]:
        """The way back."""
        arguments, keywords = self.form.call(rows, held)
        return numpyro_util.unconstrain_fn(self.of_rows(), arguments, keywords, values)

    def derived(self, values: Any, rows: Any, held: Any) -> dict[str, jax.Array]:
        """The deterministic sites that are reported."""
        own = {name: jnp.zeros(1) for name in self.inside}
        sites = self.sites({**values, **own}, rows, held)
        return {name: jnp.asarray(sites[name]["value"]) for name in self.deterministic}

    def sites(self, values: Any, rows: Any, held: Any) -> dict[str, Site]:
        """All sites at values of the latent ones."""
        arguments, keywords = self.form.call(rows, held)
        substituted = handlers.substitute(self.of_rows(), data=values)
        return handlers.trace(substituted).get_trace(*arguments, **keywords)

    def log_density(
        self, position: Any, rows: Any, held: Any, *, only_outside: bool = False
    ) -> jax.Array:
        """Of all that is seen, or of what is outside the plate, with the log Jacobians."""
        arguments, keywords = self.form.call(rows, held)
        model = self.of_rows(only_outside=only_outside)
        return -jnp.asarray(numpyro_util.potential_energy(model, arguments, keywords, position))

    def of_rows(self, *, only_outside: bool = False) -> Any:
        """The model itself, or with one row in its plate; keys are there for who asks."""
        seeded = handlers.seed(self.model, rng_seed=0)
        if self.plate is None:
            return seeded
        return RowHandler(seeded, self.plate, only_outside=only_outside)


def log_probabilities(site: Site) -> jax.Array:
    """Of a sample site, with its scale, not summed."""
    value = without_switches(site["fn"]).log_prob(site["value"])
    return value if site["scale"] is None else value * site["scale"]


def as_one_row(example: trees.PyTree) -> trees.PyTree:
    """One example as arrays of one row, as the model indexes them."""
    return jax.tree.map(lambda leaf: leaf[None], example)


@trees.record(static=("model", "note"))
class InsideLikelihood:
    """log p(row | theta): the sum over the observed sites inside the plate."""

    model: NumpyroModel
    held: Any
    note: str | None = None  # why it has no bounds

    def __call__(self, position: trees.PyTree, example: trees.PyTree) -> jax.Array:
        rows = as_one_row(example)
        values = self.model.constrained(position, rows, self.held)
        sites = self.model.sites(values, rows, self.held)
        return sum(
            (
                jnp.sum(log_probabilities(site))
                for site in sites.values()
                if site["type"] == "sample" and is_inside(site, self.model.plate)
            ),
            start=jnp.zeros(()),
        )

    def sentences(self) -> tuple[str, ...]:
        return () if self.note is None else (self.note,)


def unreported_words(names: tuple[str, ...]) -> tuple[str, ...]:
    """What is said of deterministic sites that are left out."""
    if not names:
        return ()
    listed = ", ".join(map(repr, names))
    return (
        f"Deterministic sites that depend on the rows are not reported ({listed}); "
        "numpyro.infer.Predictive computes them from run.to_numpyro().",
    )


@trees.record(static=("model", "is_log_concave", "unreported"))
class OutsidePrior:
    """log p(theta), of free numbers: the sites outside the plate and the log Jacobians."""

    model: NumpyroModel
    held: Any
    row: Any  # any one: nothing outside the plate depends on it
    is_log_concave: bool = False
    unreported: tuple[str, ...] = ()

    def __call__(self, position: trees.PyTree) -> jax.Array:
        return self.model.log_density(position, self.row, self.held, only_outside=True)

    def sentences(self) -> tuple[str, ...]:
        return unreported_words(self.unreported)


@trees.record(static=("model",))
class WholeDensity:
    """log p(theta, data), of free numbers: a model without a data plate."""

    model: NumpyroModel
    held: Any

    def __call__(self, position: trees.PyTree) -> jax.Array:
        return self.model.log_density(position, {}, self.held)
