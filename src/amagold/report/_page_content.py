"""What a report says, part by part. A part that does not apply is None, and is left out."""

import math
from functools import cached_property
from typing import Any

from amagold.models._noise_names import NOISE_NAMES, THRESHOLD
from amagold.report._coefficient_groups import (
    INTERCEPT,
    CoefficientGroup,
    Grouping,
    groups_of,
)
from amagold.report._column_chart import ColumnChart, column_chart
from amagold.report._diagnosis import Diagnosis, diagnose, parted
from amagold.report._family_words import FamilyWords, family_words
from amagold.report._formula_words import term_words
from amagold.report._group_section import GroupSection, group_sections
from amagold.report._model_checks import (
    EffectsPart,
    FitPart,
    LaplacePart,
    effects_part,
    fit_part,
    laplace_part,
)
from amagold.report._parameters import INTERVAL, Parameter, parameters_of
from amagold.report._question_words import effects_words, question_of, title_of
from amagold.report._rounded_numbers import readable, whole
from amagold.report._row_words import RowWords, row_words, rows_told
from amagold.report._run_facts import PageFact, call_of, cost_of, provenance_of
from amagold.report._run_findings import RunFinding, findings_of
from amagold.report._table_facts import TableFacts, facts_from_json
from amagold.report._trace_chart import TraceChart, trace_of
from amagold.store._names import names_of_leaves

# in the order in which they are made, the slow ones among them
PARTS = ("parameters", "diagnosis", "coefficients", "groups", "effects", "fit", "laplace", "cost")
MERGED = "rows are merged"  # in a note that the data have a sentence of their own for


