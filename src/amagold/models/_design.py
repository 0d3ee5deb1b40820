"""What the regressions share before they know their outcome: the stored table, the prior, and the
way back to the user's scale.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import checks
from amagold.models._coded_rows import CodedRows, CodedTable
from amagold.models._default_priors import LOG_NOISE_SCALE, Location, Widths
from amagold.models._priors import LOG_SHAPE, CoefficientPrior, NoisePrior
from amagold.models._row_terms import NOTHING, RowTerms
from amagold.models._scale import UserScale
from amagold.models._stored_table import InUnits, StoredOutcome, StoredPredictors
from amagold.models._table import AWAY, FAR, NARROWEST, UNEQUAL, WIDEST, Sheet

ASKED_FOR = "prior_scale sets others"


class Design(NamedTuple):
    """A table ready for classes or counts."""

    predictors: jax.Array | StoredPredictors | CodedRows
    prior: CoefficientPrior | NoisePrior  # the latter where the outcomes have a shape of their own
    transform: UserScale | None  # None: positions are on the user's scale as they are


class NoisyDesign(NamedTuple):
    """A table with an outcome that is a number, ready for a kind of noise."""

    predictors: jax.Array | StoredPredictors | CodedRows
    response: jax.Array | StoredOutcome  # in the units that are sampled
    prior: CoefficientPrior | NoisePrior
    transform: UserScale | None
    noise_scale: float | None  # in the units that are sampled; None where it is a parameter
    rows: RowTerms = NOTHING  # without an offset, which the response is counted from


class Units(NamedTuple):
    """The response is stored less the center, divided by the scale."""

    center: float = 0.0
    scale: float = 1.0

    def stored(self, response: np.ndarray) -> np.ndarray:
        return ((response - self.center) / self.scale).astype(np.float32)


def design_of(
    sheet: Sheet,
    widths: Widths,
    prior_scale: float | None,
    standardize: bool | None,
    *,
    is_matrix: bool = False,
    log_shape: float | None = None,
) -> Design:
    """For an outcome without units: classes and counts; `log_shape` is where the prior of an
    unknown shape lies, in logarithms.
    """
    is_standardised = _decide(sheet, prior_scale, standardize, None)
    units = Units()
    log_of = None if log_shape is None else ("shape", log_shape)
    prior: CoefficientPrior | NoisePrior = _prior(
        sheet, widths, prior_scale, standardize, is_standardised, units, log_of
    )
    if log_shape is not None:
        prior = NoisePrior(prior, _single(log_shape), _single(LOG_NOISE_SCALE), LOG_SHAPE)
    return Design(
        sheet.stored(is_standardised),
        prior,
        _transform(sheet, units, is_matrix) if is_standardised else None,
    )


def noisy_design_of(
    sheet: Sheet,
    response: np.ndarray | StoredOutcome,
    outcomes: Location,
    widths: Widths,
    prior_scale: float | None,
    standardize: bool | None,
    noise_scale: float | None,
) -> NoisyDesign:
    """For an outcome that is a number: z plus noise, whose scale is given or unknown."""
    if not NARROWEST < outcomes.spread < WIDEST:
        spread = f"{outcomes.spread:g}"
        raise ValueError(
            f"y must have a width between {NARROWEST:g} and {WIDEST:g}, got {spread}; choose "
            "other units"
        )
    if noise_scale is not None:
        checks.number(
            "noise_scale",
            noise_scale,
            above=0.0,
            remedy="give the noise's standard deviation, or None if it is unknown",
        )
    is_standardised = _decide(sheet, prior_scale, standardize, outcomes, _distance(response))
    # the noise is then of scale one, or not far from it
    scale = float(np.float32(outcomes.spread if noise_scale is None else noise_scale))
    units = Units(float(np.float32(outcomes.center)), scale) if is_standardised else Units()
    spread = outcomes.spread if noise_scale is None else None
    log_of = None if spread is None else ("noise scale", float(np.log(spread)))
    prior = _prior(sheet, widths, prior_scale, standardize, is_standardised, units, log_of)
    if spread is not None:
        prior = NoisePrior(
            prior, _single(np.log(spread) - np.log(units.scale)), _single(LOG_NOISE_SCALE)
        )
    if isinstance(response, StoredOutcome):
        stored = response._replace(convert=InUnits(_single(units.center), _single(units.scale)))
    else:
        stored = jnp.asarray(units.stored(response))
    transform = _transform(sheet, units, False) if is_standardised else None
    given = None if noise_scale is None else 1.0 if is_standardised else float(noise_scale)
    rows = sheet.rows._replace(offset=None)
    return NoisyDesign(sheet.stored(is_standardised), stored, prior, transform, given, rows)


def _decide(
    sheet: Sheet,
    prior_scale: float | None,
    standardize: bool | None,
    outcomes: Location | None,
    distance: float = 0.0,
) -> bool:
    """Whether to standardise; raises where float32 cannot hold what was asked for."""
    if standardize is not None and not isinstance(standardize, (bool, np.bool_)):
        raise ValueError(
            "standardize must be True, False or None, which lets the columns decide, got "
            f"{standardize!r}"
        )
    if prior_scale is not None:
        checks.number(
            "prior_scale",
            prior_scale,
            above=0.0,
            remedy="give the prior's standard deviation, or None for one from the data",
        )
    if standardize and sheet.idle is not None:
        stays = float(sheet.centers[sheet.idle])
        raise ValueError(
            f"X must vary in every column with standardize=True, but {sheet.names[sheet.idle]} "
            f"stays at {stays:g}; "
            f"drop it{', the intercept stands for it' if sheet.has_intercept else ''}"
        )
    far = _far(sheet, distance)
    if far is not None:
        remedy = None
        if not sheet.has_intercept:
            remedy = "add an intercept, or subtract a round number from it"
        elif standardize is not None and not standardize:
            remedy = "leave standardize=None, or subtract a round number from it"
        elif prior_scale is not None and not standardize:
            remedy = (
                "prior_scale would speak of an intercept that far away: leave it None, give "
                "standardize=True, or subtract a round number"
            )
        if remedy is not None:
            name, distance = far
            raise ValueError(
                f"{name} must have a mean within {FAR:g} standard deviations of zero here, where "
                "float32 can tell its values apart, "
                f"but it is {distance:.0f} away; {remedy}"
            )
    if standardize is not None:
        return bool(standardize)
    if outcomes is None:
        return sheet.asks_for_standardising
    is_away = sheet.has_intercept and abs(outcomes.center) > AWAY * outcomes.spread
    return (
        sheet.asks_for_standardising or is_away or not 1.0 / UNEQUAL <= outcomes.spread <= UNEQUAL
    )


def _far(sheet: Sheet, distance: float) -> tuple[str, float] | None:
    """What lies too far from zero for float32, and how far; `distance` is the outcomes'."""
    if sheet.is_far:
        worst = int(np.argmax(sheet.distances))
        return f"X's {sheet.names[worst]}", float(sheet.distances[worst])
    return ("y", distance) if distance > FAR else None


