"""Warnings that say what to do."""

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

LARGEST_R_HAT = 1.01  # Vehtari et al., 2021
SMALLEST_ESS = 400.0  # the same: enough for R-hat and the intervals to be trusted
# of the transitions: a step into a steep wall now and then is just a rejection
TOLERATED_DIVERGENCES = 1e-3
SMALLEST_ENERGY_MIXING = 0.3  # Stan's bound for the energy fraction
FEWEST_CHAINS = 4  # that start far apart, for their agreement to mean something
FEWEST_DRAWS = 4  # that anything can be told from
APART = 1.5  # R-hat, above which chains are in different places rather than slow
# effective draws of one chain by itself per draw, above which it moves; a random walk has some two
# in a hundred
MOVES = 0.05
FROZEN = 1e-3  # a chain that accepts less than this share of its proposals does not move
BLOCK_DRAWS = 100_000  # statistics are read this many draws at a time
MOST_VALUES = 40_000  # of one parameter are looked at for R-hat and ESS
MOST_COORDINATES = 500


class SamplingWarning(UserWarning):
    """Something about a run needs attention."""


def warn(sentences: list[str], depth: int) -> None:
    """Warn at the line that is `depth` calls above the caller: the user's own."""
    for sentence in sentences:
        try:
            warnings.warn(sentence, SamplingWarning, stacklevel=2 + depth)
        except SamplingWarning as error:  # warnings are errors here
            _instead_of_raising(error)


def _instead_of_raising(error: SamplingWarning) -> None:
    """The draws are there, and are not thrown away for a warning: it is said where errors
    are read.
    """
    print(f"{type(error).__name__}: {error}", file=sys.stderr)


def advice_on(posterior: Any, sample_stats: Any, has_test: bool, plan: Any = None) -> list[str]:
    """Sentences about draws that should not be trusted as they are; empty when all is well."""
    num_chains, num_draws = sample_stats.sizes["chain"], sample_stats.sizes["draw"]
    if num_draws == 0:
        return [
            "no draws were kept: the run stopped before the first one; give it more time "
            "(compilation counts), or resume it from its store"
        ]
    found = []
    accepted, divergent = np.zeros(num_chains), 0
    for block in _blocks(num_draws):
        part = sample_stats.isel(draw=block)
        accepted += np.asarray(part["acceptance_rate"]).sum(axis=1)
        divergent += int(np.asarray(part["diverging"]).sum())
    rates = accepted / num_draws
    frozen = np.flatnonzero(rates < FROZEN) if has_test else np.array([], int)
    if len(frozen) == num_chains:
        found.append(
            f"zero acceptance: no chain moved (mean acceptance {rates.mean():.2g}); the step size "
            "is too large or the gradients too noisy: "
            "lower step_size, raise batch_size, or let warm-up adapt it with "
            "warmup=amagold.Warmup(target_acceptance=0.8)"
        )
        return advice_on_mode(plan) + found
    if len(frozen):
        names = ", ".join(map(str, frozen[:8])) + (", ..." if len(frozen) > 8 else "")
        found.append(
            f"frozen chains: {len(frozen)} of {num_chains} (number {names}) hardly accept a "
            "proposal; they are stuck where they "
            "began: start them "
            "elsewhere with init_per_chain, or warm up longer with num_warmup"
        )
    if divergent > TOLERATED_DIVERGENCES * num_chains * num_draws:
        found.append(
            f"divergences: {divergent} of {num_chains * num_draws} kept transitions ended at a "
            "ratio that is not finite or hopeless, so "
            "part of the posterior may be out of reach; take smaller steps with "
            "warmup=amagold.Warmup(target_acceptance=0.95), or write "
            "the model so that no scale depends on a parameter (non-centre a hierarchical model)"
        )
    few = reduced(posterior)
    if num_draws < FEWEST_DRAWS:
        found.append(
            f"few draws: {num_draws} of each chain are too few to tell anything; draw more with "
            "num_samples"
        )
    elif few.data_vars:
        found += _on_mixing(few)
    found += _on_energy(sample_stats, num_draws)
    return advice_on_mode(plan) + found if found else []


def advice_on_mode(plan: Any) -> list[str]:
    """What may lie behind other advice where no mode was found; of draws about which nothing else
    is to be said, it is no matter.
    """
    if getattr(plan, "is_mode_found", True):
        return []
    return [
        f"no mode: {plan.num_searches} search(es) found none, so the density may rise without end "
        "or be flat, and chains start "
        "near init; give an init inside the bulk, write scale parameters as logarithms, "
        "non-centre a hierarchical model, or give a "
        "proper prior"
    ]


def advice_on_plan(plan: Any, num_chains: int, starts_given: bool) -> list[str]:
    """Sentences about modes that the chains do not start at; empty when all is well."""
    if not hasattr(plan, "num_weighty_modes"):
        return []
    weighty = plan.num_weighty_modes
    if weighty > 1 and (starts_given or weighty > num_chains):
        return [
            f"several modes: {weighty} that may hold mass (shares "
            f"{', '.join(f'{share:.2g}' for share in plan.mode_shares)}), and the "
            "chains do not start at all of them; leave init out and set num_chains to at least "
            "twice as many"
        ]
    if not plan.is_explained and (starts_given or num_chains < FEWEST_CHAINS):
        return [
            "hidden mass: there is some that the curvature at the mode does not account for, and "
            "the chains do not start far apart, so that their agreement says little; leave init "
            f"out and run at least {FEWEST_CHAINS} chains"
        ]
    return []


