"""From what the user gave to a sampler, its plan, and a start for every chain."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold import planning
from amagold.adaptation._sgd_burn_in import descend
from amagold.adaptation._warmup import Warmup
from amagold.adaptation._window_adaptation import Rules, make_rules
from amagold.core import trees
from amagold.core.compiling import ONCE, jit
from amagold.core.freed_memory import end_of_stage
from amagold.mode._curvature import Curvature, curvature_at
from amagold.mode._regions import Region
from amagold.mode._survey import survey
from amagold.mode._survey_result import Survey
from amagold.samplers import Kernel
from amagold.sampling._advice import advice_on_plan
from amagold.sampling._given_sampler import Given
from amagold.sampling._settings import Settings
from amagold.target import Density, Posterior, Target
from amagold.target._reported import sampled


class Keys(NamedTuple):
    """One key for each part of a run."""

    places: jax.Array
    noise: jax.Array
    starts: jax.Array
    states: jax.Array
    descent: jax.Array
    transitions: jax.Array
    survey: jax.Array


class Prepared(NamedTuple):
    """Everything that a run begins from."""

    sampler: Any  # a Kernel
    plan: "planning.Plan | planning.SweepPlan | planning.EffectsPlan | Given"
    rules: Rules
    positions: trees.PyTree  # stacked on a leading chain axis
    advice: list[str] = []  # noqa: RUF012 - what the plan could not get hold of


def make_keys(seed: int) -> Keys:
    return _split(jax.random.key(seed))


@jit(ONCE)
def _split(key: jax.Array) -> Keys:
    """In one program: every operation of JAX on its own is one to compile."""
    return Keys(*jax.random.split(key, len(Keys._fields)))


def target_of(target_or_sampler: Any) -> Target:
    """The target, or the given sampler's own."""
    if isinstance(target_or_sampler, Kernel):
        return target_or_sampler.target
    if isinstance(target_or_sampler, (Posterior, Density)):
        return target_or_sampler
    raise ValueError(
        "target_or_sampler must be an amagold.Posterior, an amagold.Density or a sampler of this "
        "library, got "
        f"{type(target_or_sampler).__name__}; build one first"
    )


def prepare(
    target_or_sampler: Any, settings: Settings, init: trees.PyTree, init_per_chain: trees.PyTree
) -> Prepared:
    """Plan where a target was given, and find starts where none were."""
    target, keys = target_of(target_or_sampler), make_keys(settings.seed)
    is_trained = getattr(getattr(target, "log_likelihood", None), "is_trained", False)
    if is_trained and init is None and init_per_chain is None:
        init = target.init  # a trained network: nobody should look for its modes again
    anchor, positions = _given_starts(target, settings.num_chains, init, init_per_chain)
    _check_form(target, anchor)
    target.check(anchor)
    if isinstance(target_or_sampler, Kernel) and target_or_sampler.is_external:
        raise ValueError(
            "plan='external' needs batches from outside, which sample cannot give; call "
            "sampler.step, or use another plan"
        )
    is_planned = not isinstance(target_or_sampler, Kernel)
    if is_planned:
        return _planned(target, settings, anchor, positions, keys)
    if positions is None:
        _check_kind(anchor)
        found = survey(target, anchor, keys.survey)
        positions = _starts(
            target,
            found,
            curvature_at(target, found.mode.position, found.mode.of_data),
            found.has_one_region,
            settings,
            keys,
        )
    positions = _descended(target, positions, settings, keys)
    rules = make_rules(target_or_sampler, settings.num_warmup, settings.warmup)
    return Prepared(
        target_or_sampler, Given.from_sampler(target_or_sampler, settings.warmup), rules, positions
    )


def plan_again(target: Target, settings: Settings, positions: trees.PyTree) -> Prepared:
    """A plan for chains that are somewhere already."""
    anchor = trees.as_position(jax.tree.map(lambda leaf: leaf[0], positions))
    target.check(anchor)
    return _planned(target, settings, anchor, positions, make_keys(settings.seed))