def _distance(response: np.ndarray | StoredOutcome) -> float:
    """Of the mean from zero, in standard deviations; zero where nothing varies."""
    if isinstance(response, StoredOutcome):
        spread = response.deviation
        return abs(response.mean) / spread if spread > 0 else 0.0
    spread = float(response.std())
    return (
        abs(float(response.mean())) / spread
        if spread > 0 and response.min() < response.max()
        else 0.0
    )


def _prior(
    sheet: Sheet,
    widths: Widths,
    prior_scale: float | None,
    standardize: bool | None,
    is_standardised: bool,
    units: Units,
    log_of: tuple[str, float] | None = None,
) -> CoefficientPrior:
    """The prior in the coordinates that are sampled; `log_of` is a scale or a shape that has a
    prior of its own to speak of, and where that lies.
    """
    first, num_slopes = int(sheet.has_intercept), len(sheet.scales)
    slopes = np.full(num_slopes, widths.slope if prior_scale is None else float(prior_scale))
    is_on_columns = prior_scale is None or bool(standardize)  # else on the coefficients as they are
    center, intercept = (
        (widths.center, widths.intercept) if prior_scale is None else (0.0, float(prior_scale))
    )
    # of theta_j: sd(x_j) theta_j is what the width speaks of; of u_j = scale_j theta_j /
    # units.scale
    of_slopes = slopes / sheet.scales if is_on_columns else slopes
    scale = of_slopes * sheet.scales / units.scale if is_standardised else of_slopes
    offsets = None
    if sheet.has_intercept and is_on_columns != is_standardised:
        # the intercept that the prior speaks of is at the means where the position's is at zero, or
        # the other way round
        offsets = sheet.centers if is_on_columns else -sheet.centers / sheet.scales
    of_first = [intercept / units.scale] * first
    return CoefficientPrior(
        center=_single([(center - units.center) / units.scale] * first + [0.0] * num_slopes),
        scale=_single([*of_first, *scale]),
        offsets=None if offsets is None or not num_slopes else _single(offsets),
        figures=_single(
            [
                slopes[0] if num_slopes else 0.0,
                center,
                intercept,
                *([] if log_of is None else [log_of[1]]),
            ]
        ),
        words=_words(
            sheet.has_intercept,
            num_slopes > 0,
            prior_scale is None,
            is_on_columns,
            None if log_of is None else log_of[0],
            isinstance(sheet.values, CodedTable) and sum(sheet.values.sizes) > 0,
        ),
    )


def _words(
    has_intercept: bool,
    has_slopes: bool,
    is_default: bool,
    is_on_columns: bool,
    log_of: str | None,
    has_levels: bool,
) -> str:
    """The prior as a sentence, with places for its numbers."""
    parts = []
    if has_slopes:
        width = "standard deviation" if has_intercept else "root mean square"
        which = (
            f"each coefficient times its predictor's {width}"
            if is_on_columns
            else "each coefficient"
        )
        level = " (a level's counts as 1/2)" if has_levels and is_on_columns else ""
        parts.append(f"{which}{level} ~ N(0, {{0:.4g}}^2)")
    if has_intercept:
        place = " at the predictors' means" if is_on_columns and has_slopes else ""
        parts.append(f"the intercept{place} ~ N({{1:.4g}}, {{2:.4g}}^2)")
    if log_of is not None:
        parts.append(f"the log of the {log_of} ~ N({{3:.4g}}, {LOG_NOISE_SCALE:g}^2)")
    source = f"scaled by the data ({ASKED_FOR})" if is_default else "as given"
    return f"Priors {source}: {', '.join(parts)}."


def _transform(sheet: Sheet, units: Units, is_matrix: bool) -> UserScale:
    centers = _single(sheet.centers) if sheet.has_intercept else None
    return UserScale(
        centers, _single(sheet.scales), _single(units.center), _single(units.scale), is_matrix
    )


def _single(numbers: object) -> jax.Array:
    # put there by no program, as `jnp.asarray` would compile one for every shape
    return jax.device_put(np.asarray(numbers, np.float64).astype(np.float32))
