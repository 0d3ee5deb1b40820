"""What draws say of groups: the effects of their levels, and whose the variance is."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from amagold.core.optional_packages import required
from amagold.store._names import names_of_leaves
from amagold.tables._coefficient_draws import own_names
from amagold.tables._group_terms import GroupTerm
from amagold.tables._predict import check_interval
from amagold.tables._table_model import TableModel, needs_model

if TYPE_CHECKING:
    import pandas

AT_ONCE = 256  # levels whose draws are looked at together
MOST_DRAWS = 20_000  # of all chains that are looked at
RESIDUAL = "residual"
MOST_PRINTED = 40  # levels of a group in a printed summary


def group_effects(run: Any, group: str | None, interval: float) -> "pandas.DataFrame":
    """As `Run.group_effects` says."""
    pandas = required("pandas", "tables")
    model = needs_model(run, "group_effects")
    check_interval(interval)
    parts = []
    for term in chosen_terms(model, group):
        for effect, name, scale in zip(term.effects, term.variables, term.scales, strict=True):
            columns = effect_columns(run, model, term, name, scale, interval)
            parts.append(pandas.DataFrame({"effect": effect, **columns}))
    return pandas.concat(parts, ignore_index=True)


def printed_variables(run: Any) -> tuple[list[str], list[str]]:
    """Which draws a printed summary is of, and what it says of the others."""
    model = needs_model(run, "printed_variables")
    called, names, said = names_of_leaves(own_names(model)), list(run.posterior.data_vars), []
    for term in model.terms.groups:
        if term.num_levels > MOST_PRINTED:
            own = [called[name] for name in term.variables]
            names = [name for name in names if name not in own]
            said.append(
                f"Not shown: {', '.join(own)} of {term.num_levels:,} levels each, which "
                "run.summary(), run.group_effects() and --report have."
            )
    return names, said


def chosen_terms(model: TableModel, group: str | None) -> list[GroupTerm]:
    """The random effects by one group, named as in the formula."""
    known = _some_groups(model)
    if group is None and len(known) == 1:
        group = known[0]
    if group not in known:
        told = ", ".join(map(repr, known))
        raise ValueError(f"group must name one of the formula's groups, {told}, got {group!r}")
    return [term for term in model.terms.groups if term.group == group]


def _some_groups(model: TableModel) -> list[str]:
    """The groups of the formula, each once."""
    known = list(dict.fromkeys(term.group for term in model.terms.groups))
    if not known:
        raise ValueError(
            "the run must be of a formula with random effects, such as 'late ~ distance + (1 | "
            "origin)', and this one has none"
        )
    return known


def effect_columns(
    run: Any, model: TableModel, term: GroupTerm, name: str, scale: str, interval: float
) -> dict[str, Any]:
    """Of every level of one effect, by column."""
    spread = float(np.mean(draws_of(run, model, scale) ** 2))  # E[sigma^2]
    shares = [0.5 * (1.0 - interval), 0.5 * (1.0 + interval)]
    figures = []
    for draws in _in_parts(run, model, name, term.num_levels):
        ends = np.quantile(draws, shares, axis=0)
        figures.append(np.stack([draws.mean(axis=0), draws.std(axis=0), *ends]))
    mean, sd, lower, upper = np.concatenate(figures, axis=1)
    return {
        "level": list(term.levels),
        "mean": mean,
        "sd": sd,
        "lower": lower,
        "upper": upper,
        "rows": term.num_rows,
        # var(u | y) / sigma^2: 1 where a level's rows say nothing
        "shrinkage": np.minimum(1.0, sd**2 / spread) if spread > 0.0 else np.ones_like(sd),
    }


def variance_partition(run: Any, interval: float) -> "pandas.DataFrame":
    """As `Run.variance_partition` says."""
    pandas = required("pandas", "tables")
    model = needs_model(run, "variance_partition")
    check_interval(interval)
    groups = _some_groups(model)
    variances = {
        group: np.sum([_variance(run, model, term) for term in chosen_terms(model, group)], axis=0)
        for group in groups
    }
    residual, words = _residual(run, model)
    variances[RESIDUAL] = np.broadcast_to(residual, variances[groups[0]].shape)
    total = np.sum(list(variances.values()), axis=0)
    ends = [0.5 * (1.0 - interval), 0.5 * (1.0 + interval)]
    around = _groups_around(model)
    found = pandas.DataFrame(
        [
            {
                "source": name,
                "variance": float(values.mean()),
                "share": float((values / total).mean()),
                **dict(
                    zip(("lower", "upper"), np.quantile(values / total, ends).tolist(), strict=True)
                ),
                "intraclass": math.nan
                if name == RESIDUAL
                else float((sum(variances[each] for each in [name, *around[name]]) / total).mean()),
            }
            for name, values in variances.items()
        ]
    )
    found.attrs["residual"] = words
    found.attrs["around"] = around
    return found


def _groups_around(model: TableModel) -> dict[str, list[str]]:
    """Of each group those whose levels its own lie within, as the formula says: rows of one level
    share what those add as well.
    """
    columns = {term.group: set(term.parsed.columns) for term in model.terms.groups}
    return {
        group: [other for other in columns if columns[other] < own]
        for group, own in columns.items()
    }


def _variance(run: Any, model: TableModel, term: GroupTerm) -> np.ndarray:
    """Of each draw the average over rows of t^T Sigma t = trace(Sigma E[t t^T])."""
    scales = np.stack([draws_of(run, model, name) for name in term.scales])
    total = np.einsum("id,id,ii->d", scales, scales, term.moments)
    for name, (first, second) in term.correlations.items():
        both = draws_of(run, model, name) * scales[first] * scales[second]
        total = total + 2.0 * term.moments[first, second] * both
    return total


def _residual(run: Any, model: TableModel) -> tuple[Any, str]:
    """The variance of one outcome on the scale of the predictor, and what that is."""
    if model.family == "linear":
        return draws_of(run, model, "sigma") ** 2, "sigma^2, the variance of the noise"
    if model.family == "logistic":
        return math.pi**2 / 3.0, "pi^2 / 3, the variance of the logistic distribution"
    if model.family == "probit":
        return 1.0, "1, the variance of the standard normal distribution"
    column = model.facts.of_outcome
    mean = column.figures[0] if column is not None and column.figures else math.nan
    if model.family == "poisson":
        # of log y by the lognormal approximation of Nakagawa, Johnson and Schielzeth (2017)
        return math.log1p(1.0 / mean), f"log(1 + 1 / m) at the mean outcome m = {mean:.4g}"
    shape = float(model.arguments["dispersion"])
    words = f"log(1 + 1 / m + 1 / a) at the mean outcome m = {mean:.4g} and a = {shape:g}"
    return math.log1p(1.0 / mean + 1.0 / shape), words


def draws_of(run: Any, model: TableModel, name: str) -> np.ndarray:
    """Of one number, all chains one after another."""
    draws = _thinned(run, model, name)
    if draws.ndim != 2:
        raise ValueError(
            f"the run must have one number {name!r} in each draw, as its table's model says; its "
            "files do not belong together"
        )
    return np.asarray(draws, np.float64).reshape(-1)


def _in_parts(run: Any, model: TableModel, name: str, num_levels: int) -> Iterator[np.ndarray]:
    """Draws of some levels at a time, with axes (draws, levels)."""
    variable = _thinned(run, model, name)
    if variable.shape[2:] != (num_levels,):
        raise ValueError(
            f"the run must have {num_levels:,} levels of {name!r}, as its table's model says, got "
            f"{variable.shape[2:]}; its files do not belong together"
        )
    axis = variable.dims[2]
    for start in range(0, num_levels, AT_ONCE):
        part = variable.isel({axis: slice(start, start + AT_ONCE)})
        yield np.asarray(part, np.float64).reshape(-1, part.shape[2])


def _thinned(run: Any, model: TableModel, name: str) -> Any:
    called = names_of_leaves(own_names(model))[name]
    if called not in run.posterior:
        raise ValueError(
            f"the run must have draws of {called!r}, as its table's model says; its files do not "
            "belong together"
        )
    variable = run.posterior[called]
    stride = max(1, variable.shape[0] * variable.shape[1] // MOST_DRAWS)
    return variable.isel(draw=slice(None, None, stride))