def _planned(
    target: Target, settings: Settings, anchor: trees.PyTree, positions: trees.PyTree, keys: Keys
) -> Prepared:
    """Look for modes, plan by what is there, and start chains where the plan holds."""
    _check_kind(anchor)
    if planning.horseshoe_in(target) is not None:
        return _planned_by_parts(target, settings, anchor, positions, keys)
    # who asks for an acceptance or a mass wants them adapted
    adapts = settings.warmup.target_acceptance is not None or settings.warmup.mass is not None
    if not adapts and settings.warmup.sgd is None:
        swept = planning.plan_sweeps(target, settings.num_chains, keys.starts)
        if swept is not None:
            starts = swept.starts if positions is None else positions
            rules = rules_of(swept.sampler, swept.plan, settings)
            return Prepared(swept.sampler, swept.plan, rules, starts)
    found = survey(target, anchor, keys.survey)
    curvature = curvature_at(target, found.mode.position, found.mode.of_data)
    at_mode = planning.build_at_mode(target, found.mode, curvature)
    end_of_stage()
    options: dict[str, Any] = {
        "num_chains": settings.num_chains,
        "at_mode": at_mode,
        "allow_turns": not adapts,
        "found": found,
    }
    plan = planning.make_plan(
        target, found.mode, curvature, keys.places, noise_key=keys.noise, **options
    )
    end_of_stage()
    starts_given = positions is not None
    if positions is None:
        positions = _starts(target, found, curvature, plan.is_trusted, settings, keys)
    elif plan.is_nearly_right and settings.num_warmup:
        positions = planning.bring_near(target, found.mode, curvature, positions)
    positions = _descended(target, positions, settings, keys)
    mass = (
        plan.initial_mass(curvature)
        if plan.is_trusted
        else _mass_over(found.regions, curvature, settings.num_chains)
    )
    sampler = plan.build(target, mass, at_mode)
    advice = advice_on_plan(plan, settings.num_chains, starts_given)
    return Prepared(sampler, plan, rules_of(sampler, plan, settings), positions, advice)


def _planned_by_parts(
    target: Target, settings: Settings, anchor: trees.PyTree, positions: trees.PyTree, keys: Keys
) -> Prepared:
    """The same where a horseshoe prior leaves no mode: another prior guides the search."""
    assert isinstance(target, Posterior)
    found = survey(planning.guiding(target), anchor, keys.survey)
    plan, at_mode, starts = planning.conditional_plan(
        target, found.mode, keys.places, settings.num_chains, found.num_searches
    )
    positions = _descended(target, starts if positions is None else positions, settings, keys)
    sampler = plan.build(target, None, at_mode)
    return Prepared(sampler, plan, rules_of(sampler, plan, settings), positions)


def _starts(
    target: Target,
    found: Survey,
    curvature: Curvature,
    is_trusted: bool,
    settings: Settings,
    keys: Keys,
) -> trees.PyTree:
    """Around the mode where it tells where the mass is, else around every place that may
    hold some.
    """
    if is_trusted or not found.regions:
        return planning.disperse(target, found.mode, curvature, settings.num_chains, keys.starts)
    return planning.disperse_over(target, found.regions, settings.num_chains, keys.starts)


def _descended(
    target: Target, positions: trees.PyTree, settings: Settings, keys: Keys
) -> trees.PyTree:
    if settings.warmup.sgd is None:
        return positions
    found = descend(target, positions, keys.descent, settings.warmup.sgd)
    # from the host: JAX would take where data that are split over devices have left them for a
    # part of their type, and refuse them elsewhere
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), found)


def _mass_over(regions: list[Region], curvature: Curvature, num_chains: int) -> np.ndarray:
    """A diagonal mass between those of the places where chains start: a start for adaptation, no
    more.
    """
    if not regions:
        return 1.0 / curvature.modest_variances()
    variances = [np.sum(region.factor**2, axis=1) for region in regions[:num_chains]]
    return np.exp(-np.mean(np.log(variances), axis=0))


