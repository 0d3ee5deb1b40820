"""What people do with draws next: predictions, effects, comparisons, checks. The rooms that know
how load when they are asked.
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.figure import Figure


class PredictiveCheck(NamedTuple):
    """What replicated tables say.

    Attributes:
      calibration: bins of rows by their predicted mean, with the columns predicted (the bin's mean
        prediction), observed (its mean outcome), lower and upper (where replicated means lie) and
        count (of rows as often as they count, or of trials).
      statistics: of all outcomes, with the columns statistic, observed, mean, lower, upper (of the
        replicated ones) and share_above (of replications above the observed).
    """

    calibration: "pandas.DataFrame"
    statistics: "pandas.DataFrame"


class NextSteps(ABC):
    """The part of a run that needs more than its draws: the model that they are of."""

    path: Path | None
    sampler: Any
    _model: Any

    @property
    @abstractmethod
    def posterior(self) -> "xarray.Dataset": ...

    @property
    def model(self) -> Any:
        """The regression of a table that `amagold.fit` made, kept with a stored run too; None
        where the run was not fitted to a table.
        """
        if self._model is None and self.path is not None:
            from amagold.tables._stored_model import load_model

            self._model = load_model(self.path)
        return self._model

    @model.setter
    def model(self, model: Any) -> None:
        self._model = model

    def predict(
        self,
        table: Any,
        interval: float = 0.9,
        *,
        of: str = "mean",
        groups: str = "own",
        draws: int = 0,
        num_draws: int = 1000,
        seed: int = 0,
    ) -> Any:
        """What the regression expects of new rows: a table of the kind that came in, row by row,
        with the columns mean, lower and upper; several classes have three columns each.

        Memory is bounded by a chunk of rows beside what goes in and comes out.

        Args:
          table: as for `amagold.fit`; the outcome's column is not needed.
          interval: the share of the posterior between lower and upper, its tails equal.
          of: "mean" predicts E[y | x], with what is unknown of the coefficients; "outcome" one new
            y, with the noise too. With trials these are the probability of a success, and one
            trial.
          groups: whose random effects a row has: "own" those of its level, and of a level that
            was not fitted draws from the levels' distribution; "new" draws for every level, as if
            none were known; "none" leaves them out, as in a group without an effect, and needs no
            columns of groups.
          draws: how many draws to return as columns beside, draw_0 first.
          num_draws: how many posterior draws to use, evenly spread over all chains.
          seed: of the noise of new outcomes, and of the effects of new levels.
        """
        from amagold.tables._predict import predict

        self._check_draws("predict")
        return predict(self, table, interval, of, groups, draws, num_draws, seed)

    def effects(
        self,
        interval: float = 0.9,
        *,
        table: Any = None,
        num_rows: int = 2000,
        num_draws: int = 1000,
        seed: int = 0,
    ) -> "pandas.DataFrame":
        """Average marginal effects on E[y | x]: of a number the average derivative, of a factor
        the average difference between a level and the first.

        Averages are over what the rows stand for: each counts as often as its weight says, and
        with trials, whose effects are on the probability of a success, as often as it was tried.

        The columns are term, level (None for numbers), mean, sd, lower and upper; outcomes of
        several classes have a row for each class, and its name in the column class.

        Args:
          interval: the share of the posterior between lower and upper.
          table: rows to average over, with all columns that the fit had; None takes those that
            were fitted.
          num_rows: how many rows are drawn from them at most, by how often they count.
          num_draws: how many posterior draws to use.
          seed: of the rows that are drawn.
        """
        from amagold.tables._effects import effects

        self._check_draws("have effects")
        return effects(self, interval, table, num_rows, num_draws, seed)

    def contrast(
        self,
        term: str,
        first: Any,
        second: Any,
        *,
        interval: float = 0.9,
        table: Any = None,
        num_rows: int = 2000,
        num_draws: int = 1000,
        seed: int = 0,
    ) -> "pandas.DataFrame":
        """What changes when a column of the table goes from `first` to `second`, all else equal:
        on the scale of the link, and of E[y | x], averaged over what the rows stand for.

        Args:
          term: a column of the table.
          first, second: two levels of a factor, or two values of a number.
          interval, table, num_rows, num_draws, seed: as for `effects`.
        """
        from amagold.tables._effects import contrast

        self._check_draws("be contrasted")
        return contrast(self, (term, first, second), interval, table, num_rows, num_draws, seed)

    def group_effects(
        self, group: str | None = None, *, interval: float = 0.9
    ) -> "pandas.DataFrame":
        """What the levels of a group add to the predictor: a row for each level, with the columns
        effect ("1" is the intercept), level, mean, sd, lower, upper, rows and shrinkage.

        shrinkage is the variance that the data leave an effect over that of the levels' own
        distribution: near 0 a level's rows speak for themselves, at 1 they say nothing.

        Args:
          group: as in the formula: "origin", or "origin:carrier"; None where there is one.
          interval: the share of the posterior between lower and upper.
        """
        from amagold.tables._group_results import group_effects

        self._check_draws("have effects of groups")
        return group_effects(self, group, interval)

    def variance_partition(self, *, interval: float = 0.9) -> "pandas.DataFrame":
        """Whose the variance is that the fixed terms leave, on the scale of the predictor: a row
        for each group and one for the residual, with the columns source, variance, share, lower,
        upper and intraclass: the correlation of two rows of one level, its group's share and, of
        groups within others as in (1 | g/h), those of the others.

        The residual is that of one outcome: pi^2 / 3 (logistic), 1 (probit), log(1 + 1 / m) at the
        mean outcome m (poisson), log(1 + 1 / m + 1 / a) (negative binomial), sigma^2 (linear);
        `attrs["residual"]` says which, `attrs["around"]` which groups each lies within. Slopes
        that vary count by the rows' average.

        Args:
          interval: the share of the posterior between lower and upper, which are those of `share`.
        """
        from amagold.tables._group_results import variance_partition

        self._check_draws("have variances")
        return variance_partition(self, interval)

    def plot_groups(self, group: str | None = None, *, effect: str | None = None) -> "Figure":
        """The effects of a group's levels in order, with intervals, and how much of each its rows
        decide: a matplotlib figure that stays readable for many thousands.

        Args:
          group: as for `group_effects`.
          effect: "1" for the intercept, or the name of what varies; None takes the first.
        """
        from amagold.report._requirements import check_matplotlib

        self._check_draws("have effects of groups")
        check_matplotlib()
        from amagold.report._group_picture import draw

        return draw(self, group, effect)

    def loo(
        self,
        *,
        table: Any = None,
        num_rows: int = 1000,
        num_draws: int = 1000,
        seed: int = 0,
        leave_out: str = "row",
    ) -> Any:
        """The expected log predictive density of new rows, by leave-one-out cross-validation with
        Pareto smoothed importance sampling on some of the rows: arviz-stats' `ELPDData`.

        What is left out is one row of the table, whether or not rows that are alike were merged to
        sample. Of a row of weight w it is one of the w that the row stands for (all of it where w
        is below one), and w times its log density is added up: `elpd`, `p` and `se` are those of
        the table in which each row stands as often as it counts. With trials it is the row with
        all of its trials, or, with `leave_out="trial"`, one of them: then the figures are those of
        the table with a row of 0 or 1 for each trial.

        Log likelihoods of all rows are taken at the posterior's mean alone, those of all draws for
        the chosen rows alone. `elpd_i` holds what each row adds to `elpd`.

        Args:
          table: the table that was fitted, for a loaded run that did not keep it.
          num_rows: how many rows are left out in turn at most, drawn by how often they count; of
            fewer all are.
          num_draws: how many posterior draws to use.
          seed: of the rows that are chosen.
          leave_out: "row" or "trial".
        """
        from amagold.tables._loo import loo

        self._check_draws("be compared")
        return loo(self, table, num_rows, num_draws, seed, leave_out)

    def predictive_check(
        self, *, table: Any = None, num_rows: int = 10_000, num_draws: int = 500, seed: int = 0
    ) -> PredictiveCheck:
        """Whether new outcomes of the model look like the observed ones: statistics of replicated
        tables, and means by bins of their prediction.

        A row of weight w is replicated w times. With trials the numbers of successes are, and what
        is compared are their shares of the trials, row by row and in bins.

        Args:
          table: rows with outcomes; None takes those that were fitted.
          num_rows: how many rows are drawn from them at most, as often as they count.
          num_draws: how many posterior draws, and so replications, to use.
          seed: of the rows and of the replications.
        """
        from amagold.tables._predictive_check import predictive_check

        self._check_draws("be checked")
        return predictive_check(self, table, num_rows, num_draws, seed)

    def laplace_gap(self, target: Any = None) -> "pandas.DataFrame":
        """How far a Gaussian at the mode (the Laplace approximation) would have been off, one row
        per parameter: did you need MCMC?

        The columns are mean_shift (posterior mean less Laplace's, in posterior standard
        deviations), sd_ratio (posterior's over Laplace's), below and above (the share of draws
        outside Laplace's central 90%, which should be 0.05 each), and Monte Carlo errors of them
        as error, sd_error and tail_error. `attrs["verdict"]` says it in a sentence.

        Args:
          target: what was sampled, for a loaded run of a model of your own.
        """
        from amagold.diagnose._laplace_gap import laplace_gap

        self._check_draws("be compared with a Gaussian")
        return laplace_gap(self.posterior, self._target(target))

    def _target(self, given: Any) -> Any:
        """What was sampled, as far as it can be known."""
        if given is not None:
            return given
        if self.sampler is not None:
            return self.sampler.target
        if self.model is not None:
            return self.model.known_target()
        from amagold.sampling._stored_recipe import load_recipe

        found = None if self.path is None else load_recipe(self.path)
        if found is None:
            raise ValueError(
                "target must be given for a loaded run of a model of your own: what was sampled"
            )
        return found

    def _check_draws(self, purpose: str) -> None:
        if not self.posterior.sizes["draw"]:
            raise ValueError(
                f"the run must have draws to {purpose}, and it was stopped before the first; go "
                "on with amagold.resume"
            )
