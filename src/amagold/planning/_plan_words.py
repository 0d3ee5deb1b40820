"""The plan in words, for a statistician who never tuned a sampler."""

from typing import Any

from amagold.mode._mode_search import NEWTON_PARAMETERS

ORDERS = {
    "epoch": "one pass over a fresh shuffle of the data, so that the batches' errors cancel",
    "palindrome": "a pass over a fresh shuffle of the data and back, so that the batches' errors "
    "cancel",
    "iid": "each drawn independently",
}
DIFFERENCES = {1: "their gradients at the mode", 2: "their second-order expansions about the mode"}
NAMES = {
    "epoch": "minibatches, one shuffled pass",
    "palindrome": "minibatches, there and back",
    "iid": "independent minibatches",
}


def plan_sentences(plan: Any) -> list[str]:
    """The choices, what they are expected to cost and bring, and how the other kinds compare."""
    return [_start(plan), _gradient(plan), _steps(plan), _test(plan), _yield(plan), *_others(plan)]


def _steps(plan: Any) -> str:
    if plan.integrator == "rotation":
        steps = "one step" if plan.num_steps == 1 else f"{plan.num_steps} steps"
        return (
            f"Steps: a quarter turn about the mode in {steps} per proposal, as the Gaussian with "
            "the curvature there moves; the gradient "
            "adds what the posterior differs by. Warm-up shortens the turn only where less than "
            f"{plan.target_acceptance:.0%} is accepted; the mass is the curvature at the mode."
        )
    steps = _count(plan.num_steps, "leapfrog step")
    return (
        f"Steps: {steps} of size {plan.step_size:.3g} per proposal, friction {plan.friction:.3g}, "
        f"in units of a {plan.mass} mass matrix; "
        "warm-up adjusts the step "
        f"size{' and the mass' if plan.adapts_mass else ', the mass is the curvature at the mode'}."
    )


def _start(plan: Any) -> str:
    data = (
        f"{plan.num_examples} examples"
        if plan.num_examples
        else "no data (a density computed whole)"
    )
    return f"Target: {_count(plan.num_parameters, 'parameter')}, {data}; {_modes(plan)}."


def _modes(plan: Any) -> str:
    """What the searches found, and how far it can be trusted."""
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


def _gradient(plan: Any) -> str:
    if plan.gradient == "full":
        over = f"all {plan.num_examples} examples" if plan.num_examples else "the whole density"
        return f"Gradient: over {over} at every step, without noise."
    if plan.gradient == "control variate":
        return (
            f"Gradient: minibatches of {plan.batch_size} examples, {plan.num_steps} per proposal, "
            "as differences to "
            f"{DIFFERENCES[plan.order]}, whose sum over all data is known (control variates); "
            f"noise V^2 = {plan.gradient_variance:.3g}."
        )
    return (
        f"Gradient: minibatches of {plan.batch_size} examples, {plan.num_steps} per proposal, "
        f"{ORDERS[plan.batch_plan]}; "
        f"noise V^2 = {plan.gradient_variance:.3g}."
    )


def _test(plan: Any) -> str:
    source = "what is not Gaussian" if plan.integrator == "rotation" else "the step's size"
    sources = f"{plan.discretisation_variance:.2g} from {source}"
    if plan.gradient != "full":
        sources += f" and {plan.noise_variance:.2g} from the minibatches"
    over = "over all data" if plan.num_examples else "of the density"
    if plan.test == "tuna":
        over = f"on {_examples(plan.test_examples)}, drawn by how much they can matter,"
    return (
        f"Test: an exact Metropolis-Hastings test {over} after every proposal; expected to accept "
        f"{plan.predicted_acceptance:.0%} "
        f"(the log ratio varies by {sources})."
    )


def _yield(plan: Any) -> str:
    draws = f"about {1.0 / plan.ess_per_transition:.1f} transitions make one effective draw"
    if not plan.num_examples:
        return (
            f"Cost: a transition evaluates {plan.num_steps} gradients of the density and the "
            f"density once; {draws}."
        )
    seen = plan.num_steps * (plan.batch_size or plan.num_examples)
    passes = seen / plan.num_examples
    if plan.test == "tuna":
        return (
            f"Cost: a transition's gradients see {seen} examples and its test "
            f"{_examples(plan.test_examples)}, however many there "
            f"are in all; {draws}."
        )
    return (
        f"Cost: a transition's gradients see {seen} examples ({passes:.3g} passes over the data), "
        f"its test {plan.num_examples} (1 pass); "
        f"gradients take {plan.gradient_share:.0%} of the work; {draws}, so that costs "
        f"{passes / plan.ess_per_transition:.3g} passes of "
        f"gradients and {1.0 / plan.ess_per_transition:.3g} of tests."
    )


def _others(plan: Any) -> list[str]:
    if plan.gradient != "full":
        return [
            f"Against the full gradient: an effective draw takes {plan.slow_down:.2g} times the "
            "work of the best full-batch sampler; "
            "the minibatches' noise is small for what they save."
        ]
    others = [kind for kind in plan.kinds if kind["gradient"] != "full"]
    if not others:
        return []
    full = next(kind for kind in plan.kinds if kind["gradient"] == "full")
    best = min(others, key=lambda kind: kind["cost_per_draw"])
    steps = _count(best["num_steps"], "step")
    name = NAMES[best["batch_plan"]] if best.get("order") is None else "differences to the mode"
    return [
        f"Minibatches would not help: the best of them ({name}, {steps} of {best['batch_size']} "
        "examples) "
        f"would cost {best['cost_per_draw'] / full['cost_per_draw']:.2g} times as much per "
        "effective draw."
    ]


def _examples(number: float) -> str:
    return "less than one example" if number < 1.0 else f"about {number:.3g} examples"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