class PageContent:
    """The parts of a page, each made when it is first looked at."""

    def __init__(self, run: Any, table: Any = None) -> None:
        self.run = run
        self.table = table
        self.interval = f"{INTERVAL:.0%}"

    @cached_property
    def formula(self) -> str | None:
        found = self.run.attributes.get("formula")
        if found is None and self.run.model is not None:
            found = self.run.model.terms.formula
        return found if isinstance(found, str) and "~" in found else None

    @cached_property
    def family(self) -> str:
        found = self.run.attributes.get("family")
        if found is None and self.run.model is not None:
            found = self.run.model.family
        return str(found or "")

    @cached_property
    def facts(self) -> TableFacts | None:
        found = facts_from_json(self.run.attributes.get("table"))
        return self.run.model.facts if found is None and self.run.model is not None else found

    @cached_property
    def outcome(self) -> str:
        return "" if self.formula is None else self.formula.split("~")[0].strip().strip("`")

    @cached_property
    def words(self) -> FamilyWords:
        classes = self.facts.classes if self.facts else ()
        model = self.run.model
        if model is not None and model.arguments.get("trials") is not None:
            event = f"a trial is one of {self.outcome}"
        else:
            event = f"{self.outcome} is {classes[1] if len(classes) == 2 else '1'}"
        return family_words(self.family, self.outcome, event)

    @cached_property
    def rows(self) -> RowWords:
        return row_words(self.run.model)

    @property
    def rows_told(self) -> str:
        return "" if self.facts is None else rows_told(self.facts, self.rows)

    @property
    def noise(self) -> str | None:
        """What the family calls the parameter beside the coefficients."""
        return None if self.formula is None else NOISE_NAMES.get(str(self.family))

    def _rank(self, name: str) -> int:
        """The intercept and thresholds first, the noise last."""
        if name == INTERCEPT or name == self.noise == THRESHOLD:
            return -1
        return int(name == self.noise)

    @cached_property
    def terms(self) -> list[str]:
        """The predictors, in the order of the formula."""
        return [name for name in self._fixed if name not in (INTERCEPT, self.noise)]

    @cached_property
    def _of_groups(self) -> dict[str, str]:
        """What the variables of random effects are called in the draws."""
        groups = () if self.run.model is None else self.run.model.terms.groups
        own = {name: name for term in groups for name in term.all_variables}
        return names_of_leaves(own) if own else {}

    @cached_property
    def _fixed(self) -> dict[str, list[Parameter]]:
        """The parameters that are none of a random effect."""
        of_groups = set(self._of_groups.values())
        return {name: many for name, many in self.parameters.items() if name not in of_groups}

    @cached_property
    def group_names(self) -> list[str]:
        groups = () if self.run.model is None else self.run.model.terms.groups
        return list(dict.fromkeys(term.group for term in groups))

    @cached_property
    def groups(self) -> list[GroupSection]:
        if not self._of_groups or not self.parameters:
            return []
        return group_sections(self.run, self.parameters, self.grouping, self._of_groups)

    @property
    def group_words(self) -> str:
        return effects_words(self.group_names)

    @cached_property
    def title(self) -> str:
        if self.formula is None:
            return "Posterior draws"
        return title_of(self.outcome, self.terms, self.group_names)

    @cached_property
    def question(self) -> str | None:
        if self.formula is None:
            return None
        return question_of(self.words.asks, self.terms, self.group_names)

    @cached_property
    def parameters(self) -> dict[str, list[Parameter]]:
        """By variable: of a formula in its order, with the noise last."""
        if not self.run.posterior.sizes["draw"]:
            return {}
        found = parameters_of(self.run, self._of_groups.values())
        text = (self.formula or "").partition("~")[2]
        places = {name: text.find(name) for name in found} if text else {}
        order = sorted(
            found,
            key=lambda name: (
                self._rank(name) if text else 0,
                places.get(name, 0),
            ),
        )
        return {name: found[name] for name in order}

    @property
    def num_parameters(self) -> int:
        posterior = self.run.posterior
        return sum(math.prod(posterior[name].shape[2:]) for name in self.parameters)

    @cached_property
    def headline(self) -> list[PageFact]:
        """Four figures for the first glance."""
        sizes = self.run.posterior.sizes
        found = []
        rows = self.facts.num_used if self.facts else self.run.attributes.get("num_examples")
        if rows:
            name = "rows" if self.formula else "examples"
            if self.facts is not None and self.facts.num_observations is not None:
                name = f"rows, {whole(self.facts.num_observations)} {self.rows.each}"
            found.append(PageFact(name, whole(rows)))
        found.append(PageFact("parameters", whole(self.num_parameters)))
        found.append(PageFact("draws", whole(sizes["chain"] * sizes["draw"])))
        found.append(PageFact("effective, at least", whole(self._least_effective)))
        return found

    @cached_property
    def _least_effective(self) -> float:
        many = [each for some in self.parameters.values() for each in some]
        return min((min(each.ess_bulk, each.ess_tail) for each in many), default=0.0)

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        many = [each for some in self.parameters.values() for each in some]
        return diagnose(self.run, many) if many else None

    @cached_property
    def trace(self) -> TraceChart | None:
        effects = self._of_groups.values()
        return trace_of(self.run, self.parameters, effects) if self.parameters else None

    @cached_property
    def grouping(self) -> Grouping:
        return Grouping(
            self.words.scale,
            self.words.ratio if self.formula else "",
            self.facts.spreads if self.facts else {},
            self.facts.references if self.facts else {},
            self.formula is not None,
            self.noise,
        )

    @cached_property
    def _by_column(self) -> Grouping:
        """As effects are told: by the columns of the table instead of the formula's terms."""
        columns = self.facts.columns if self.facts else ()
        spreads = {
            column.name: 1.0 if column.is_flag else column.figures[1]
            for column in columns
            if column.figures and column.figures[1] > 0.0
        }
        references = {term_words(term): to for term, to in self.grouping.references.items()}
        return self.grouping._replace(spreads=spreads, references=references)

    @cached_property
    def coefficients(self) -> list[CoefficientGroup]:
        return groups_of(self._fixed, self.grouping) if self._fixed else []

    @cached_property
    def findings(self) -> list[RunFinding]:
        if self.formula is None:
            return []
        return findings_of(self._fixed, self.grouping, self.words.asks)

    @cached_property
    def num_effects(self) -> int:
        return sum(len(self.parameters[term]) for term in self.terms)

    @cached_property
    def num_clear(self) -> int:
        many = [each for term in self.terms for each in self.parameters[term]]
        return sum(each.clearance > 0.0 for each in many)

    @cached_property
    def columns(self) -> list[ColumnChart]:
        if self.facts is None:
            return []
        of_levels = {term for term, many in self._fixed.items() if many[0].level is not None}
        factors = {term_words(part) for term in of_levels for part in term.split(":")}
        factors |= {part for name in self.group_names for part in name.split(":")}
        return [column_chart(column, column.name in factors) for column in self.facts.columns]

    @cached_property
    def notes(self) -> list[str]:
        """The priors in words."""
        notes = [str(note) for note in self.run.attributes.get("notes", [])]
        is_said = self.facts is not None and self.facts.num_distinct is not None
        # with the data
        return [readable(note) for note in notes if not (is_said and MERGED in note)]

    @cached_property
    def effects(self) -> EffectsPart | None:
        if self.formula is None or not self.parameters:
            return None
        right = self.formula.partition("~")[2]
        return effects_part(self.run, self.table, self.words.effect, self._by_column, right)

    @cached_property
    def fit(self) -> FitPart | None:
        if self.formula is None or not self.parameters:
            return None
        return fit_part(self.run, self.table, self.rows.each)

    @cached_property
    def laplace(self) -> LaplacePart | None:
        return laplace_part(self.run, self.table) if self.parameters else None

    @cached_property
    def plan(self) -> list[tuple[str, str]]:
        """What each sentence is about, and the sentence."""
        return [parted(readable(sentence)) for sentence in self.run.plan.sentences()]

    @cached_property
    def cost(self) -> list[PageFact]:
        return cost_of(self.run, self._of_groups.values())

    @cached_property
    def provenance(self) -> list[PageFact]:
        return provenance_of(self.run)

    @cached_property
    def call(self) -> str | None:
        """How to get the same draws again."""
        return None if self.formula is None else call_of(self.run, self.formula, self.family)
