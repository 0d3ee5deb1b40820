"""The regression of a table, kept beside its run: a formula, levels, states of transformations.

All of it is JSON and arrays. A formula from a stranger passes the checks that every formula does,
and what does not fit together is refused in a sentence.
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from amagold.core.files import UNUSABLE, read_whole
from amagold.models._recipes import law_again, law_settings
from amagold.report._table_facts import facts_from_json
from amagold.sampling._load import TABLE
from amagold.store._checkpoint import Checkpoint, DamagedError, decode, encode
from amagold.store._root import PRIVATE
from amagold.tables._families import FAMILIES, noise_of
from amagold.tables._formula_text import ParsedFormula, parsed_formula
from amagold.tables._json_values import as_json, from_json
from amagold.tables._kept_rows import decoded_rows, encoded_rows
from amagold.tables._row_columns import RowColumns
from amagold.tables._stored_terms import (
    described_group,
    described_spec,
    group_again,
    spec_again,
    stored_count,
    stored_text,
)
from amagold.tables._table_model import TableModel
from amagold.tables._table_outcome import SEVERAL_CLASSES
from amagold.tables._term_codes import INTERCEPT, Term
from amagold.tables._terms import FormulaTerms

ROWS = "rows"  # a file of the run, beside that of the model
MOST_ROW_BYTES = 64 * 2**20  # of rows are copied into the run; larger tables stay where they are
MOST_BYTES = 32 * 2**20  # of the description
MOST_COEFFICIENTS = 10**6
MOST_DOUBTS = 100  # sentences


def files_of(model: TableModel) -> dict[str, bytes]:
    """What a stored run keeps of its model."""
    files = {TABLE: encode(Checkpoint(TABLE, 0, {}, _described(model)))}
    if 8 * model.facts.num_used * len(model.columns) <= MOST_ROW_BYTES:
        files[ROWS] = encoded_rows(model.rows())
    return files


def load_model(folder: Path) -> TableModel | None:
    """The model that was kept; None when there is none."""
    file, rows = (folder / PRIVATE / name for name in (TABLE, ROWS))
    if not file.exists():
        return None
    try:
        kept = decode(read_whole(file, MOST_BYTES))
        source = None
        if rows.exists():
            source = decoded_rows(read_whole(rows, MOST_ROW_BYTES + 2**20)).to_native()
        return _model(kept.notes, source)
    except (DamagedError, OSError, MemoryError, *UNUSABLE) as reason:
        is_told = isinstance(reason, (DamagedError, ValueError))
        detail = str(reason) if is_told else f"{type(reason).__name__}: {reason}"
        raise ValueError(
            f"path must hold the model of the run's table, but {str(file)!r} is damaged: {detail}"
        ) from None


def kept_doubts(folder: Path) -> list[str]:
    """What the table could not say, as it was said when it was fitted; nothing else is read."""
    file = folder / PRIVATE / TABLE
    try:
        return _doubts(decode(read_whole(file, MOST_BYTES)).notes)
    except (DamagedError, OSError, MemoryError, *UNUSABLE) as reason:
        detail = f"{type(reason).__name__}: {reason}"
        return [f"damaged model: what was said of the table in {str(file)!r} is lost ({detail})"]


def _doubts(notes: dict[str, Any]) -> list[str]:
    return [stored_text(sentence) for sentence in notes.get("doubts", ())][:MOST_DOUBTS]


def _described(model: TableModel) -> dict[str, Any]:
    arguments = dict(model.arguments)
    priors = arguments.pop("priors", None)
    return {
        "version": 1,
        "formula": model.terms.formula,
        "family": model.family,
        "classes": list(model.classes),
        "names": list(model.names),
        "terms": [[term.name, term.levels, term.places] for term in model.terms.terms],
        "law": law_settings(model.law),
        "arguments": as_json(arguments),
        "priors": None if priors is None else {name: str(each) for name, each in priors.items()},
        "facts": model.facts.to_json(),
        "doubts": list(model.terms.doubts),
        "example": as_json(dict(model.example)),
        **described_spec(model.terms.spec),
        "groups": [described_group(term) for term in model.terms.groups],
    }


def _model(notes: dict[str, Any], source: Any) -> TableModel:
    if notes["version"] != 1:
        raise ValueError(f"it is of version {notes['version']!r}, and this library knows 1")
    family, facts = notes["family"], facts_from_json(notes["facts"])
    if family not in FAMILIES or facts is None:
        raise ValueError("its family or its facts are none of this library's")
    law = law_again(notes["law"])
    classes = tuple(map(stored_text, notes["classes"]))
    parsed = parsed_formula(notes["formula"])
    noise = noise_of(family, bool(parsed.groups))
    _check_law(law, family, noise, len(classes))
    example = from_json(notes["example"])
    if sorted(example) != sorted(parsed.all_columns):
        raise ValueError("its row is not of the columns that the formula reads")
    terms = _terms(notes, parsed, example)
    names = tuple(map(stored_text, notes["names"]))
    width = len(names) + int(terms.has_intercept)
    places = sorted(place for term in terms.terms for place in term.places)
    if width > MOST_COEFFICIENTS or places != list(range(width)):
        raise ValueError("its terms and the names of its coefficients do not fit together")
    known = set(terms.spec.column_names) - {INTERCEPT}
    if set(names) != known:
        raise ValueError("its coefficients are not those of its formula")
    priors = notes["priors"]
    if priors is not None:
        priors = {stored_text(name): stored_text(each) for name, each in priors.items()}
    return TableModel(
        None,
        terms,
        family,
        parsed.outcome,
        classes,
        facts,
        names=names,
        law=law,
        scale=noise,
        arguments={**_arguments(from_json(notes["arguments"])), "priors": priors},
        example=example,
        source=source,
    )


def _terms(notes: dict[str, Any], parsed: ParsedFormula, example: dict[str, Any]) -> FormulaTerms:
    """The terms with formulaic's specification, and random effects with their levels."""
    groups = notes.get("groups", [])
    if len(groups) != len(parsed.groups):
        raise ValueError("its random effects are not those of its formula")
    terms = tuple(
        Term(
            stored_text(name),
            None if levels is None else tuple(map(stored_text, levels)),
            tuple(map(stored_count, places)),
        )
        for name, levels, places in notes["terms"]
    )
    return FormulaTerms(
        parsed,
        terms,
        spec_again(notes, parsed, example),
        tuple(_doubts(notes)),
        tuple(group_again(*each, example) for each in zip(groups, parsed.groups, strict=True)),
    )


def _check_law(law: Any, family: str, noise: str | None, num_classes: int) -> None:
    """Raise unless it takes what the family's predictor gives."""
    several = family in SEVERAL_CLASSES
    width = {"softmax": num_classes, "ordinal": num_classes - 1}.get(family, 2)
    has_more = several or noise is not None
    z = jax.ShapeDtypeStruct((1, width) if has_more else (1,), jnp.float32)
    if jax.eval_shape(law.mean, z).shape != ((1, num_classes) if several else (1,)):
        raise ValueError("its outcome is not that of its family")


def _arguments(stored: dict[str, Any]) -> dict[str, Any]:
    """What `fit` was asked for: a flag, a number, and names of columns."""
    for name, value in stored.items():
        is_fitting = (
            isinstance(value, bool)
            if name == "drop_missing"
            else value is None or isinstance(value, (int, float))
            if name in ("prior_scale", "dispersion")
            else isinstance(value, str) and name in RowColumns._fields
        )
        if not is_fitting:
            raise ValueError(f"it was asked for {name!r} = {value!r}, which cannot be")
    return stored
