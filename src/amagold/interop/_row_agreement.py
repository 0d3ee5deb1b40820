"""A model that is called row by row must be the model that is called with all rows: both are
compared before the first draw.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers

from amagold.core.compiling import ONCE, jit
from amagold.data import InMemory
from amagold.interop._model_survey import ModelContents, with_values, zeros_of
from amagold.interop._one_row import InsideLikelihood, NumpyroModel, is_inside, log_probabilities

SCALES = 0.1, 1.0  # of the free numbers at which both are compared
TOLERANCE = 1e-3  # of a log density, beside that much of one


def check_rows(
    model: NumpyroModel, contents: ModelContents, rows: InMemory, held: Any
) -> tuple[str, ...]:
    """Raise unless the rows' log likelihoods and all sites outside the plate are the same when the
    model sees one row as when it sees all. Returns deterministic sites that are not the same.
    """
    _check_shapes(model, contents, rows, held)
    plate, differing, is_known = model.plate, set(), False
    inside = tuple(name for name, site in contents.latents.items() if site.is_of_rows)
    for number, scale in enumerate(SCALES):
        position = _somewhere(contents, number, scale)
        whole, single = _both(model, position, inside, rows, held)
        for name in whole.outside:
            if not _agree(whole.outside[name], single.outside[name]).all():
                raise ValueError(
                    f"site {name!r} outside the plate {plate!r} must not depend on the rows, but "
                    "its log density changes with how many or which of them the model sees; "
                    "compute what it needs of the data outside and pass the numbers as arguments, "
                    "or observe it inside the plate"
                )
        differing |= {
            name
            for name in whole.deterministic
            if not _agree(whole.deterministic[name], single.deterministic[name]).all()
        }
        same = _agree(whole.of_rows, single.of_rows)
        is_known |= bool(np.any(np.isfinite(whole.of_rows)))
        if not same.all():
            raise ValueError(
                f"model must treat rows alike, but the log likelihood of row {same.argmin()} is "
                f"{single.of_rows[same.argmin()]:.6g} where it is called with that row alone and "
                f"{whole.of_rows[same.argmin()]:.6g} with all; compute what rows share (means, "
                "sizes, ranks) outside and pass it as an argument, and bind arrays that only "
                "happen to have as many entries as there are rows with functools.partial"
            )
    if not is_known:
        raise ValueError(
            "model must have a finite log likelihood somewhere near zero in free numbers, got "
            "none; check its outcomes against its distributions"
        )
    return tuple(name for name in contents.deterministic if name in differing)


def _check_shapes(model: NumpyroModel, contents: ModelContents, rows: InMemory, held: Any) -> None:
    """Latent sites have as many numbers for one row as for all."""
    shapes: dict[str, tuple[int, ...]] = {}

    def run(rows: Any) -> None:
        arguments, keywords = model.form.call(rows, held)
        sites = handlers.trace(with_values(model.of_rows())).get_trace(*arguments, **keywords)
        shapes.update({name: np.shape(sites[name]["value"]) for name in contents.latents})

    jax.eval_shape(run, rows.rows(np.zeros(1, np.int32)))
    for name, site in contents.latents.items():
        if not site.is_of_rows and shapes[name] != site.shape:
            raise ValueError(
                f"site {name!r} must have a shape that does not depend on the number of rows, got "
                f"{site.shape} for all and {shapes[name]} for one; pass its size to the model as a "
                f"number, and pick its values by a column of numbers ({name}[group])"
            )


class Densities:
    """Log densities of a model's sites at a position: of each row, and of each site outside."""

    def __init__(self, of_rows: Any, outside: Any, deterministic: Any) -> None:
        self.of_rows = np.asarray(of_rows)
        self.outside = {name: np.asarray(value) for name, value in outside.items()}
        self.deterministic = {name: np.asarray(value) for name, value in deterministic.items()}


def _both(
    model: NumpyroModel, position: Any, inside: tuple[str, ...], rows: InMemory, held: Any
) -> tuple[Densities, Densities]:
    """Of the model with all rows, and with one at a time, whose latent sites inside the plate then
    have one number.
    """
    all_rows = NumpyroModel(model.model, None, model.form)
    try:
        whole = _of_all(all_rows, model.plate, position, rows.arrays, held)
    except _ShapeError as found:
        raise ValueError(
            f"site {found} inside the plate {model.plate!r} must have one log density for each "
            "row along the plate's axis; give arrays their rows along the first axis, and the "
            "plate its dim where it is nested"
        ) from None
    likelihood = InsideLikelihood(model, held)
    of_rows = _of_each(
        likelihood,
        {name: value for name, value in position.items() if name not in inside},
        {name: position[name][:, None] for name in inside},
        rows.arrays,
    )
    alone = position | {name: np.zeros(1, np.float32) for name in inside}
    single = _outside(model, alone, rows.rows(np.zeros(1, np.int32)), held)
    return Densities(*whole), Densities(of_rows, *single)


class _ShapeError(Exception):
    """A site's log densities are not by rows."""


@jit(ONCE, "model", "plate")
def _of_all(model: NumpyroModel, plate: str | None, position: Any, rows: Any, held: Any) -> Any:
    values = model.constrained(position, rows, held)
    sites = model.sites(values, rows, held)
    of_rows: Any = 0.0
    for name, site in sites.items():
        if site["type"] != "sample" or not is_inside(site, plate):
            continue
        found = log_probabilities(site)
        frame = next(each for each in site["cond_indep_stack"] if each.name == plate)
        if found.ndim < -frame.dim or found.shape[frame.dim] != frame.size:
            raise _ShapeError(repr(name))
        others = tuple(axis for axis in range(found.ndim) if axis != found.ndim + frame.dim)
        of_rows = of_rows + jnp.sum(found, axis=others)
    return of_rows, *_others(sites, plate)


@jit(ONCE, "model")
def _outside(model: NumpyroModel, position: Any, rows: Any, held: Any) -> Any:
    values = model.constrained(position, rows, held)
    return _others(model.sites(values, rows, held), model.plate)


def _others(sites: Any, plate: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    outside = {
        name: jnp.sum(log_probabilities(site))
        for name, site in sites.items()
        if site["type"] == "sample" and not is_inside(site, plate)
    }
    deterministic = {
        name: site["value"]
        for name, site in sites.items()
        if site["type"] == "deterministic" and not is_inside(site, plate)
    }
    return outside, deterministic


@jit(ONCE)
def _of_each(likelihood: InsideLikelihood, shared: Any, own: Any, rows: Any) -> jax.Array:
    return jax.vmap(lambda own, row: likelihood(shared | own, row))(own, rows)


def _agree(of_all: np.ndarray, of_one: np.ndarray) -> np.ndarray:
    """Where a log density of one row is as that of all says; what is not finite there says
    nothing.
    """
    if of_all.shape != of_one.shape:
        return np.array([False])
    with np.errstate(invalid="ignore"):
        near = np.abs(of_all - of_one) <= TOLERANCE * (1.0 + np.abs(of_all))
    return np.atleast_1d(near | ~np.isfinite(of_all))


def _somewhere(contents: ModelContents, number: int, scale: float) -> Any:
    """A position about zero, the same for the same model."""
    random = np.random.default_rng(number)
    return {
        name: np.float32(scale * random.uniform(-1.0, 1.0, zero.shape))
        for name, zero in zeros_of(contents.latents).items()
    }