def _on_mixing(few: Any) -> list[str]:
    """R-hat, and effective draws of the bulk and of the tails."""
    from amagold.diagnose._convergence import (
        maximum_r_hat,
        minimum_ess,
        minimum_tail_ess,
        smallest_ess_within,
    )

    found = []
    r_hat, ess, tail = maximum_r_hat(few), minimum_ess(few), minimum_tail_ess(few)
    if not r_hat <= LARGEST_R_HAT:
        within = smallest_ess_within(few) / few.sizes["draw"]
        found.append(
            # 1.0104 is above
            f"R-hat: {r_hat:.{4 if r_hat < 1.02 else 3}f} for the worst parameter, above "
            f"{LARGEST_R_HAT}; "
            f"{_why_apart(r_hat, within)}"
        )
    if not ess >= SMALLEST_ESS:
        found.append(
            f"small ESS: {ess:.0f} effective draws for the worst parameter, below "
            f"{SMALLEST_ESS:.0f}; draw more with num_samples, or "
            "keep every k-th with thin=k at the same memory"
        )
    elif not tail >= SMALLEST_ESS:
        found.append(
            f"small tail ESS: {tail:.0f} effective draws for a 5% or 95% quantile, below "
            f"{SMALLEST_ESS:.0f}; means may do, intervals "
            "and tail probabilities do not: draw more with num_samples, take smaller steps with "
            "warmup=amagold.Warmup(target_acceptance=0.95), or write the model so that its tails "
            "are shorter (non-centred, logarithms)"
        )
    return found


def _why_apart(r_hat: float, within: float) -> str:
    if not r_hat > APART:
        return (
            "the chains have not mixed: draw more with num_samples, warm up longer with "
            "num_warmup, or look at run.summary() for the "
            "parameter that lags"
        )
    if within < MOVES:
        return (
            "the chains accept proposals and hardly move, each is frozen near its start: more "
            "draws would not help; start in the bulk "
            "with init, rescale the parameters to similar sizes, and check that log_prior and "
            "log_likelihood say what they should"
        )
    return (
        "each chain moves where it is and they are in different places: several modes, between "
        "which chains do not cross and whose shares of the mass are unknown, or a long tail that "
        "they wander along slowly. Look at the chains one by one; more draws help little, and "
        "against a tail priors that say more do"
    )


def _on_energy(sample_stats: Any, num_draws: int) -> list[str]:
    from amagold.diagnose._convergence import energy_mixing

    if "energy" not in sample_stats or num_draws < 100:
        return []
    part = np.asarray(sample_stats["energy"].isel(draw=slice(0, BLOCK_DRAWS)), np.float64)
    mixing = energy_mixing(part) if np.all(np.isfinite(part)) else 2.0
    if mixing >= SMALLEST_ENERGY_MIXING:
        return []
    return [
        f"slow energy: from draw to draw the energy changes by {mixing:.2f} of its variance, "
        f"below {SMALLEST_ENERGY_MIXING}; the chains "
        "wander slowly between the bulk and the tails, whose weight is then uncertain: draw more "
        "with num_samples, or write the model "
        "so that its tails are shorter (non-centre a hierarchical model, take logarithms of scales)"
    ]


def reduced(posterior: Any) -> Any:
    """A bounded part of the draws: every so many of them, and of very many parameters some."""
    parts = {}
    for name, variable in posterior.data_vars.items():
        if not variable.size:
            continue
        num_chains, num_draws = variable.shape[:2]
        stride = max(1, -(-num_chains * num_draws // MOST_VALUES))
        picks = {}
        coordinates = int(np.prod(variable.shape[2:], dtype=np.int64))
        for axis, dimension in enumerate(variable.dims[2:]):
            # the share of coordinates that is looked at, spread over the axes
            extent = variable.shape[2 + axis]
            keep = max(
                1,
                int(
                    extent
                    * min(1.0, (MOST_COORDINATES / coordinates) ** (1.0 / len(variable.dims[2:])))
                ),
            )
            picks[dimension] = np.unique(np.linspace(0, extent - 1, keep).astype(int))
        blocks = [
            variable.isel(draw=slice(block.start, block.stop, stride), **picks).load()
            for block in _blocks(num_draws, stride)
        ]
        parts[name] = blocks[0] if len(blocks) == 1 else _concatenate(blocks)
    import xarray

    return xarray.Dataset(parts)


def _concatenate(blocks: list[Any]) -> Any:
    import xarray

    return xarray.concat(blocks, dim="draw")


def _blocks(num_draws: int, stride: int = 1) -> Iterator[slice]:
    size = BLOCK_DRAWS // stride * stride or stride
    for start in range(0, num_draws, size):
        yield slice(start, min(start + size, num_draws))
