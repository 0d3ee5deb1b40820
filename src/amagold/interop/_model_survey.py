"""What a NumPyro model holds, found by tracing it once; nothing is computed."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.distributions import biject_to, constraints
from numpyro.infer import init_to_uniform
from numpyro.primitives import Messenger

from amagold.core import trees
from amagold.interop._model_arguments import split_call
from amagold.interop._one_row import is_inside


class LatentSite(NamedTuple):
    """A site that is sampled from."""

    shape: tuple[int, ...]
    free_shape: tuple[int, ...]  # of its unconstrained numbers
    dims: tuple[str, ...]
    is_positive: bool  # whether none of its values are below zero
    is_real: bool  # whether any number may be one
    is_of_rows: bool  # inside the data plate


class ModelContents(NamedTuple):
    """Sites and plates of a model."""

    latents: dict[str, LatentSite]
    deterministic: dict[str, tuple[str, ...]]  # outside the data plate, with the names of axes
    num_rows: int | None  # of the data plate
    of_rows: tuple[str, ...]  # deterministic sites inside the data plate
    plates: tuple[str, ...]


class PlateWatch(Messenger):
    """Notes the sizes of plates as they are made, and what else a trace does not keep."""

    def __init__(self) -> None:
        super().__init__(None)
        self.plates: list[tuple[str, int, Any]] = []
        self.has_control_flow = False

    def process_message(self, msg: Any) -> None:
        if msg["type"] == "plate":
            self.plates.append((msg["name"], *msg["args"][:2]))
        self.has_control_flow |= msg["type"] == "control_flow"


def with_values(seeded: Any) -> Any:
    """The model with values for its latent sites as NumPyro's kernels start them: an improper prior
    has no draws.
    """
    return handlers.substitute(seeded, substitute_fn=init_to_uniform())


def contents_of(
    model: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], plate: str | None
) -> ModelContents:
    """Raises a sentence where the model cannot be sampled by its rows, or at all."""
    form, _, held = split_call(arguments, keywords, None)
    kept: dict[str, Any] = {}
    watch = PlateWatch()

    def run(held: Any) -> None:
        called, named = form.call({}, held)
        with watch:
            sites = handlers.trace(with_values(handlers.seed(model, rng_seed=0))).get_trace(
                *called, **named
            )
        kept.update(_described(sites, plate))

    try:
        jax.eval_shape(run, held)
    except (jax.errors.ConcretizationTypeError, jax.errors.NonConcreteBooleanIndexError) as reason:
        raise ValueError(
            "model must have shapes that do not depend on the values in its arrays, but it makes "
            "a Python number or a choice of one of them; compute it outside and pass the number "
            "as an argument"
        ) from reason
    if plate is not None:
        _check_plate(watch, plate)
    if not kept["latents"]:
        raise ValueError("model must have a latent site to sample, got none; add one without obs")
    sizes = {name: size for name, size, _ in watch.plates}
    num_rows = None if plate is None else int(sizes[plate])
    return ModelContents(num_rows=num_rows, plates=tuple(sizes), **kept)


def _check_plate(watch: PlateWatch, plate: str) -> None:
    found = [(size, subsample) for name, size, subsample in watch.plates if name == plate]
    names = ", ".join(dict.fromkeys(repr(name) for name, _, _ in watch.plates)) or "none"
    if not found:
        raise ValueError(
            f"plate must be one of the model's plates ({names}), got {plate!r}; name the plate "
            "over the examples, or give plate=None for a density of the whole model"
        )
    if len(found) > 1:
        raise ValueError(
            f"plate must be made once, but the model makes {len(found)} plates called {plate!r}; "
            "keep it as rows = numpyro.plate(...) and enter it with `with rows:` again, or put "
            "all observations into one block"
        )
    size, subsample = found[0]
    if subsample is not None and subsample != size:
        raise ValueError(
            f"plate {plate!r} must not set subsample_size, got {subsample} of {size}: amagold "
            "chooses the rows of minibatches itself; leave it out"
        )
    if watch.has_control_flow:
        raise ValueError(
            f"model must have no numpyro scan or cond where plate={plate!r} is given; write them "
            "as array operations, or give plate=None for a density of the whole model"
        )


def _described(sites: dict[str, Any], plate: str | None) -> dict[str, Any]:
    latents, deterministic, of_rows = {}, {}, []
    for name, site in sites.items():
        if site["type"] == "deterministic":
            if is_inside(site, plate):
                of_rows.append(name)
            else:
                deterministic[name] = _dims(name, site, np.shape(site["value"]))
        if site["type"] != "sample" or site["is_observed"]:
            continue
        if site["fn"].support.is_discrete:
            raise ValueError(
                f"site {name!r} must be continuous, got {type(site['fn']).__name__}: gradients "
                "need numbers that move; if it is the outcome, pass its values (obs=), else sum it "
                "out of the likelihood (MixtureSameFamily, numpyro.factor)"
            )
        shape = tuple(np.shape(site["value"]))
        free = tuple(biject_to(site["fn"].support).inverse_shape(shape))
        latents[name] = LatentSite(
            shape,
            free,
            _dims(name, site, shape),
            _is_positive(site["fn"].support),
            _is_real(site["fn"].support),
            is_inside(site, plate),
        )
    return {"latents": latents, "deterministic": deterministic, "of_rows": tuple(of_rows)}


def _is_positive(support: Any) -> bool:
    """Whether a support has no values below zero."""
    support = _of_one(support)
    if support in (constraints.positive, constraints.nonnegative):
        return True
    lowest = getattr(support, "lower_bound", None)
    return isinstance(lowest, (int, float)) and lowest >= 0.0


def _is_real(support: Any) -> bool:
    return _of_one(support) == constraints.real


def _of_one(support: Any) -> Any:
    """Of one number of an array, as improper priors hold it."""
    while isinstance(support, type(constraints.independent(constraints.real, 1))):
        support = support.base_constraint
    return support


def _dims(name: str, site: Any, shape: tuple[int, ...]) -> tuple[str, ...]:
    """Axes are called as the plates that made them; others by the site's name, as ArviZ does."""
    fn = site.get("fn")
    num_event = len(fn.event_shape) if site["type"] == "sample" else 0
    found = [f"{name}_dim_{axis}" for axis in range(len(shape))]
    for frame in site.get("cond_indep_stack", ()):
        axis = len(shape) - num_event + frame.dim
        if 0 <= axis < len(shape) and shape[axis] == frame.size:
            found[axis] = frame.name
    return tuple(found)


def zeros_of(latents: dict[str, LatentSite]) -> trees.PyTree:
    """The middle of the unconstrained space."""
    return {name: jnp.zeros(site.free_shape) for name, site in latents.items()}
