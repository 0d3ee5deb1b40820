"""A run of a table without sampling: its model, and draws from a random generator."""

import dataclasses

import numpy as np
import xarray

from amagold.sampling._run import Run
from amagold.tables._fit import model_of
from amagold.tables._read_table import read_table

CHAINS, DRAWS = 2, 100
WIDTH = 0.05  # of the draws


def invented_draws(formula, table, family, seed=0, scale=0.5, **of_rows):
    """Runs of one formula have the same draws, whatever their rows; effects of groups have about
    this scale.
    """
    model = model_of(formula, read_table(table), family, None, False, None, **of_rows)
    generator = np.random.default_rng(seed)
    num_classes = (len(model.classes),) if family == "softmax" else ()
    variables = {}
    for term in model.terms.terms:
        if family == "ordinal" and term.name == "Intercept":
            continue
        of_levels = () if term.levels is None else (len(term.levels),)
        variables[term.name] = WIDTH * generator.normal(
            size=(CHAINS, DRAWS, *of_levels, *num_classes)
        )
    if model.scale == "threshold":
        gaps = np.exp(WIDTH * generator.normal(size=(CHAINS, DRAWS, len(model.classes) - 1)))
        variables["threshold"] = np.cumsum(gaps, axis=2) - 1.5
    elif model.scale is not None:
        variables[model.scale] = np.exp(WIDTH * generator.normal(size=(CHAINS, DRAWS)))
    for term in model.terms.groups:
        for name, sigma in zip(term.variables, term.scales, strict=True):
            centers = scale * generator.normal(size=term.num_levels)
            noise = WIDTH * generator.normal(size=(CHAINS, DRAWS, term.num_levels))
            variables[name] = centers + noise
            variables[sigma] = scale * np.exp(WIDTH * generator.normal(size=(CHAINS, DRAWS)))
        for name in term.correlations:
            variables[name] = 0.3 + WIDTH * generator.normal(size=(CHAINS, DRAWS))
    posterior = xarray.Dataset(
        {
            name: (
                ["chain", "draw", *(f"{name}_{axis}" for axis in range(values.ndim - 2))],
                values,
            )
            for name, values in variables.items()
        }
    )
    run = Run({"posterior": posterior}, {}, None, [], None)
    run.model = dataclasses.replace(model, source=table)
    return run
