"""Warnings that say what to do."""

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

LARGEST_R_HAT = 1.01  # Vehtari et al., 2021
SMALLEST_ESS = 400.0  # the same: enough for R-hat and the intervals to be trusted
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
    """The draws are there, and are not thrown away for a warning: it is said where errors are read."""
    print(f"{type(error).__name__}: {error}", file=sys.stderr)


def advice_on(posterior: Any, sample_stats: Any, has_test: bool) -> list[str]:
    """Sentences about draws that should not be trusted as they are; empty when all is well."""
    from amagold.diagnose.convergence import maximum_r_hat, minimum_ess

    num_chains, num_draws = sample_stats.sizes["chain"], sample_stats.sizes["draw"]
    if num_draws == 0:
        return [
            "no draws were kept: the run stopped before the first one; give it more time (compilation counts), or resume it from its store"
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
            f"zero acceptance: no chain moved (mean acceptance {rates.mean():.2g}); the step size is too large or the gradients too noisy: "
            "lower step_size, raise batch_size, or let warm-up adapt it with warmup=amagold.Warmup(target_acceptance=0.8)"
        )
        return found
    if len(frozen):
        names = ", ".join(map(str, frozen[:8])) + (", ..." if len(frozen) > 8 else "")
        found.append(
            f"frozen chains: {len(frozen)} of {num_chains} (number {names}) hardly accept a proposal; they are stuck where they "
            "began: start them "
            "elsewhere with init_per_chain, or warm up longer with num_warmup"
        )
    if divergent:
        found.append(
            f"divergences: {divergent} of {num_chains * num_draws} kept transitions ended at a ratio that is not finite or hopeless; "
            "lower step_size, "
            "raise target_acceptance, or rescale the parameters"
        )
    few = reduced(posterior)
    if num_draws >= 4 and few.data_vars:
        r_hat, ess = maximum_r_hat(few), minimum_ess(few)
        if not r_hat <= LARGEST_R_HAT:
            found.append(
                f"R-hat: {r_hat:.3f} for the worst parameter, above {LARGEST_R_HAT}; the chains have not mixed: draw more with "
                "num_samples, warm up "
                "longer, or look at run.summary() for the parameter that lags"
            )
        if not ess >= SMALLEST_ESS:
            found.append(
                f"small ESS: {ess:.0f} effective draws for the worst parameter, below {SMALLEST_ESS:.0f}; draw more with num_samples, or "
                "keep every "
                "k-th with thin=k at the same memory"
            )
    return found


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
            keep = max(1, int(extent * min(1.0, (MOST_COORDINATES / coordinates) ** (1.0 / len(variable.dims[2:])))))
            picks[dimension] = np.unique(np.linspace(0, extent - 1, keep).astype(int))
        blocks = [variable.isel(draw=slice(block.start, block.stop, stride), **picks).load() for block in _blocks(num_draws, stride)]
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
