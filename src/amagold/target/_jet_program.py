"""A user's function on jets: its program is followed operation by operation.

Some functions of JAX switch between formulas for one and the same smooth function. Followed
operation by operation nothing would be known at the switch, so they are recognised as a whole, by
their own programs.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend import core
from jax.scipy import special

from amagold.target import _jet_choices as choices, _jet_rules as rules, _smooth_functions as curves
from amagold.target._jet_rules import NotCoveredError, Rule, Truth, Value
from amagold.target._jets import Jet, Space
from amagold.target._normal_tail import log_between

CURVES = {
    "expm1": curves.exponential_less_one,
    "tanh": curves.tanh,
    "erf": curves.error_function,
    "erfc": curves.other_error_function,
    "lgamma": curves.log_gamma,
    "digamma": curves.log_gamma_slope,
    "sqrt": curves.square_root,
    "rsqrt": curves.one_over_square_root,
}

RULES: dict[str, Rule] = {
    "add": rules.add,
    "add_any": rules.add,
    "sub": rules.subtract,
    "mul": rules.product,
    "div": rules.quotient,
    "exp": rules.exponential,
    "log": rules.logarithm,
    "log1p": rules.log_one_plus,
    "logistic": rules.of_probability(curves.logistic, curves.softplus, is_odd=True),
    "neg": rules.negative,
    "square": rules.square,
    "integer_pow": rules.integer_power,
    "pow": rules.general_power,
    "abs": choices.absolute,
    "max": choices.larger,
    "min": choices.smaller,
    "clamp": choices.clamp,
    "reduce_max": choices.largest,
    "stop_gradient": choices.stop_gradient,
    "convert_element_type": choices.convert,
    "lt": choices.below,
    "le": choices.not_above,
    "gt": lambda space, params, left, right: choices.below(space, params, right, left),
    "ge": lambda space, params, left, right: choices.not_above(space, params, right, left),
    "eq": choices.equal,
    "ne": lambda space, params, *pair: choices.negation(
        space, params, choices.equal(space, params, *pair)
    ),
    "not": choices.negation,
    "and": choices.both,
    "or": choices.either,
    "xor": choices.one_alone,
    "is_finite": choices.is_finite,
    "select_n": choices.select_one,
    "dot_general": rules.matrix_product,
    **{name: rules.of_curve(curve) for name, curve in CURVES.items()},
}
STAIRS = ("sign", "floor", "ceil", "round")
# linear maps without negative weights, and how many of their inputs are data; None is all
REARRANGED = {
    "broadcast_in_dim": 1,
    "reshape": 1,
    "squeeze": 1,
    "expand_dims": 1,
    "slice": 1,
    "dynamic_slice": 1,
    "gather": 1,
    "transpose": 1,
    "rev": 1,
    "split": 1,
    "copy": 1,
    "copy_p": 1,
    "reduce_precision": 1,
    "concatenate": None,
    "stack": None,
    "pad": 2,
}
OF_TRUTHS = ("select_n", "and", "or", "xor", "not", "convert_element_type")
SUMS = ("reduce_sum", "cumsum")


class Known(NamedTuple):
    """A function that is recognised as a whole."""

    function: Callable[..., Any]
    num_inputs: int
    rule: Rule
    is_along_axis: bool = False


def _log_sum_exp(axis: int, *, keeps: bool = False) -> Known:
    def function(x: Any) -> Any:
        return special.logsumexp(x, axis=axis, keepdims=keeps)

    return Known(function, 1, rules.log_sum_exp(axis, keeps=keeps), is_along_axis=True)


def _softplus_by_parts(x: Any) -> Any:
    """As NumPyro's Bernoulli has it."""
    return jnp.clip(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


# the longer programs first, because some contain others
KNOWN = (
    Known(log_between, 2, choices.log_between),
    Known(special.log_ndtr, 1, rules.of_curve(curves.log_normal_cdf)),
    Known(jnp.logaddexp, 2, rules.log_add_exp),
    Known(_softplus_by_parts, 1, rules.of_curve(curves.softplus)),
    Known(special.betaln, 2, rules.log_beta),
    Known(special.ndtr, 1, rules.of_probability(curves.normal_cdf, curves.log_normal_cdf)),
    Known(jax.nn.log_softmax, 1, rules.log_softmax, is_along_axis=True),
    _log_sum_exp(-1, keeps=True),
    _log_sum_exp(-1),
    _log_sum_exp(0),
)


def on_jets(function: Callable[..., Any], space: Space, arguments: Sequence[Any]) -> Jet:
    """The function of arguments of which some leaves are jets, and returns one number."""
    leaves, form = jax.tree.flatten(tuple(arguments), is_leaf=lambda leaf: isinstance(leaf, Jet))
    plain = [leaf.value.lo if isinstance(leaf, Jet) else jnp.asarray(leaf) for leaf in leaves]
    closed = jax.make_jaxpr(lambda *flat: function(*jax.tree.unflatten(form, flat)))(*plain)
    values = [
        leaf if isinstance(leaf, Jet) else array for leaf, array in zip(leaves, plain, strict=True)
    ]
    (found,) = _follow(space, closed.jaxpr, closed.consts, values)
    return rules.as_jet(space, found)


def _follow(
    space: Space, program: Any, constants: Sequence[Any], arguments: Sequence[Value]
) -> list[Value]:
    """What a program returns."""
    known: dict[Any, Value] = dict(zip(program.constvars, constants, strict=True))
    known.update(zip(program.invars, arguments, strict=True))

    def read(variable: Any) -> Value:
        return variable.val if isinstance(variable, core.Literal) else known[variable]

    place, steps = 0, program.eqns
    while place < len(steps):
        step = steps[place]
        inputs = [read(variable) for variable in step.invars]
        whole = _recognised(program, place)
        if not any(isinstance(value, (Jet, Truth)) for value in inputs):
            outputs, place = _plain(step, inputs), place + 1
        elif whole is not None:
            rule, given, length = whole
            values = [read(variable) for variable in given]
            step, place = steps[place + length - 1], place + length
            outputs = [rule(space, {}, *values)]
        else:
            outputs, place = _stepped(space, step, inputs), place + 1
        known.update(zip(step.outvars, outputs, strict=True))
    return [read(variable) for variable in program.outvars]


def _plain(step: Any, inputs: list[Any]) -> list[Any]:
    """Of numbers that do not depend on the predictors: as JAX computes it."""
    given = step.primitive.get_bind_params(step.params)
    # older versions of JAX give functions beside the parameters
    functions, params = given if isinstance(given, tuple) else ((), given)
    found = step.primitive.bind(*functions, *inputs, **params)
    return found if step.primitive.multiple_results else [found]


def _stepped(space: Space, step: Any, inputs: list[Value]) -> list[Value]:
    name, params = step.primitive.name, step.params
    inner = next(
        (params[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if key in params), None
    )
    if inner is not None and name in (
        "jit",
        "pjit",
        "closed_call",
        "core_call",
        "remat2",
        "checkpoint",
        "custom_jvp_call",
        "custom_vjp_call",
    ):
        return _follow(space, getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), inputs)
    is_same = len(step.invars) == 2 and step.invars[0] is step.invars[1]
    if is_same and name in ("ne", "eq"):  # whether it is a number
        return [jnp.full(step.outvars[0].aval.shape, name == "eq")]
    if is_same and name == "mul":
        return [rules.square(space, {}, inputs[0])]
    rule = _rule(step.primitive)
    is_asked = any(isinstance(value, Truth) for value in inputs)
    if rule is None or (is_asked and name not in (*OF_TRUTHS, *REARRANGED)):
        raise NotCoveredError(f"`{name}`")
    found = rule(space, params, *inputs)
    return found if isinstance(found, list) else [found]


def _rule(primitive: Any) -> Rule | None:
    name = primitive.name
    if name in STAIRS:
        return choices.staircase(primitive)
    if name in SUMS:
        return rules.rearranged(primitive, 1, adds=True)
    if name in REARRANGED:
        return rules.rearranged(primitive, REARRANGED[name])
    return RULES.get(name)


def _recognised(whole: Any, place: int) -> tuple[Rule, list[Any], int] | None:
    """The rule of a known function whose program stands here, its inputs and its length."""
    steps = whole.eqns
    step = steps[place]
    if not step.invars:
        return None
    for known in KNOWN:
        # a sum has fewer axes than what it is of; a number may stand for an array in all others
        like = step.invars[0] if known.is_along_axis else step.outvars[0]
        if known.is_along_axis and not like.aval.shape:
            continue
        shapes = (like.aval.shape,) * known.num_inputs
        if known.num_inputs == len(step.invars) == 2:
            shapes = tuple(variable.aval.shape for variable in step.invars)
        program = _program_of(known, shapes, like.aval.dtype)
        given = _match(program, steps[place : place + len(program.eqns)])
        if given is not None and _is_closed(whole, place, place + len(program.eqns)):
            return known.rule, given, len(program.eqns)
    return None


def _is_closed(whole: Any, start: int, end: int) -> bool:
    """Whether of these steps only what the last one gives is read later."""
    within = {variable for step in whole.eqns[start : end - 1] for variable in step.outvars}
    later = [*whole.outvars, *(read for step in whole.eqns[end:] for read in step.invars)]
    return not any(not isinstance(read, core.Literal) and read in within for read in later)


@lru_cache(maxsize=256)
def _program_of(known: Known, shapes: tuple[tuple[int, ...], ...], dtype: Any) -> Any:
    dtype = dtype if jnp.issubdtype(dtype, jnp.floating) else jnp.float32
    forms = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
    return jax.make_jaxpr(known.function)(*forms).jaxpr


def _match(program: Any, steps: Sequence[Any]) -> list[Any] | None:
    """What stands for the program's inputs in the steps, if they are the same; None if not."""
    if len(steps) < len(program.eqns):
        return None
    found: dict[Any, Any] = {}
    for ours, theirs in zip(program.eqns, steps, strict=True):
        if ours.primitive is not theirs.primitive or len(ours.invars) != len(theirs.invars):
            return None
        if str(_form(ours.params)) != str(_form(theirs.params)):
            return None
        for wanted, variable in zip(ours.invars, theirs.invars, strict=True):
            if isinstance(wanted, core.Literal):
                if not isinstance(variable, core.Literal) or variable.val != wanted.val:
                    return None
            elif isinstance(variable, core.Literal) and wanted in program.invars:
                if found.setdefault(wanted, variable) is not variable:
                    return None
            elif found.setdefault(wanted, variable) is not variable:
                return None
        found.update(zip(ours.outvars, theirs.outvars, strict=True))
    return [found[variable] for variable in program.invars]


def _form(params: dict[str, Any]) -> list[tuple[str, str]]:
    """Of a step, without the addresses of functions; a function within has its program."""
    return [
        (name, str(value))
        for name, value in sorted(params.items())
        if "jaxpr" in name or not callable(value)
    ]
