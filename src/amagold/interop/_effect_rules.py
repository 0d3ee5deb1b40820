"""What operations make of effects that are written as standard normals times their scale."""

from amagold.interop._affine_rules import MOVES
from amagold.interop._traced_numbers import (
    AFFINE,
    FIXED,
    LOG_SCALE,
    SCALE,
    STANDARD,
    Operation,
    Rule,
    Traced,
    constant,
    is_numbered,
    is_zero,
    numbered,
)


def _same_effect(operation: Operation, given: list[Traced]) -> Traced | None:
    """Entries of standard normals or of scales in another order or shape."""
    first, *others = given
    if not is_numbered(first.kind) or any(each.kind not in FIXED for each in others):
        return None
    return operation.of(given, first.kind)[0]


def _effect(operation: Operation, given: list[Traced]) -> Traced | None:
    """Standard normals times their scale are effects; times fixed numbers they stay what they
    are.
    """
    if any(map(is_zero, given)):
        return constant(operation, 0.0)
    kinds = sorted(each.kind for each in given)
    if len(kinds) == 2 and kinds[0].startswith(SCALE) and kinds[1].startswith(STANDARD):
        is_one = kinds[0].split()[-1] == kinds[1].split()[-1]
        return operation.of(given, AFFINE)[0] if is_one else None
    standard = [kind for kind in kinds if kind.startswith(STANDARD)]
    if len(standard) != 1 or any(kind not in (*FIXED, *standard) for kind in kinds):
        return None
    return operation.of(given, standard[0])[0]


def _effect_sum(operation: Operation, given: list[Traced]) -> Traced | None:
    """Of standard normals alone, or with zeros."""
    kinds = {each.kind for each in given if not is_zero(each)}
    if len(kinds) != 1 or not next(iter(kinds)).startswith(STANDARD):
        return None
    return operation.of(given, kinds.pop())[0]


def _scale(operation: Operation, given: list[Traced]) -> Traced | None:
    kind = given[0].kind
    if not kind.startswith(LOG_SCALE):
        return None
    return operation.of(given, numbered(SCALE, int(kind.split()[-1])))[0]


def _scale_power(operation: Operation, given: list[Traced]) -> Traced | None:
    """A scale to the power of one is itself, to that of zero one."""
    power = operation.parameters["y"]
    if power not in (0, 1):
        return None
    return constant(operation, 1.0) if power == 0 else operation.of(given, given[0].kind)[0]


EFFECT_RULES: dict[str, Rule] = {name: _same_effect for name in MOVES} | {
    "mul": _effect,
    "add": _effect_sum,
    "sub": _effect_sum,
    "exp": _scale,
    "integer_pow": _scale_power,
    "convert_element_type": _same_effect,
}
