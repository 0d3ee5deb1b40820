"""`amagold predict RUN TABLE --output FILE`: predictions of new rows."""


def run(
    path: str,
    table: str,
    output: str,
    interval: float = 0.9,
    outcomes: bool = False,
    groups: str = "own",
) -> None:
    """Predict, and write a table of predictions, whole or not at all.

    Args:
      path: the folder of a run of `amagold fit`.
      table: a CSV, Parquet or Arrow file.
      output: a file to write, whose suffix says the format.
      interval: the share of the posterior between lower and upper.
      outcomes: whether to predict new outcomes instead of their mean.
      groups: whose random effects rows have: "own", "new" or "none".
    """
    from amagold.sampling._load import load
    from amagold.tables._write_table import check_output, write_table

    place = check_output(output)
    of = "outcome" if outcomes else "mean"
    found = load(path).predict(table, interval, of=of, groups=groups)
    write_table(found, place)
    print(f"{len(found):,} predictions are in {place}")
