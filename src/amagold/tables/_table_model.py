"""A regression of a table: what is sampled, and what new data are treated by."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from amagold.models._binomial import Binomial
from amagold.models._gaussian_sums import GaussianSums
from amagold.models._regression import Likelihood, Outcome
from amagold.models._row_terms import RowTerms
from amagold.models._weighted import Weighted
from amagold.report._table_facts import TableFacts
from amagold.tables._families import MOVING_ALONG
from amagold.tables._file_rows import FileRows, rows_of_file
from amagold.tables._group_draws import RowInputs, strangers_only
from amagold.tables._missing_values import without_missing
from amagold.tables._read_table import read_table
from amagold.tables._row_columns import RowColumns
from amagold.tables._terms import FormulaTerms
from amagold.target import Posterior
from amagold.target._group_effects import GroupedLikelihood

# whose random effects predictions have: those of each row's level, of a level that nobody has
# seen, or none at all
OWN, NEW, NONE = WHOSE = ("own", "new", "none")


@dataclass(frozen=True)
class TableModel:
    """A formula on a table, with the family of its outcome.

    Attributes:
      target: what is sampled; None where a loaded run did not keep its rows.
      terms: the formula's, with levels and transformations.
      family: its name.
      outcome: the column.
      classes: of an outcome that is a text or a boolean: the second is one.
      facts: the table in a few figures, for the report.
      names: of the coefficients without the intercept, as the coded table calls them.
      law: how outcomes follow from a predictor, on the scale of the table.
      scale: what the noise's scale is called, where there is one.
      arguments: what `amagold.fit` was asked for beside the formula and the table.
      example: one row of the columns that the formula reads.
      source: the table, or its path; None where it is not known.
    """

    target: Posterior | None
    terms: FormulaTerms
    family: str
    outcome: str
    classes: tuple[str, ...]
    facts: TableFacts
    names: tuple[str, ...]
    law: Outcome
    scale: str | None
    arguments: Mapping[str, Any]
    example: Mapping[str, Any]
    source: Any = field(default=None, repr=False, compare=False)

    @property
    def is_location(self) -> bool:
        """Whether outcomes move along with z."""
        return self.family in MOVING_ALONG

    @property
    def columns(self) -> list[str]:
        """All that the model reads, the outcome first."""
        return list(
            dict.fromkeys([self.outcome, *self.terms.columns, *self._of_rows.named.values()])
        )

    def predicting_columns(self, groups: str = OWN) -> list[str]:
        """All that predictions read: what the formula does, and what is added to it."""
        own = self.terms.fixed_columns if groups == NONE else self.terms.columns
        return list(dict.fromkeys([*own, *self._added.named.values()]))

    @property
    def _of_rows(self) -> RowColumns:
        """The columns of what rows count, and of what is added to their predictors."""
        return RowColumns(*(self.arguments.get(name) for name in RowColumns._fields))

    @property
    def _added(self) -> RowColumns:
        return self._of_rows._replace(weights=None, trials=None)

    def offset(self, frame: Any) -> Any:
        """What is added to the predictor of each row; None where nothing is."""
        return self._added.terms(frame).offset

    def inputs(self, frame: Any, groups: str = OWN) -> RowInputs:
        """What predictors of a frame's rows are made of; `groups` as for `Run.predict`."""
        found = () if groups == NONE else self.terms.group_rows(frame)
        if groups == NEW:
            pairs = zip(found, self.terms.groups, strict=True)
            found = tuple(strangers_only(rows, term) for rows, term in pairs)
        return RowInputs(self.terms.coded(frame), self.offset(frame), found)

    def row_terms(self, frame: Any) -> RowTerms:
        """What each row of a frame counts, and what is added to its predictor."""
        return self._of_rows.terms(frame)

    def rows(self, table: Any = None) -> Any:
        """The rows that were fitted, or others with their outcomes: a narwhals frame without
        missing values, and without rows of weight zero.
        """
        given = self.source if table is None else table
        if given is None:
            raise ValueError(
                "table must be given, because the run was stored without its rows, which are "
                "many; give the table that was fitted (--table TABLE)"
            )
        if self._of_rows.of_arrays:
            self._of_rows.check_given(read_table(given))
        frame = read_table(given, columns=self.columns)
        kept = without_missing(frame, self.columns, bool(self.arguments.get("drop_missing")))
        return self._of_rows.counting(kept)

    def file_rows(self, table: Any = None) -> tuple[FileRows, Any] | None:
        """The same rows where they are those of a large file, left there, and a frame of their
        outcomes and of what they count.
        """
        given = self.source if table is None else table
        if self._of_rows.of_arrays:
            return None
        beside = list(dict.fromkeys([self.outcome, *self._of_rows.named.values()]))
        found = rows_of_file(given, self.columns, beside)
        if found is None or len(self._of_rows.counting(found[1])) < len(found[1]):
            return None  # some rows are left out
        return found

    def known_target(self, table: Any = None) -> Posterior:
        """What is sampled, from the rows where it is not there."""
        if self.target is not None:
            return self.target
        from amagold.tables._fit import model_of  # late: it makes models

        frame = self.rows(table)
        found = model_of(self.terms.formula, frame, self.family, None, **self.arguments).target
        assert found is not None
        return found


def law_of(target: Posterior, has_trials: bool) -> Outcome:
    """How the outcome of one row follows from its predictor, on the scales of the draws."""
    likelihood = target.log_likelihood
    assert isinstance(likelihood, (Likelihood, GaussianSums, GroupedLikelihood))
    outcome = likelihood.outcome
    outcome = outcome.outcome if isinstance(outcome, Weighted) else outcome
    # rows that were merged into trials are rows of one each to everybody else
    return outcome if has_trials or not isinstance(outcome, Binomial) else outcome.of_one


def needs_model(run: Any, what: str) -> TableModel:
    """The run's model, or a sentence."""
    if run.model is None:
        raise ValueError(
            f"{what} needs a run of amagold.fit, which knows the formula and the table; this one "
            "was sampled from a target"
        )
    return run.model
