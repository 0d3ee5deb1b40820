"""How far the Laplace approximation, a Gaussian at the mode, would have been off: was there any
need for draws?
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from scipy import special

from amagold.core import trees
from amagold.core.arviz import arviz_stats
from amagold.mode._curvature import curvature_at
from amagold.mode._derivatives import derivatives_at, whole_hessian
from amagold.mode._mode_search import Mode, find_mode
from amagold.mode._reference import DENSE_PARAMETERS
from amagold.planning import horseshoe_in
from amagold.store._names import name_leaves
from amagold.target import Posterior, Target
from amagold.target._effects_prior import EffectsPrior
from amagold.target._reported import reported

if TYPE_CHECKING:
    import pandas
    import xarray

TAIL = 0.05  # of the Gaussian, on either side of its central 90%
MOST_DRAWS = 20_000  # of the posterior that are looked at
GAUSSIAN_DRAWS = 2**14  # of a parameter that is no linear function of the position
MOST_NUMBERS = 2**24  # of such draws in memory
# a gap that matters: of a mean in standard deviations, of a standard deviation, of a tail's share
SHIFT, RATIO, SHARE = 0.1, 0.1, 0.02
SURE = 3.0  # Monte Carlo errors that a gap must have beside that
OF_GROUPS = (
    "You needed MCMC: with the effects of groups, and their scales near zero, the density grows "
    "without end, so that there is no mode and no Laplace approximation."
)
COLUMNS = ("mean_shift", "sd_ratio", "below", "above", "error", "sd_error", "tail_error")


class Gaussian90(NamedTuple):
    """What the approximation says of every entry of a reported variable."""

    mean: np.ndarray
    sd: np.ndarray
    lower: np.ndarray  # its 5% quantile
    upper: np.ndarray


def laplace_gap(posterior: "xarray.Dataset", target: Target) -> "pandas.DataFrame":
    """One row for each parameter, as `Run.laplace_gap` says."""
    import xarray
    from arviz_base import dataset_to_dataframe

    approximation = _approximation(target)
    stride = max(1, posterior.sizes["chain"] * posterior.sizes["draw"] // MOST_DRAWS)
    thinned = posterior.isel(draw=slice(None, None, stride))
    found = {}
    for name, variable in thinned.data_vars.items():
        values = _nothing(variable.shape[2:])
        if approximation is not None:
            values = _gaps(np.asarray(variable, np.float64), approximation[str(name)])
        one = variable.isel(chain=0, draw=0, drop=True)
        found[name] = one.expand_dims(figure=list(COLUMNS)).copy(data=values)
    table: Any = dataset_to_dataframe(xarray.Dataset(found), sample_dims=["figure"]).T
    table = table[list(COLUMNS)].astype(float)
    has_groups = isinstance(getattr(target, "log_prior", None), EffectsPrior)
    table.attrs["verdict"] = OF_GROUPS if has_groups else _verdict(table, approximation is not None)
    return table


def _approximation(target: Target) -> dict[str, Gaussian90] | None:
    """N(mode, H^-1) of everything that is reported; None where there is no such Gaussian."""
    if target.init is None:
        raise ValueError(
            "target must have an init for the search of its mode; build it with init=..."
        )
    if isinstance(target, Posterior) and isinstance(target.log_prior, EffectsPrior):
        return None  # as groups' scales go to zero the density grows without end
    size = trees.size(target.init)
    if size > DENSE_PARAMETERS:
        raise ValueError(
            f"the run must have at most {DENSE_PARAMETERS:,} parameters to be compared with a "
            f"Gaussian, whose Hessian is kept whole, got {size:,}"
        )
    if horseshoe_in(target) is not None:
        return None  # its density grows without end
    mode = find_mode(target, target.init)
    factor = _factor(target, mode) if mode.is_converged else None
    if factor is None:
        return None
    center = trees.known_numbers(mode.position)
    at_mode = _reported(target, center[None], mode.position)
    # theta = mode + F e has the covariance F F^T = H^-1
    along = _reported(target, center + factor.T, mode.position)
    back = _reported(target, center - factor.T, mode.position)
    found, curved = {}, []
    for name, middle in at_mode.items():
        slopes = 0.5 * (along[name] - back[name])
        bend = np.abs(along[name] + back[name] - 2.0 * middle).max(initial=0.0)
        if bend > 1e-3 * np.abs(slopes).max(initial=0.0) + 1e-5 * np.abs(middle).max(initial=0.0):
            curved.append(name)
        sd = np.sqrt(np.sum(slopes**2, axis=0))
        reach = special.ndtri(1.0 - TAIL) * sd
        found[name] = Gaussian90(middle[0], sd, middle[0] - reach, middle[0] + reach)
    if curved:
        found |= _by_draws(target, mode.position, factor, curved)
    return found


def _by_draws(
    target: Target, position: trees.PyTree, factor: np.ndarray, names: list[str]
) -> dict[str, Gaussian90]:
    """The same of what is no linear function of the position, from draws of the Gaussian."""
    center = trees.known_numbers(position)
    count = min(GAUSSIAN_DRAWS, max(2**10, MOST_NUMBERS // len(center))) // 2
    noise = np.random.default_rng(0).normal(size=(count, len(center))) @ factor.T
    drawn = _reported(target, center + np.concatenate([noise, -noise]), position)
    return {
        name: Gaussian90(
            drawn[name].mean(axis=0),
            drawn[name].std(axis=0),
            *np.quantile(drawn[name], [TAIL, 1.0 - TAIL], axis=0),
        )
        for name in names
    }


def _factor(target: Target, mode: Mode) -> np.ndarray | None:
    """F with F F^T = H^-1; None where the energy does not curve upwards everywhere."""
    position = mode.position
    if isinstance(target, Posterior):
        # the search has taken them where it ended, but where a few examples stood for all
        of_data = mode.of_data or derivatives_at(target, position, 2)
        hessian = whole_hessian(target, position, of_data.hessian)
    else:
        curvature = curvature_at(target, position)
        if curvature.matrix is None or not curvature.is_positive:
            return None
        hessian = curvature.matrix
    # in units where the diagonal is one, so that parameters of any width are alike
    scales = np.sqrt(np.abs(np.diag(hessian)))
    if not np.isfinite(hessian).all() or not (scales > 0).all():
        return None
    eigenvalues, directions = np.linalg.eigh(hessian / np.outer(scales, scales))
    if eigenvalues.min() <= 0:
        return None
    return directions / np.sqrt(eigenvalues) / scales[:, None]


def _reported(target: Target, flat: np.ndarray, like: trees.PyTree) -> dict[str, np.ndarray]:
    """What is reported of positions that are rows."""
    leaves, form = jax.tree.flatten(like)
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]
    parts = [
        part.reshape(len(flat), *leaf.shape)
        for part, leaf in zip(np.split(flat, ends, axis=1), leaves, strict=True)
    ]
    named = name_leaves(reported(target, jax.tree.unflatten(form, parts), 1))
    return {name: np.asarray(values, np.float64) for name, values in named.items()}


def _gaps(draws: np.ndarray, gaussian: Gaussian90) -> np.ndarray:
    """The columns, first, of draws with axes (chain, draw, ...)."""
    shape = draws.shape[2:]
    flat = draws.reshape(*draws.shape[:2], -1)
    mean, sd = flat.mean(axis=(0, 1)), flat.std(axis=(0, 1))
    stats = arviz_stats()
    ess = np.stack(
        [
            stats.ess(flat, method=method, chain_axis=0, draw_axis=1, **options)
            for method, options in (
                ("mean", {}),
                ("sd", {}),
                ("quantile", {"prob": TAIL}),
                ("quantile", {"prob": 1.0 - TAIL}),
            )
        ]
    )
    ess = np.maximum(np.nan_to_num(ess, nan=1.0), 1.0)
    lower, upper = np.ravel(gaussian.lower), np.ravel(gaussian.upper)
    below, above = (flat < lower).mean(axis=(0, 1)), (flat > upper).mean(axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = (mean - np.ravel(gaussian.mean)) / sd
        ratio = sd / np.ravel(gaussian.sd)
    # a share that is nought is as uncertain as the one that is expected
    shares = np.maximum(np.stack([below, above]), TAIL)
    of_tails = np.sqrt(shares * (1.0 - shares) / ess[2:]).max(axis=0)
    errors = [1.0 / np.sqrt(ess[0]), ratio / np.sqrt(2.0 * ess[1]), of_tails]
    return np.stack([shift, ratio, below, above, *errors]).reshape(len(COLUMNS), *shape)


def _nothing(shape: tuple[int, ...]) -> np.ndarray:
    return np.full((len(COLUMNS), *shape), np.nan)


def _verdict(table: Any, is_known: bool) -> str:
    """Did you need MCMC?"""
    if not is_known:
        return (
            "You needed MCMC: the search found no mode with a Gaussian around it, so there is no "
            "Laplace approximation."
        )
    excess = {
        "mean_shift": (table["mean_shift"].abs() - SURE * table["error"]) / SHIFT,
        "sd_ratio": ((table["sd_ratio"] - 1.0).abs() - SURE * table["sd_error"]) / RATIO,
        "below": ((table["below"] - TAIL).abs() - SURE * table["tail_error"]) / SHARE,
        "above": ((table["above"] - TAIL).abs() - SURE * table["tail_error"]) / SHARE,
    }
    worst = max(excess, key=lambda name: excess[name].max())
    if not excess[worst].max() > 1.0:
        few = (
            "As far as so few draws can tell, you" if SURE * table["error"].max() > SHIFT else "You"
        )
        return (
            f"{few} did not need MCMC here: a Gaussian at the mode has every mean within "
            f"{table['mean_shift'].abs().max():.2g} posterior standard deviations, every standard "
            f"deviation within {100 * (table['sd_ratio'] - 1.0).abs().max():.2g}%, and between "
            f"{100 * table[['below', 'above']].min(axis=None):.2g}% and "
            f"{100 * table[['below', 'above']].max(axis=None):.2g}% of the draws in each tail "
            f"where it expects {100 * TAIL:g}%."
        )
    name = excess[worst].idxmax()
    row = table.loc[name]
    told = {
        "mean_shift": f"has the mean of {name!r} off by {abs(row['mean_shift']):.2g} posterior "
        "standard deviations",
        "sd_ratio": f"has a standard deviation of {name!r} that is {1 / row['sd_ratio']:.2g} times "
        "the posterior's",
        "below": f"expects {100 * TAIL:g}% of {name!r} in its lower tail, where "
        f"{100 * row['below']:.2g}% of the draws are",
        "above": f"expects {100 * TAIL:g}% of {name!r} in its upper tail, where "
        f"{100 * row['above']:.2g}% of the draws are",
    }
    return f"You needed MCMC: a Gaussian at the mode {told[worst]}."
