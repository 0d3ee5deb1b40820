"""Where a likelihood's program sees the position through a few numbers: the smallest cut.

Variables that depend on the position are the nodes of a network, from the position to the log
likelihood. One that is affine in the position, or the exponential of such a one, may be cut: it
holds as many numbers as its size. The smallest set that all paths cross (Menger's theorem, by
augmenting paths) is found, and of several the one nearest to the log likelihood.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

from amagold.interop._traced_numbers import (
    AFFINE,
    CONSTANT,
    FIXED,
    LOG_AFFINE,
    OTHER,
    ROW,
    Operation,
    Traced,
)

CALLS = ("jit", "pjit")
# of one variable, a side towards the position and one towards the log likelihood
Node = tuple[Any, bool]


class ProgramCut(NamedTuple):
    """A program of a position and a row, and the variables by which it sees the position."""

    program: Any  # with closed constants
    num_position: int  # how many of its inputs are the position's
    variables: tuple[Any, ...]
    is_log: tuple[bool, ...]  # whether the numbers are the logarithms of the variable

    @property
    def num_numbers(self) -> int:
        return sum(_size(variable) for variable in self.variables)

    def after(self, values: list[Any], row: list[Any]) -> jax.Array:
        """The log likelihood, from the variables and the row."""
        jaxpr = self.program.jaxpr
        inputs = [*jaxpr.constvars, *jaxpr.invars[self.num_position :], *self.variables]
        rest = _until(jaxpr, set(self.variables))
        alone = jaxpr.replace(constvars=[], invars=inputs, eqns=rest)
        (found,) = jaxpr_as_fun(ClosedJaxpr(alone, ()))(*self.program.consts, *row, *values)
        return found


def smallest_cut(
    program: Any, num_position: int, known: dict[Any, Traced], most: int
) -> ProgramCut | None:
    """None where more than `most` numbers are needed."""
    ways = _ways(program.jaxpr, num_position, known)
    end: Node = (program.jaxpr.outvars[0], True)
    starts = {(variable, False) for variable in program.jaxpr.invars[:num_position]}
    left = dict(ways)
    for _ in range(most + 1):
        path, reached = _path(left, end, starts)
        if path is None:
            cut = _crossed(program.jaxpr, ways, reached)
            kinds = [known[variable].kind == LOG_AFFINE for variable in cut]
            return ProgramCut(program, num_position, tuple(cut), tuple(kinds))
        for one, other in path:
            left[one, other] -= 1.0
            left[other, one] = left.get((other, one), 0.0) + 1.0
    return None


def with_calls_opened(program: Any, num_position: int, most: int, *, merged: bool) -> Any:
    """The program, in which calls of functions that see more of the position than `most` numbers
    stand as the operations they are made of. Others stay, because some are known as a whole.
    Merged, operations that are there twice are done once.
    """

    def run(*inputs: Any) -> Any:
        given = [Traced(OTHER if k < num_position else ROW, x) for k, x in enumerate(inputs)]
        found = _opened(program.jaxpr, program.consts, given, most, merged)
        return [each.value for each in found]

    return jax.make_jaxpr(run)(*program.in_avals)


def _opened(
    jaxpr: Any, constants: Any, given: list[Traced], most: int, merged: bool
) -> list[Traced]:
    """What a program returns: "other" is what depends on the position."""
    known = dict(zip(jaxpr.constvars, (Traced(CONSTANT, x) for x in constants), strict=True))
    known.update(zip(jaxpr.invars, given, strict=True))

    def read(variable: Any) -> Traced:
        is_number = isinstance(variable, Literal)
        return Traced(CONSTANT, variable.val) if is_number else known[variable]

    done: dict[Any, list[Traced]] = {}
    for step in jaxpr.eqns:
        inputs = [read(variable) for variable in step.invars]
        seen = sum(jnp.size(each.value) for each in inputs if each.kind == OTHER)
        # what is written twice, as `X @ b` often is, is one number
        names = [v.val if isinstance(v, Literal) else id(known[v].value) for v in step.invars]
        same = (step.primitive.name, str(step.params), str(names))
        if step.primitive.name in CALLS and seen > most:
            inner = step.params["jaxpr"]
            found = _opened(inner.jaxpr, inner.consts, inputs, most, merged)
        elif merged and same in done:
            found = done[same]
        else:
            found = Operation(jaxpr, step).of(inputs, OTHER if seen else ROW)
        done[same] = found
        known.update(zip(step.outvars, found, strict=True))
    return [read(variable) for variable in jaxpr.outvars]


def _ways(
    jaxpr: Any, num_position: int, known: dict[Any, Traced]
) -> dict[tuple[Node, Node], float]:
    """How much may pass from one node to the next, from the log likelihood to the position."""
    moving = {variable for variable, each in known.items() if each.kind not in FIXED}
    positive = _positive(jaxpr, known)
    ways: dict[tuple[Node, Node], float] = {}
    for variable in moving:
        may_be_cut = known[variable].kind == AFFINE or variable in positive
        size = float(_size(variable)) if may_be_cut else math.inf
        ways[(variable, True), (variable, False)] = size
    for step in jaxpr.eqns:
        for source in step.invars:
            if isinstance(source, Literal) or source not in moving:
                continue
            for result in step.outvars:
                if result in moving:
                    ways[(result, False), (source, True)] = math.inf
    return ways


def _positive(jaxpr: Any, known: dict[Any, Traced]) -> set[Any]:
    """Exponentials without numbers of the row for factors, which may be zero or below."""
    found: set[Any] = set()
    for step in jaxpr.eqns:
        kinds = [CONSTANT if isinstance(v, Literal) else known[v].kind for v in step.invars]
        is_alone = step.primitive.name not in ("mul", "div") or not {*kinds} & {*FIXED}
        sources = [v for v, kind in zip(step.invars, kinds, strict=True) if kind == LOG_AFFINE]
        if is_alone and found.issuperset(sources):
            found |= {v for v in step.outvars if known[v].kind == LOG_AFFINE}
    return found


def _path(
    left: dict[tuple[Node, Node], float], start: Node, ends: set[Node]
) -> tuple[list[tuple[Node, Node]] | None, set[Node]]:
    """A way along which more may pass, or None; and all nodes that are reached."""
    nexts: dict[Node, list[Node]] = {}
    for (one, other), room in left.items():
        if room > 0.0:
            nexts.setdefault(one, []).append(other)
    came: dict[Node, Node | None] = {start: None}
    waiting = [start]
    while waiting:
        node = waiting.pop()
        if node in ends:
            path = []
            while (before := came[node]) is not None:
                path.append((before, node))
                node = before
            return path, set(came)
        for other in nexts.get(node, ()):
            if other not in came:
                came[other] = node
                waiting.append(other)
    return None, set(came)


def _crossed(jaxpr: Any, ways: dict[Any, float], reached: set[Node]) -> list[Any]:
    """The variables one side of which is reached and the other is not, in the program's order."""
    order = [*jaxpr.invars, *(result for step in jaxpr.eqns for result in step.outvars)]
    return [v for v in order if (v, True) in reached and (v, False) not in reached]


def _until(jaxpr: Any, stops: set[Any]) -> list[Any]:
    """The steps that the results need, where the stops are known."""
    needed = {v for v in jaxpr.outvars if not isinstance(v, Literal)} - stops
    kept = []
    for step in reversed(jaxpr.eqns):
        if needed.isdisjoint(step.outvars):
            continue
        kept.append(step)
        needed |= {v for v in step.invars if not isinstance(v, Literal) and v not in stops}
    return kept[::-1]


def _size(variable: Any) -> int:
    return int(math.prod(variable.aval.shape))
