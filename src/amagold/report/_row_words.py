"""What the rows of a table stand for, in words."""

from typing import Any, NamedTuple

from amagold.report._rounded_numbers import whole
from amagold.report._table_facts import TableFacts


class RowWords(NamedTuple):
    """How the rows of a run are counted."""

    each: str  # what is counted: rows, observations or trials
    all_of_them: str  # what effects are averaged over


def row_words(model: Any) -> RowWords:
    """The words for a model of a table; None has rows."""
    arguments = {} if model is None else model.arguments
    of_weight = ", each as often as its weight says" if arguments.get("weights") else ""
    if arguments.get("trials"):
        one_row = of_weight.replace("each", "each row")
        return RowWords("trials", f"all trials of the table's rows{one_row}")
    return RowWords("observations" if of_weight else "rows", f"the rows of the table{of_weight}")


def rows_told(facts: TableFacts, words: RowWords) -> str:
    """How many rows there are, were left out and were merged, and what they stand for."""
    told = f"{whole(facts.num_used)} rows"
    if facts.num_read > facts.num_used:
        told += f" of {whole(facts.num_read)}"
    missing = facts.num_read - facts.num_used - facts.num_weightless
    if missing > 0:
        told += (
            f"; {whole(missing)} were left out because values are missing in the columns that are "
            "used"
        )
    if facts.num_weightless:
        told += f"; {whole(facts.num_weightless)} were left out because their weight is zero"
    if facts.num_distinct is not None:
        told += (
            f", merged to {whole(facts.num_distinct)} different ones with weights, which changes "
            "nothing in the posterior"
        )
    if facts.num_observations is not None:
        told += (
            f". The {whole(facts.num_used)} stand for {whole(facts.num_observations)} {words.each}"
        )
    return f"{told}."
