"""`amagold fit TABLE FORMULA`: from a table to draws with names."""

import warnings

from amagold.core.printable import printable


def run(
    table: str,
    formula: str | None = None,
    family: str = "logistic",
    outcome: str | None = None,
    drop_missing: bool = False,
    out_of_core: bool | None = None,
    prior: list[str] | None = None,
    weights: str | None = None,
    offset: str | None = None,
    trials: str | None = None,
    exposure: str | None = None,
    dispersion: float | None = None,
    store: str | None = None,
    report: str | None = None,
    num_samples: int = 1000,
    seed: int = 0,
) -> None:
    """Fit, and print the plan, the draws in a table, and what needs attention.

    Args:
      table: a CSV, Parquet or Arrow file.
      formula: as for `amagold.fit`; None takes all columns but the outcome.
      family: as for `amagold.fit`.
      outcome: the column of the outcome, without a formula.
      drop_missing: whether to leave out rows with missing values.
      out_of_core: whether to keep rows in temporary files; None where memory is too small for them.
      prior: TERM=KIND(NUMBERS) of single terms, of several, or of all others.
      weights: the column of how often each row counts.
      offset: the column of what is added to each row's predictor.
      trials: the column of how often each row was tried.
      exposure: the column of what each count was seen over.
      dispersion: a of var y = m + m^2 / a, for negative binomial counts with random effects.
      store: the folder for the draws; None keeps none.
      report: an HTML file to write the report to, or None.
      num_samples: draws of each chain.
      seed: of all random numbers.
    """
    from amagold.core.freed_memory import end_of_stage, one_run
    from amagold.priors._prior_text import parsed_priors
    from amagold.report._run_page import checked_path
    from amagold.sampling import SamplingWarning
    from amagold.tables import fit
    from amagold.tables._group_results import printed_variables

    if report is not None:
        checked_path(report, "report")
    priors = parsed_priors(prior or [])
    options = {"outcome": outcome, "drop_missing": drop_missing, "priors": priors}
    options |= {"out_of_core": out_of_core, "dispersion": dispersion}
    of_rows = {"weights": weights, "offset": offset, "trials": trials, "exposure": exposure}
    sampling = {"store": store, "num_samples": num_samples, "seed": seed}
    with one_run():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SamplingWarning)  # the run says them below
            result = fit(formula, table, family, **options, **of_rows, **sampling)
        end_of_stage()
        print(printable(str(result)))
        if result.posterior.sizes["draw"]:
            names, left_out = printed_variables(result)
            print(printable(result.summary(var_names=names).to_string()))
            print(printable("\n".join(left_out)), end="\n" if left_out else "")
        end_of_stage()
        if report is not None:
            print(printable(f"\nWritten to {result.report(report)}"))