def rules_of(
    sampler: Any,
    plan: "planning.Plan | planning.SweepPlan | planning.EffectsPlan | Given",
    settings: Settings,
) -> Rules:
    """What warm-up adapts; the user's word goes before the plan's."""
    if not isinstance(plan, planning.Plan):  # given, or a sweep, whose warm-up tunes nothing
        rules = make_rules(sampler, settings.num_warmup, settings.warmup)
        return rules._replace(by_block=not isinstance(plan, Given))
    wanted = settings.warmup.target_acceptance or plan.target_acceptance
    warmup = Warmup(
        wanted,
        settings.warmup.mass or (plan.mass if plan.adapts_mass else None),
        keep=settings.warmup.keep,
    )
    rules = make_rules(sampler, settings.num_warmup, warmup)
    if "step_size" not in sampler.settings:
        return rules
    lengths = {
        "trajectory_length": plan.trajectory_length,
        "longest_trajectory": plan.longest_trajectory,
    }
    by_block = (
        plan.is_nearly_right and rules.mass is None and settings.warmup.target_acceptance is None
    )
    rules = rules._replace(**lengths, begins_short=plan.begins_short, by_block=by_block)
    if not plan.searches_steps or rules.target_acceptance is None:
        return rules
    kind = settings.warmup.mass or plan.searched_mass
    return rules._replace(searches=True, mass=kind, friction_share=plan.friction_share)


def _given_starts(
    target: Target, num_chains: int, init: trees.PyTree, init_per_chain: trees.PyTree
) -> tuple[trees.PyTree, trees.PyTree]:
    """A position to look around from, and the starts of all chains if they were given."""
    if init is not None and init_per_chain is not None:
        raise ValueError(
            "init and init_per_chain must not both be given; init is one position for all chains, "
            "init_per_chain one for each"
        )
    if init_per_chain is not None:
        positions = trees.as_position(
            sampled(target, init_per_chain, "init_per_chain"), "init_per_chain"
        )
        lengths = {leaf.shape[0] if leaf.ndim else None for leaf in jax.tree.leaves(positions)}
        if lengths != {num_chains}:
            found = ", ".join(str(length) for length in sorted(lengths, key=str))
            raise ValueError(
                f"init_per_chain must have a leading axis of num_chains = {num_chains} in every "
                f"array, got {found}; stack one position "
                "for each "
                "chain, or set num_chains"
            )
        return jax.tree.map(lambda leaf: leaf[0], positions), positions
    if init is not None:
        position = trees.as_position(sampled(target, init, "init"), "init")
        return position, jax.tree.map(
            lambda leaf: jnp.broadcast_to(leaf, (num_chains, *leaf.shape)), position
        )
    if target.init is None:
        raise ValueError(
            "init must be given, because the target does not say what its positions look like; "
            "pass init=..., or build the target "
            "with init=..., "
            "which lets chains start dispersed around the mode"
        )
    return target.init, None


def _check_form(target: Target, position: trees.PyTree) -> None:
    """Raise when a position holds no numbers, or is not like the target's own."""
    if trees.size(position) == 0:
        raise ValueError(
            "init must hold at least one number, got none; give a position of the target"
        )
    if target.init is None:
        return
    given, own = (
        jax.tree.map(lambda leaf: (leaf.shape, str(leaf.dtype)), tree)
        for tree in (position, target.init)
    )
    if given != own:
        raise ValueError(
            f"init must be like the target's own init, {own}, got {given}; give positions of one "
            "form"
        )


def _check_kind(position: trees.PyTree) -> None:
    """Raise unless derivatives can be taken at positions like this one."""
    kinds = {str(leaf.dtype) for leaf in jax.tree.leaves(position)} - {"float32", "float64"}
    if kinds:
        raise ValueError(
            "init must be float32 or float64 to search for the mode, got "
            f"{', '.join(sorted(kinds))}; give such an init, or a sampler "
            "and where its chains start"
        )
