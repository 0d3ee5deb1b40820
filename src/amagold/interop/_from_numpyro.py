"""A NumPyro model as a target: the data plate's rows are examples, what is outside it the prior."""

from typing import Any

import numpy as np

from amagold.core.optional_packages import required
from amagold.data import InMemory, checked_data
from amagold.target import Density, Posterior


def from_numpyro(
    model: Any, *args: Any, plate: str | None = "data", **kwargs: Any
) -> Posterior | Density:
    """The posterior of a NumPyro model, given the arguments that it is called with.

    Observed sites inside the plate are the likelihood, one row at a time; latent sites, observed
    ones and factors outside it are the prior. Free numbers are sampled, by NumPyro's own
    bijections; reported draws are values of the sites, deterministic ones too, whose axes are
    called as their plates. Where the likelihood is of a known kind and sees the parameters through
    a linear predictor, it comes with bounds, and `amagold.sample` tests on a few rows. Where sites
    are effects of groups, or of rows, with a scale that is sampled too, it is a mixed model, as
    `amagold.models.mixed` makes them, and positions are its coefficients, effects and log scales.

    Args:
      model: a function with NumPyro's primitives, handlers around it included.
      args, kwargs: what the model is called with. Arrays as long as the plate are split into rows,
        and the model must treat rows alike: it is called with one row of each.
      plate: the name of the plate over the examples. None makes an `amagold.Density` of the whole
        model, every evaluation of which looks at all data.
    """
    return target_of(model, args, kwargs, plate)


def target_of(
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    plate: str | None,
    *,
    is_mixed: bool = True,
) -> Posterior | Density:
    """The same; with `is_mixed` False positions are free numbers of sites whatever the model."""
    required("numpyro", "numpyro")
    from amagold.interop._model_arguments import split_call
    from amagold.interop._model_survey import contents_of, zeros_of
    from amagold.interop._one_row import InsideLikelihood, NumpyroModel, OutsidePrior, WholeDensity
    from amagold.interop._row_agreement import check_rows
    from amagold.interop._site_values import (
        DeterministicSites,
        FreeNumbers,
        SiteConstraints,
        SiteTransform,
    )

    if not callable(model):
        raise ValueError(
            f"model must be a function with NumPyro's primitives, got {type(model).__name__}; "
            "give the function itself, and its arguments after it"
        )
    contents = contents_of(model, args, kwargs, plate)
    form, rows, held = split_call(args, kwargs, contents.num_rows)
    if plate is not None and not rows:
        raise ValueError(
            f"args must hold the data: no array has the {contents.num_rows} rows of plate "
            f"{plate!r} along its first axis; pass the arrays to the model as arguments instead of "
            "reading them from outside, one row per example"
        )
    init, reported = zeros_of(contents.latents), tuple(contents.deterministic)
    own = NumpyroModel(model, plate, form, reported)
    row: Any = {}
    unreported = contents.of_rows
    examples = None
    if plate is not None:
        examples = InMemory(checked_data(rows))
        row = examples.rows(np.zeros(1, np.int32))
        differing = check_rows(own, contents, examples, held)
        unreported += differing
        reported = tuple(name for name in reported if name not in differing)
        inside = tuple(name for name, site in contents.latents.items() if site.is_of_rows)
        own = NumpyroModel(model, plate, form, reported, inside)
        if is_mixed:
            from amagold.interop._mixed_target import mixed_target

            found = mixed_target(own, held, contents, examples, unreported)
            if found is not None:
                return found
        if inside:
            raise ValueError(
                f"site {inside[0]!r} must not be latent inside the plate {plate!r}: every example "
                "would bring parameters of its own, which no minibatch of the others moves. "
                "amagold.sample(amagold.from_numpyro(...)) takes them where they are Normal(loc, "
                "scale) of a positive site scale and loc affine in Normal sites, and the outcome "
                "sees an affine number (or the exponential of one) of them; NumPyro's own driver "
                f"does not. Sample {inside[0]!r} outside, in a plate of its own, and pick its "
                f"values by a column of numbers ({inside[0]}[group]), sum or integrate it out, or "
                "give plate=None for a density of the whole model"
            )
    parts = (own, held, row)
    shared: dict[str, Any] = {
        "init": init,
        "transform": SiteTransform(
            SiteConstraints(*parts),
            FreeNumbers(*parts),
            tuple((name, len(site.free_shape)) for name, site in contents.latents.items()),
            tuple((name, len(site.shape)) for name, site in contents.latents.items()),
        ),
        "dims": {name: list(site.dims) for name, site in contents.latents.items()}
        | {name: list(contents.deterministic[name]) for name in reported},
        "derived": DeterministicSites(*parts) if reported else None,
    }
    if examples is None:
        return Density(WholeDensity(own, held), **shared)
    from amagold.interop._bounds_for import bounds_for, is_log_concave

    likelihood, bounds = bounds_for(InsideLikelihood(own, held), init, examples)
    prior = OutsidePrior(*parts, is_log_concave(own, init, row, held), unreported)
    return Posterior(likelihood, prior, examples, bounds=bounds, **shared)
