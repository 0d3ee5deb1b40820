"""formulaic's specifications and the levels of groups as JSON, and back."""

from typing import Any

import numpy as np

from amagold.core.optional_packages import required
from amagold.models._mixed_groups import MOST_EFFECTS
from amagold.tables._formula_columns import MOST_LEVELS, FormulaColumns
from amagold.tables._formula_text import ParsedFormula, ParsedGroup
from amagold.tables._group_terms import ONES, GroupTerm
from amagold.tables._json_values import as_json, from_json
from amagold.tables._term_codes import INTERCEPT


def described_spec(spec: Any) -> dict[str, Any]:
    """Levels of factors and states of transformations."""
    return {
        "transforms": as_json(spec.transform_state),
        "encoders": [
            [str(factor), kind.value, as_json(list(state.get("categories", []))), bool(state)]
            for factor, (kind, state) in spec.encoder_state.items()
        ],
    }


def spec_again(notes: dict[str, Any], parsed: ParsedFormula, example: dict[str, Any]) -> Any:
    """formulaic's specification, whose structure one row is enough to find again."""
    required("formulaic", "tables")
    from formulaic.materializers import NAAction
    from formulaic.model_spec import ModelSpec
    from formulaic.parser.types import Factor

    encoders = {
        stored_text(factor): (
            Factor.Kind(kind),
            {"categories": from_json(levels)} if has_state else {},
        )
        for factor, kind, levels, has_state in notes["encoders"]
    }
    transforms = from_json(notes["transforms"])
    strangers = (set(encoders) | set(transforms)) - set(parsed.parts)
    if strangers:
        raise ValueError(f"it knows of {sorted(map(str, strangers))[0]!r}, which no term is")
    spec = ModelSpec(
        formula=parsed.right,
        output="sparse",
        na_action=NAAction.RAISE,
        transform_state=transforms,
        encoder_state=encoders,
    )
    nw, pandas = required("narwhals", "tables"), required("pandas", "tables")
    row = FormulaColumns(nw.from_native(pandas.DataFrame({k: [v] for k, v in example.items()})))
    return spec.get_model_matrix(row.frame(list(parsed.columns)), context={}).model_spec


def described_group(term: GroupTerm) -> dict[str, Any]:
    """What varies by group, and the group's levels."""
    return {
        "effects": list(term.effects),
        "values": [as_json(list(values)) for values in term.values],
        "places": term.places.tolist(),
        "num_rows": term.num_rows.tolist(),
        "moments": as_json(term.moments),
        **described_spec(term.spec),
    }


def group_again(notes: dict[str, Any], parsed: ParsedGroup, example: dict[str, Any]) -> GroupTerm:
    """The random effect of a stored run."""
    pandas = required("pandas", "tables")
    spec = spec_again(notes, parsed.varying, example)
    effects = tuple(map(stored_text, notes["effects"]))
    of_spec = {ONES if name == INTERCEPT else name for name in spec.column_names}
    if len(effects) > MOST_EFFECTS or len(set(effects)) < len(effects) or set(effects) != of_spec:
        raise ValueError(f"what varies by {parsed.name!r} is not what its formula says")
    values = tuple(pandas.Index(from_json(each)) for each in notes["values"])
    places = np.asarray([[stored_count(place) for place in row] for row in notes["places"]])
    sizes = np.array([len(each) for each in values])
    if places.shape != (len(places), len(parsed.columns)) or len(values) != len(parsed.columns):
        raise ValueError(f"levels of {parsed.name!r} are not of its columns")
    are_many = len(places) > MOST_LEVELS or (sizes > MOST_LEVELS).any()
    if are_many or (places >= sizes).any() or not all(each.is_unique for each in values):
        raise ValueError(f"levels of {parsed.name!r} are not those of a table")
    order = np.ravel_multi_index(tuple(places.T), tuple(sizes.tolist()))
    if (np.diff(order) <= 0).any():
        raise ValueError(f"levels of {parsed.name!r} are not in order")
    num_rows = np.asarray([stored_count(number) for number in notes["num_rows"]], np.int64)
    moments = np.asarray(from_json(notes["moments"]))
    if num_rows.shape != (len(places),) or moments.shape != (len(effects), len(effects)):
        raise ValueError(f"figures of {parsed.name!r} are not of its levels and effects")
    return GroupTerm(parsed, effects, spec, values, places, num_rows, moments)


def stored_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} stands where a text belongs")
    return value


def stored_count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} stands where a place belongs")
    return value
