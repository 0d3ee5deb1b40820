"""`amagold.update`: more rows, same chains."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold import planning
from amagold.acceptance import FullTest, TunaTest
from amagold.acceptance._tuna_setup import with_more
from amagold.adaptation._warmup import Warmup
from amagold.core import trees
from amagold.data import Joined
from amagold.gradients import ControlVariate, Expansion
from amagold.mode._derivatives import density_derivatives, derivatives_at
from amagold.mode._newton import moved
from amagold.mode._reference import reference_from
from amagold.samplers import Sampler
from amagold.sampling._prepare import Prepared, plan_again, rules_of
from amagold.sampling._run import Run
from amagold.sampling._sample import run_prepared
from amagold.sampling._settings import Settings
from amagold.target import Posterior
from amagold.trajectory import Rotation
from amagold.trajectory._mass_matrix import as_mass

# squared standard deviations per parameter, that the mode may be from the reference: a draw is as
# far from the mode itself
FARTHEST = 1.0
NUM_SEEDS = 2**32


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
    old row is walked over again, and the draws are exact for all rows. Where the mode has moved too
    far for that, or the run has none, it is planned again from where the chains are;
    `run.attributes["update"]` says which.
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
    from amagold.models._more_rows import more_rows  # late: who never updates needs no models

    sampler, positions, draws = run.sampler, run.positions, run.posterior.sizes["draw"]
    if sampler is None or positions is None:
        raise ValueError(
            "run must come from amagold.sample or amagold.update in this process, got one that "
            "was loaded, which has no sampler; resume it first"
        )
    if jax.process_count() > 1:
        raise ValueError(
            "run must be of one process to be updated, got one of several; load its draws, or "
            "begin a new run with all rows"
        )
    if not draws:
        raise ValueError("run must have draws to go on from, got none; let it go on first")
    target = sampler.target
    if not isinstance(target, Posterior):
        raise ValueError(
            "run must be of a target with data (amagold.Posterior), got a Density, to which no "
            "rows can be added"
        )
    added = more_rows(target, new_rows)
    joined = dataclasses.replace(target, data=Joined(target.examples, added))
    settings = Settings(
        draws if num_samples is None else num_samples,
        num_warmup,
        run.posterior.sizes["chain"],
        (run.attributes["seed"] + 1) % NUM_SEEDS if seed is None else seed,
        run.attributes["settings"]["thin"],
        Warmup(),
    )
    told: list[str] = []

    def make() -> Prepared:
        grown = _grown(run.plan, sampler, joined, dataclasses.replace(target, data=added))
        if isinstance(grown, str):
            prepared = plan_again(joined, settings, positions)
            told.append(f"Planned again for all {joined.num_examples:,} rows: {grown}.")
        else:
            plan = dataclasses.replace(run.plan, num_examples=joined.num_examples)
            prepared = Prepared(grown, plan, rules_of(grown, plan, settings), positions)
            told.append(
                f"{added.num_examples:,} rows are added to {target.num_examples:,} about the same "
                "reference."
            )
        if progress:
            print(told[0])
        return prepared

    updated = run_prepared(make, settings, None, progress, max_time)
    updated.attributes["update"] = told[0]
    return updated


def _grown(plan: Any, sampler: Sampler, joined: Posterior, new: Posterior) -> Sampler | str:
    """The sampler for all rows about the same reference, or why that cannot serve them."""
    gradient, test, proposal = sampler.gradient, sampler.acceptance, sampler.proposal
    if not isinstance(plan, planning.Plan):
        return "the run was given its sampler"
    if (
        not isinstance(gradient, (ControlVariate, Expansion))
        or not isinstance(proposal, Rotation)
        or not isinstance(test, (TunaTest, FullTest))
    ):
        return "its plan has no reference that more rows could be added to"
    known = gradient.known_reference()
    if known is None or known.hessian is None:
        return "the second derivatives at its reference are not known"
    of_new = reference_from(new, known.position, derivatives_at(new, known.position, 2))
    assert of_new.hessian is not None
    whole = dataclasses.replace(
        known,
        gradient=_sum(known.gradient, of_new.gradient),
        hessian=_sum(known.hessian, of_new.hessian),
    )
    prior = density_derivatives(joined.log_prior, known.position)
    slope, bend = (
        np.asarray(of_data, np.float64) + np.asarray(of_prior, np.float64)
        for of_data, of_prior in ((whole.gradient, prior.gradient), (whole.hessian, prior.hessian))
    )
    if np.linalg.eigvalsh(bend).min() <= 0.0:
        return "the energy does not curve upwards at the reference any more"
    step = -np.linalg.solve(bend, slope)
    if -float(slope @ step) > FARTHEST * len(step):
        return "the mode has moved too far from the reference"
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
