"""Every command, its options, and the module whose `run(**options)` does the work. Add a command by
adding a row.
"""

from typing import Any, NamedTuple


class Option(NamedTuple):
    """Arguments for argparse's add_argument."""

    names: tuple[str, ...]
    settings: dict[str, Any]


class Command(NamedTuple):
    """One word of the command line."""

    name: str
    summary: str
    module: str
    options: tuple[Option, ...]


COMMANDS = (
    Command(
        "fit",
        "Fit a regression to a table, and print its coefficients.",
        "amagold.cli._fit_command",
        (
            Option(
                ("table",),
                {"metavar": "TABLE", "help": "a CSV, Parquet or Arrow file, or a folder"},
            ),
            Option(
                ("formula",),
                {
                    "nargs": "?",
                    "metavar": "FORMULA",
                    "help": "such as 'late ~ distance + C(month)'; not needed with --outcome",
                },
            ),
            Option(
                ("--family",),
                {
                    "default": "logistic",
                    "choices": [
                        *("logistic", "probit", "poisson", "negative_binomial", "gamma"),
                        *("linear", "robust", "softmax", "ordinal"),
                    ],
                    "help": "what the outcome is like (default: logistic)",
                },
            ),
            Option(
                ("--outcome",),
                {"metavar": "COLUMN", "help": "the outcome, with all other columns as predictors"},
            ),
            Option(
                ("--drop-missing",),
                {"action": "store_true", "help": "leave out rows with missing values"},
            ),
            Option(
                ("--out-of-core",),
                {
                    "action": "store_true",
                    "default": None,
                    "help": "keep rows in temporary files; done unasked where memory is too small",
                },
            ),
            Option(("--weights",), {"metavar": "COLUMN", "help": "how often each row counts"}),
            Option(
                ("--offset",), {"metavar": "COLUMN", "help": "added to the predictor of each row"}
            ),
            Option(
                ("--trials",),
                {"metavar": "COLUMN", "help": "how often each row was tried (logistic, probit)"},
            ),
            Option(
                ("--exposure",),
                {"metavar": "COLUMN", "help": "over what each count was seen (counts)"},
            ),
            Option(
                ("--dispersion",),
                {
                    "type": float,
                    "metavar": "A",
                    "help": "var y = m + m^2 / A (negative_binomial with random effects)",
                },
            ),
            Option(
                ("--prior",),
                {
                    "action": "append",
                    "metavar": "TERM=PRIOR",
                    "help": "of one term, such as 'distance=normal(0, 1)', student_t(df, location, "
                    "scale), laplace(location, scale) or horseshoe(scale); of several, 'x1, "
                    "x2=horseshoe(1)', or of all others, '*=horseshoe(1)'; may be given several "
                    "times",
                },
            ),
            Option(("--store",), {"metavar": "RUN", "help": "a folder to keep the draws in"}),
            Option(
                ("--report",),
                {"metavar": "PAGE", "help": "an HTML file to write the whole report to"},
            ),
            Option(
                ("--num-samples",),
                {
                    "type": int,
                    "default": 1000,
                    "metavar": "NUMBER",
                    "help": "draws of each of the four chains (default: 1000)",
                },
            ),
            Option(("--seed",), {"type": int, "default": 0, "metavar": "NUMBER"}),
        ),
    ),
    Command(
        "predict",
        "Predict new rows by a stored run of amagold fit.",
        "amagold.cli._predict_command",
        (
            Option(("path",), {"metavar": "RUN", "help": "the folder of the run"}),
            Option(("table",), {"metavar": "TABLE", "help": "a CSV, Parquet or Arrow file"}),
            Option(
                ("--output",),
                {
                    "metavar": "FILE",
                    "required": True,
                    "help": "where predictions go, row by row: .csv, .parquet or .arrow",
                },
            ),
            Option(
                ("--interval",),
                {"type": float, "default": 0.9, "metavar": "SHARE", "help": "(default: 0.9)"},
            ),
            Option(
                ("--outcomes",),
                {"action": "store_true", "help": "of new outcomes, not of their mean"},
            ),
            Option(
                ("--groups",),
                {
                    "choices": ("own", "new", "none"),
                    "default": "own",
                    "help": "whose random effects: each row's level's, a new level's, or none "
                    "(default: own)",
                },
            ),
        ),
    ),
    Command(
        "compare",
        "Compare stored runs of one table by leave-one-out cross-validation.",
        "amagold.cli._compare_command",
        (
            Option(("paths",), {"metavar": "RUN", "nargs": "+", "help": "the folders of two runs"}),
            Option(
                ("--table",),
                {
                    "metavar": "TABLE",
                    "help": "what was fitted, where the runs did not keep its rows",
                },
            ),
        ),
    ),
    Command(
        "resume",
        "Go on with a stored run where it stopped.",
        "amagold.cli._resume_command",
        (
            Option(
                ("path",),
                {"metavar": "RUN", "help": "the folder that amagold.sample(..., store=RUN) made"},
            ),
            Option(
                ("--target",),
                {
                    "metavar": "MODULE:NAME",
                    "help": "what the run was begun with; runs of this library's own models need "
                    "none",
                },
            ),
            Option(
                ("--table",),
                {
                    "metavar": "TABLE",
                    "help": "what was fitted, where the run did not keep its rows",
                },
            ),
            Option(
                ("--max-time",),
                {"type": float, "metavar": "SECONDS", "help": "stop after this time"},
            ),
        ),
    ),
    Command(
        "data",
        "Prepare a table for sampling: a row store, whose single rows are cheap to read.",
        "amagold.cli._data_command",
        (
            Option(
                ("action",),
                {
                    "choices": ["prepare", "split"],
                    "help": "prepare: convert a source to a row store, once; split: cut a row "
                    "store into shards, one for each of several processes",
                },
            ),
            Option(
                ("source",),
                {
                    "metavar": "SOURCE",
                    "help": "a Parquet or Arrow file, a folder of them, or a Zarr array or group; "
                    "for split a row store",
                },
            ),
            Option(
                ("destination",),
                {"metavar": "DESTINATION", "help": "the folder to make, for amagold.data.open"},
            ),
            Option(
                ("--columns",),
                {
                    "nargs": "+",
                    "metavar": "COLUMN",
                    "help": "which columns to keep, in this order; all if not given",
                },
            ),
            Option(
                ("--shards",),
                {"type": int, "default": 2, "metavar": "NUMBER", "help": "for split (default: 2)"},
            ),
        ),
    ),
    Command(
        "launch",
        "Run a script in several processes of this machine, which sample together.",
        "amagold.cli._launch_command",
        (
            Option(
                ("-n",),
                {
                    "dest": "number",
                    "type": int,
                    "default": 2,
                    "metavar": "NUMBER",
                    "help": "of processes (default: 2)",
                },
            ),
            Option(("script",), {"metavar": "SCRIPT", "help": "a Python file"}),
            Option(
                ("arguments",),
                {"nargs": "...", "metavar": "ARGUMENT", "help": "what the script is given"},
            ),
        ),
    ),
    Command(
        "report",
        "Print what a stored run found and how it went.",
        "amagold.cli._report_command",
        (
            Option(
                ("path",),
                {"metavar": "RUN", "help": "the folder of the run; it may still be going on"},
            ),
            Option(
                ("--picture",),
                {"metavar": "FILE", "help": "also draw the run at a glance into this PNG file"},
            ),
            Option(
                ("--output",),
                {"metavar": "PAGE", "help": "also write the whole report to this HTML file"},
            ),
            Option(
                ("--table",),
                {
                    "metavar": "TABLE",
                    "help": "the table that was fitted, for parts of the page that need it where "
                    "the run did not keep it",
                },
            ),
        ),
    ),
)
