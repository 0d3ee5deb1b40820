"""Whether what the model predicts is what happens: bins of rows, and replicated tables."""

from typing import Any, NamedTuple

from amagold.report._chart_scale import AxisTick, scale_of
from amagold.report._rounded_numbers import percent, short, whole

SURPRISING = 0.025  # in either tail


class CalibrationPoint(NamedTuple):
    """A bin of rows; places in percent, heights from above."""

    predicted: float
    observed: float
    lower: float
    upper: float
    is_inside: bool
    words: str


class CalibrationChart(NamedTuple):
    points: tuple[CalibrationPoint, ...]
    ticks: tuple[AxisTick, ...]  # of both axes
    words: str
    num_inside: int
    each: str  # what is in the bins


class StatisticRow(NamedTuple):
    name: str
    observed: str
    replicated: str
    words: str
    is_inside: bool


def calibration_chart(calibration: Any, each: str = "rows") -> CalibrationChart | None:
    """The chart of a table with the columns predicted, observed, lower, upper and count, of rows or
    what else is counted.
    """
    if not len(calibration):
        return None
    values = calibration[["predicted", "observed", "lower", "upper"]].to_numpy(float)
    scale = scale_of(values.reshape(-1).tolist(), most_ticks=6)
    points = []
    for (predicted, observed, lower, upper), count in zip(
        values.tolist(), calibration["count"].tolist(), strict=True
    ):
        words = (
            f"predicted {short(predicted)}, observed {short(observed)} "
            f"({short(lower)} to {short(upper)} expected), {whole(count)} {each}"
        )
        across = scale.place(predicted)
        at, low, high = (100.0 - scale.place(value) for value in (observed, lower, upper))
        points.append(CalibrationPoint(across, at, low, high, lower <= observed <= upper, words))
    inside = sum(point.is_inside for point in points)
    words = f"In {inside} of {len(points)} bins the observed mean is where the model expects it"
    return CalibrationChart(tuple(points), scale.ticks, words, inside, each)


def statistic_rows(statistics: Any) -> tuple[StatisticRow, ...]:
    """The rows of a table with the columns statistic, observed, mean, lower, upper and
    share_above.
    """
    rows = []
    for row in statistics.to_dict("records"):
        share = float(row["share_above"])
        is_inside = SURPRISING <= share <= 1.0 - SURPRISING
        if float(row["lower"]) <= float(row["observed"]) <= float(row["upper"]):
            is_inside = True  # also where ties put all replications on one side
        words = "as the model expects" if is_inside else _missed(share)
        ends = f"{short(row['lower'])} to {short(row['upper'])}"
        replicated = f"{short(row['mean'])} ({ends})"
        rows.append(
            StatisticRow(
                str(row["statistic"]), short(row["observed"]), replicated, words, is_inside
            )
        )
    return tuple(rows)


def _missed(share: float) -> str:
    return f"the model misses it: {percent(share)} of replicated tables have more"
