"""`amagold.update`: more rows, same chains."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from amagold.acceptance import TunaTest
from amagold.acceptance._tuna_setup import with_more
from amagold.adaptation._warmup import Warmup
from amagold.core import trees
from amagold.data import Joined
from amagold.gradients import ControlVariate
from amagold.mode._derivatives import density_derivatives, derivatives_at
from amagold.mode._newton import moved
from amagold.mode._reference import Reference, reference_from
from amagold.models._more_rows import more_rows
from amagold.planning._plan import Plan
from amagold.samplers import Sampler
from amagold.sampling._prepare import Prepared, rules_of
from amagold.sampling._run import Run
from amagold.sampling._sample import run_prepared, sample
from amagold.sampling._settings import Settings
from amagold.target import Posterior
from amagold.target._transform import reported
from amagold.trajectory import Rotation
from amagold.trajectory._mass_matrix import as_mass

# squared standard deviations per parameter, that the mode may be from the reference: a draw is as
# far from the mode itself
FARTHEST = 1.0


def update(
    run: Run,
    new_rows: Any,
    num_samples: int | None = None,
    num_warmup: int = 100,
    *,
    seed: int | None = None,
    progress: bool = True,
    max_time: float | None = None,
) -> Run:
    """More rows, same chains: draws from the posterior of all rows, old and new.

    Chains go on from where they are, with a short warm-up. Where the run has control variates about
    a mode, their sums over the new rows are added at that place, and the test's bounds extended: no
    old row is read again, and the draws are exact for all rows. Where the mode has moved too far
    for that, or the run has none, it is planned again from where the chains are, and that is said.
    The prior stays what it was, also where it was scaled by the first data.

    Args:
      run: what `amagold.sample` returned in this process, complete.
      new_rows: arrays like the target's data, with further rows; for a ready-made model (X, y);
        for data on disk a table with the same columns (`amagold.data.open`).
      num_samples: draws kept of each chain; None is as many as the run has.
      num_warmup: transitions of each chain before the first kept draw.
      seed: of all random numbers; None is the run's and one.
      progress: say what is done, and show progress on a terminal.
      max_time: seconds for the whole call.
    """
    sampler, positions = run.sampler, run.positions
    if sampler is None or positions is None:
        raise ValueError(
            "run must come from amagold.sample or amagold.update in this process, got one that "
            "was loaded, which has no sampler; resume it first"
        )
    target = sampler.target
    if not isinstance(target, Posterior):
        raise ValueError(
            "run must be of a target with data (amagold.Posterior), got a Density, to which no "
            "rows can be added"
        )
    added = more_rows(target, new_rows)
    joined = dataclasses.replace(target, data=Joined(target.examples, added))
    settings = Settings(
        run.posterior.sizes["draw"] if num_samples is None else num_samples,
        num_warmup,
        run.posterior.sizes["chain"],
        run.attributes["seed"] + 1 if seed is None else seed,
        1,
        Warmup(),
    )
    grown = _grown(sampler, joined, dataclasses.replace(target, data=added))
    if grown is None or not isinstance(run.plan, Plan):
        if progress:
            print("The run is planned again: its reference cannot serve all rows.")
        return sample(
            joined,
            settings.num_samples,
            num_warmup,
            settings.num_chains,
            settings.seed,
            init_per_chain=reported(target, positions),
            progress=progress,
            max_time=max_time,
        )
    plan = dataclasses.replace(run.plan, num_examples=joined.num_examples)
    prepared = Prepared(grown, plan, rules_of(grown, plan, settings), positions)
    if progress:
        print(
            f"{added.num_examples:,} rows are added to {target.num_examples:,}, about the same "
            "reference."
        )
    return run_prepared(lambda: prepared, settings, None, progress, max_time)


def _grown(sampler: Sampler, joined: Posterior, new: Posterior) -> Sampler | None:
    """The sampler for all rows about the same reference; None where that cannot serve them."""
    gradient, test, proposal = sampler.gradient, sampler.acceptance, sampler.proposal
    if not isinstance(gradient, ControlVariate) or not isinstance(proposal, Rotation):
        return None
    known = gradient.known_reference()
    if known is None or known.hessian is None:
        return None
    if test.known_reference() is not None and not isinstance(test, TunaTest):
        return None
    of_new = reference_from(known.position, derivatives_at(new, known.position, 2))
    assert of_new.hessian is not None
    whole = Reference(
        known.position, _sum(known.gradient, of_new.gradient), _sum(known.hessian, of_new.hessian)
    )
    prior = density_derivatives(joined.log_prior, known.position)
    slope, bend = (
        np.asarray(of_data, np.float64) + np.asarray(of_prior, np.float64)
        for of_data, of_prior in ((whole.gradient, prior.gradient), (whole.hessian, prior.hessian))
    )
    try:
        np.linalg.cholesky(bend)
    except np.linalg.LinAlgError:
        return None
    step = -np.linalg.solve(bend, slope)
    if -float(slope @ step) > FARTHEST * len(step):
        return None
    turns = dataclasses.replace(
        proposal,
        mass=as_mass(bend.astype(np.float32)),
        center=trees.as_position(moved(known.position, step)),
    )
    return dataclasses.replace(
        sampler,
        target=joined,
        proposal=turns,
        gradient=dataclasses.replace(gradient, reference=whole),
        acceptance=with_more(test, joined, new, whole) if isinstance(test, TunaTest) else test,
    )


def _sum(known: Any, added: Any) -> Any:
    """In float64, kept as float32."""
    return jnp.asarray(np.asarray(known, np.float64) + np.asarray(added, np.float64), jnp.float32)
