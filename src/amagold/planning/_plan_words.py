"""The plan in words, for a statistician who never tuned a sampler."""

from typing import Any

from amagold.mode._mode_search import NEWTON_PARAMETERS
from amagold.planning._conditional_option import CONDITIONAL
from amagold.planning._option import count
from amagold.planning._option_registry import GRADIENTS, TESTS, TRAJECTORIES


def plan_sentences(plan: Any) -> list[str]:
    """The choices, what they are expected to cost and bring, and how the other kinds compare."""
    gradient, trajectory = GRADIENTS[plan.gradient], TRAJECTORIES[plan.integrator]
    return [
        _start(plan),
        gradient.words(plan),
        trajectory.words(plan),
        _test(plan),
        _yield(plan),
        *_others(plan),
    ]


def _start(plan: Any) -> str:
    data = (
        f"{plan.num_examples} examples"
        if plan.num_examples
        else "no data (a density computed whole)"
    )
    return f"Target: {count(plan.num_parameters, 'parameter')}, {data}; {_modes(plan)}."


def _modes(plan: Any) -> str:
    """What the searches found, and how far it can be trusted."""
    if plan.integrator == CONDITIONAL:
        return "a horseshoe prior leaves no mode, and the data are expanded about the median"
    if plan.levels:
        many = ", ".join(f"{count:,} of {name!r}" for name, count in plan.levels.items())
        return (
            f"a mixed model, whose levels ({many}) do not know of each other once the others are "
            "given"
        )
    if not plan.is_mode_found:
        return (
            f"no mode was found{_from(plan)}, so the figures are rough, and chains start far apart"
        )
    shares = ", ".join(f"{share:.2g}" for share in plan.mode_shares)
    if not plan.has_one_mode and len(plan.mode_shares) > 1:
        return (
            f"{len(plan.mode_shares)} modes were found{_from(plan)}, whose shares of the mass may "
            f"be {shares}; chains start at each "
            "that matters, and the figures are those of the largest"
        )
    others = (
        f" ({len(plan.mode_shares) - 1} more, with next to no mass)"
        if len(plan.mode_shares) > 1
        else ""
    )
    if not plan.is_explained:
        return (
            f"one mode was found{_from(plan)}{others}, but there is mass that its curvature does "
            "not account for; chains start far "
            "apart, and the figures are rough"
        )
    if not plan.is_curvature_positive:
        return (
            f"the mode was found{others}, but not every direction is clearly curved there, so the "
            "figures are rough"
        )
    if not plan.is_trusted:
        return (
            f"the mode was found{others}, but draws of the Gaussian there show that the posterior "
            "is another; chains start far apart, "
            "and the figures are rough"
        )
    if plan.num_parameters > NEWTON_PARAMETERS and plan.num_searches == 1:
        others = " by one search, so there may be others"
    return f"the mode was found{others}, and the posterior is curved like a Gaussian there"


def _from(plan: Any) -> str:
    return f" from {plan.num_searches} starts" if plan.num_searches > 1 else ""


def _test(plan: Any) -> str:
    sources = f"{plan.discretisation_variance:.2g} from {TRAJECTORIES[plan.integrator].source}"
    if plan.batch_size is not None:
        sources += f" and {plan.noise_variance:.2g} from the minibatches"
    return (
        f"Test: an exact Metropolis-Hastings test {TESTS[plan.test].words(plan)} after every "
        f"proposal; expected to accept {plan.predicted_acceptance:.0%} (the log ratio varies by "
        f"{sources})."
    )


def _yield(plan: Any) -> str:
    draws = f"about {1.0 / plan.ess_per_transition:.1f} transitions make one effective draw"
    per_step = GRADIENTS[plan.gradient].examples_seen(plan)
    return TESTS[plan.test].cost_words(plan, plan.num_steps * per_step, draws)


def _others(plan: Any) -> list[str]:
    if plan.integrator == CONDITIONAL:
        return []
    if plan.levels:
        return [
            f"Against a sweep over the levels: its tests would look at {plan.sweep_rows:.3g} "
            "examples one by one, because levels have few rows for so large effects or are few, "
            f"and an effective draw would take {plan.sweep_slow_down:.2g} times the work."
        ]
    if plan.gradient != "full":
        is_noisy = plan.batch_size is not None
        saving = "; the minibatches' noise is small for what they save" if is_noisy else ""
        return [
            f"Against the full gradient: an effective draw takes {plan.slow_down:.2g} times the "
            f"work of the best full-batch sampler{saving}."
        ]
    others = [kind for kind in plan.kinds if kind["gradient"] != "full"]
    if not others:
        return []
    full = next(kind for kind in plan.kinds if kind["gradient"] == "full")
    best = min(others, key=lambda kind: kind["cost_per_draw"])
    steps = count(best["num_steps"], "step")
    of = "" if best["batch_size"] is None else f" of {best['batch_size']} examples"
    name = GRADIENTS[best["gradient"]].short_words(best)
    return [
        f"Minibatches would not help: the best of them ({name}, {steps}{of}) "
        f"would cost {best['cost_per_draw'] / full['cost_per_draw']:.2g} times as much per "
        "effective draw."
    ]
