"""Regressions with effects of groups: generalised linear mixed models."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from amagold.core import checks
from amagold.core.arrays import as_numbers
from amagold.data import Data, Viewed
from amagold.models._coded_rows import CodedRows, CodedTable
from amagold.models._default_priors import (
    WIDE,
    log_rate,
    mean_and_deviation,
    of_link,
    of_numbers,
)
from amagold.models._design import design_of, noisy_design_of
from amagold.models._fixed_dispersion import NegativeBinomialOfShape
from amagold.models._groups_on_disk import grouped_rows, stored_groups, without_groups
from amagold.models._logistic import logistic
from amagold.models._mixed_groups import CheckedGroup, checked_groups, scale_priors, stored_columns
from amagold.models._mixed_scale import MixedScale
from amagold.models._mixed_shrinkage import with_shrinkage
from amagold.models._noise_shapes import Gaussian
from amagold.models._outcomes import counts, numbers_beyond
from amagold.models._poisson import CountExample, poisson
from amagold.models._priors import NoisePrior
from amagold.models._probit import probit
from amagold.models._regression import CodedPredictor, Predictor, regression
from amagold.models._residuals import ResidualExample
from amagold.models._row_terms import RowTerms, check_offset
from amagold.models._scale import UserScale
from amagold.models._stored_table import examples_of
from amagold.models._table import table_of
from amagold.models._unknown_noise import UnknownNoise
from amagold.models._weighted import Weighted
from amagold.priors import TermPrior
from amagold.target import Posterior
from amagold.target._effects_prior import EffectsPrior, LogNormalScale
from amagold.target._group_effects import (
    FIXED,
    NOISE,
    TAU,
    GroupedExample,
    GroupedLikelihood,
    GroupedPredictor,
    correlation_name,
    scale_name,
)

MIXED_FAMILIES = ("logistic", "poisson", "linear", "binomial", "negative_binomial", "probit")
GUESS = 0.5  # of a log scale below that of its prior, for searches


class FixedPart(NamedTuple):
    """The regression without its groups."""

    data: Any
    outcome: Any
    prior: Any
    noise: LogNormalScale | None
    transform: UserScale | None
    response_scale: float
    width: float  # of an effect, in the units of the outcome's link


def mixed(
    X: ArrayLike | CodedTable | Data | None,
    y: ArrayLike | None,
    groups: Any,
    family: str = "logistic",
    *,
    intercept: bool = True,
    prior_scale: float | None = None,
    scale_prior: Any = None,
    shrinkage: TermPrior | None = None,
    weights: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    trials: ArrayLike | None = None,
    dispersion: float | None = None,
    standardize: bool | None = None,
    outcome: str | None = None,
) -> Posterior:
    """The posterior of a mixed model: a regression whose groups have effects of their own,
    z = x . theta + sum_f t_f . u_f[level], u_f[level] ~ N(0, Sigma_f).

    `amagold.sample` reports `theta`, the intercept first; for each group by its name the effects of
    its levels, their standard deviation `<name>_sigma`, with several columns one for each, and
    `<name>_correlation`; and with family="linear" the noise's standard deviation `sigma`.

    Args:
      X: predictors with one coefficient for all rows; None for none.
      y: outcomes, one for each row.
      groups: for each group a name, such as "1|origin", and the level of every row, a whole number
        from 0; or an `amagold.models.Group`, with columns for effects beyond an intercept.
      family: "logistic", "poisson", "linear", "binomial" (with `trials`), "negative_binomial" (with
        `dispersion`) or "probit".
      intercept: whether the first coefficient is an intercept.
      prior_scale: as for the regression of that family without groups.
      scale_prior: of the standard deviation of effects, a half-Student-t with 3 degrees of freedom.
        A number is its scale; or half of `amagold.priors.normal` or `student_t` about zero; or a
        dict of such by the names of groups. None takes the scale 1, or 2.5 sd(y) for "linear", for
        each effect times its column's standard deviation, and for the intercept at the columns'
        means (`Group.center`). Correlations have an LKJ(2) prior.
      shrinkage: `amagold.priors.horseshoe(scale)` for all coefficients but the intercept, in place
        of their usual prior, on the scale of X as it is given; `tau` is reported too. None for
        none.
      weights: how often each row counts in the log likelihood.
      offset: added to z, one number for each row.
      trials: how often each row was tried, for a binomial outcome (logistic link) or a probit one.
      dispersion: for "negative_binomial": a with var y = m + m^2 / a at the mean m.
      standardize: as for `models.logistic`.
      outcome: the column of y, for a table on disk (`amagold.data.open`) in place of X, with None
        for y; groups are then names of its columns, and what is left are the predictors.
    """
    if family not in MIXED_FAMILIES:
        known = ", ".join(map(repr, MIXED_FAMILIES))
        raise ValueError(f"family must be one of {known}, got {family!r}")
    given = RowTerms(weights, offset, trials)
    if isinstance(X, Data):
        if family == "binomial":
            raise ValueError(
                'family must not be "binomial" with data on disk, which have no trials; read the '
                "table into arrays"
            )
        on_disk = stored_groups(X, groups, outcome, scale_prior, standardize)
        table = without_groups(X, on_disk)
        fixed = _fixed(
            family, table, y, intercept, prior_scale, given, dispersion, standardize, outcome
        )
        data = grouped_rows(X, fixed.data, on_disk)
        target = _with_groups(fixed, [group.checked for group in on_disk], data, scale_prior)
        return _shrunk(target, fixed, intercept, shrinkage)
    if y is None:
        raise ValueError("y must be given: an outcome for each row, where X is no table on disk")
    given_rows: Any = np.asarray(as_numbers("y", y)) if X is None else X
    num_rows = len(given_rows)
    if X is None:
        if not intercept:
            raise ValueError("X must be given where intercept is False: nothing would be fixed")
        X = np.zeros((num_rows, 0))
    keep = _kept(weights, num_rows)
    checked = checked_groups(groups, num_rows, keep, scale_prior, standardize)
    fixed = _fixed(family, X, y, intercept, prior_scale, given, dispersion, standardize, outcome)
    data = GroupedExample(
        fixed.data,
        tuple(jax.device_put(group.codes) for group in checked),
        tuple(stored_columns(group) for group in checked),
    )
    return _shrunk(_with_groups(fixed, checked, data, scale_prior), fixed, intercept, shrinkage)


def _shrunk(target: Posterior, fixed: FixedPart, intercept: bool, prior: Any) -> Posterior:
    """With a horseshoe for all coefficients but the intercept, where one was asked for."""
    if prior is None:
        return target
    if not isinstance(prior, TermPrior) or prior.kind != "horseshoe":
        raise ValueError(
            f"shrinkage must be amagold.priors.horseshoe(scale), or None, got {prior!r}; for how "
            "wide usual priors are give prior_scale"
        )
    init: Any = target.init
    places = list(range(int(intercept), len(init[FIXED])))
    if not places:
        raise ValueError("X must have columns whose coefficients shrinkage speaks of; give some")
    if TAU in init:
        raise ValueError(f"groups must not be called {TAU!r} beside shrinkage; rename the group")
    which = "All coefficients but the intercept" if intercept else "All coefficients"
    words = f"{which} have instead the prior {prior}, with the scale {TAU}."
    return with_shrinkage(target, fixed.transform, [places], [prior], (words,))


def _kept(weights: Any, num_rows: int) -> np.ndarray | None:
    """Which rows count, where some do not; what is wrong with weights is said elsewhere."""
    if weights is None:
        return None
    found = np.asarray(as_numbers("weights", weights))
    if found.shape != (num_rows,) or (found > 0).all():
        return None
    return found > 0


def _fixed(
    family: str,
    X: Any,
    y: Any,
    intercept: bool,
    prior_scale: float | None,
    given: RowTerms,
    dispersion: float | None,
    standardize: bool | None,
    column: str | None,
) -> FixedPart:
    """The regression of a family, its table checked and its priors chosen."""
    if given.trials is not None and family not in ("binomial", "logistic", "probit"):
        raise ValueError(f'trials must not be given with family="{family}"; use family="binomial"')
    if family == "binomial" and given.trials is None:
        raise ValueError('trials must be given with family="binomial": how often rows were tried')
    if (dispersion is not None) != (family == "negative_binomial"):
        raise ValueError(
            'dispersion must be given with family="negative_binomial" and no other: a with '
            "var y = m + m^2 / a"
        )
    if family == "linear":
        return _linear(X, y, intercept, prior_scale, given, standardize, column)
    if family == "negative_binomial":
        checks.number("dispersion", dispersion, above=0.0, remedy="give a, var y = m + m^2 / a")
        assert dispersion is not None
        sheet, observed = table_of(X, y, column, intercept, given)
        check_offset(sheet.rows)
        events, mean = counts(observed, sheet.num_rows, sheet.rows)
        center = log_rate(mean, sheet.num_observations) - sheet.rows.log_mean_exposure
        design = design_of(sheet, of_link(center), prior_scale, standardize)
        data = examples_of(CountExample, design.predictors, events, sheet.rows)
        base = regression(
            NegativeBinomialOfShape(float(dispersion)), data, design.prior, design.transform
        )
    else:
        model = {"poisson": poisson, "probit": probit}.get(family, logistic)
        terms = {"weights": given.weights, "offset": given.offset}
        if given.trials is not None:
            terms["trials"] = given.trials
        base = model(X, y, prior_scale, intercept, standardize=standardize, outcome=column, **terms)
    likelihood: Any = base.log_likelihood
    transform: Any = base.transform
    return FixedPart(base.data, likelihood.outcome, base.log_prior, None, transform, 1.0, 1.0)


def _linear(
    X: Any,
    y: Any,
    intercept: bool,
    prior_scale: float | None,
    given: RowTerms,
    standardize: bool | None,
    column: str | None,
) -> FixedPart:
    sheet, observed = table_of(X, y, column, intercept, given)
    response = numbers_beyond(observed, sheet)
    outcomes = mean_and_deviation(response, sheet.has_intercept, sheet.rows)
    design = noisy_design_of(
        sheet, response, outcomes, of_numbers(outcomes), prior_scale, standardize, None
    )
    data = examples_of(ResidualExample, design.predictors, design.response, design.rows)
    prior = design.prior
    assert isinstance(prior, NoisePrior)
    outcome: Any = UnknownNoise(Gaussian())
    if sheet.rows.weights is not None:
        outcome = Weighted(outcome)
    noise = LogNormalScale(prior.log_center, prior.log_scale)
    scale = 1.0 if design.transform is None else float(design.transform.response_scale)
    width = WIDE * outcomes.spread
    return FixedPart(data, outcome, prior.coefficients, noise, design.transform, scale, width)


def _with_groups(
    fixed: FixedPart, groups: list[CheckedGroup], data: Any, scale_prior: Any
) -> Posterior:
    predictors = (fixed.data.example if isinstance(fixed.data, Viewed) else fixed.data).predictors
    coded = isinstance(predictors, CodedRows)
    names = tuple(group.form.name for group in groups)
    clash = {FIXED, NOISE, *names, *map(scale_name, names), *map(correlation_name, names)}
    if len(clash) < 2 + 3 * len(names):
        raise ValueError(
            f"groups must have names that tell them and their scales apart, got {list(names)}"
        )
    of_theta = CodedPredictor() if coded else Predictor()
    predictor = GroupedPredictor(of_theta, names, fixed.noise is not None)
    likelihood = GroupedLikelihood(predictor, fixed.outcome)
    priors = scale_priors(groups, scale_prior, fixed.width, fixed.response_scale)
    guesses = tuple(jnp.log(prior.scales) - GUESS for prior in priors)
    figures = [float(prior.scales[0]) * fixed.response_scale for prior in priors]
    prior = EffectsPrior(
        fixed.prior, priors, guesses, fixed.noise, jnp.asarray(figures, jnp.float32)
    )
    width = predictors.width if coded else predictors.shape[-1]
    init: dict[str, Any] = {FIXED: np.asarray(fixed.prior.center[:width], np.float32)}
    for group, guess in zip(groups, guesses, strict=True):
        form = group.form
        shape = (form.num_levels, form.num_effects) if form.is_vector else (form.num_levels,)
        init[form.name] = np.zeros(shape, np.float32)
        guessed = np.asarray(guess)
        init[scale_name(form.name)] = guessed if form.is_vector else guessed[0]
        if form.num_correlations:
            init[correlation_name(form.name)] = np.zeros(form.num_correlations, np.float32)
    if fixed.noise is not None:
        init[NOISE] = np.asarray(fixed.noise.center)
    transform = MixedScale(
        tuple(group.form for group in groups),
        fixed.transform,
        tuple(jax.tree.map(jnp.asarray, group.units) for group in groups),
        jnp.float32(fixed.response_scale),
    )
    return Posterior(
        likelihood, prior, data, init=init, bounds=likelihood.bounds(), transform=transform
    )
