"""Memory stays where it is: thinning happens inside the run, and stored draws leave it."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from amagold_lab.bench.measure import Measurement, NoRatioError

NUM_CHAINS, NUM_SAMPLES, THIN = 64, 1_000, 100
STORED_CHAINS, FEW, MANY = 4, 10_000, 1_000_000
LARGE_EXAMPLES, LARGE_PARAMETERS, SMALL_EXAMPLES = 10_000_000, 20, 2_000


def peak_memory(call: str, environment: dict[str, str] | None = None) -> int:
    """The most memory that a process of its own held during a call of a function below."""
    program = f"from amagold_lab.bench import memory; memory.{call}; memory.print_peak()"
    return int(
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | (environment or {}),
        ).stdout
    )


def print_peak() -> None:
    # not getrusage's maximum, which a process inherits from the one that started it
    status = Path("/proc/self/status")
    if not status.exists():
        raise NoRatioError(
            "the peak of a process's memory is read from /proc, which this system lacks"
        )
    print(
        next(
            line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")
        )
    )


def draw_thinned(thin: int) -> None:
    import jax
    import numpy as np

    from amagold.runner import run_chains
    from amagold_lab.bench.double_well_against_c import double_well_sampler

    run_chains(
        double_well_sampler(),
        jax.random.key(0),
        np.zeros(NUM_CHAINS, np.float32),
        NUM_SAMPLES,
        thin=thin,
    )


def draw_stored(num_samples: int) -> None:
    import warnings

    from amagold.sampling._sample import sample
    from amagold_lab.bench.double_well_against_c import double_well_sampler

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sample(
            double_well_sampler(),
            num_samples,
            100,
            STORED_CHAINS,
            init=0.0,
            store=Path(folder) / "run.zarr",
            progress=False,
        )


def import_only() -> None:
    """All modules that a run loads, and a running JAX, but no data and nothing compiled."""
    import arviz_stats  # noqa: F401
    import jax
    import optax  # noqa: F401
    import scipy.optimize
    import scipy.stats  # noqa: F401
    import xarray  # noqa: F401

    from amagold import models  # noqa: F401
    from amagold.sampling._sample import sample  # noqa: F401

    jax.random.normal(jax.random.key(0), (2,)).block_until_ready()


def draw_large(num_examples: int, num_parameters: int) -> None:
    import warnings

    from amagold import models
    from amagold.sampling._sample import sample
    from amagold_lab.bench.benchmark_posteriors import logistic_table

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sample(
            models.logistic(*logistic_table(num_examples, num_parameters), prior_scale=1.0),
            num_chains=64,
            progress=False,
        )


def measure_data(num_examples: int, num_parameters: int, seconds: float) -> Measurement:
    data = 4 * num_examples * num_parameters  # X, and y as a number each
    imports, nothing, all_of_it = (
        1024 * peak_memory(call)
        for call in (
            "import_only()",
            f"draw_large({SMALL_EXAMPLES}, {num_parameters})",
            f"draw_large({num_examples}, {num_parameters})",
        )
    )
    words = (
        f"{(all_of_it - imports) / 1e6:.0f} MB, of which {SMALL_EXAMPLES:,} examples need "
        f"{(nothing - imports) / 1e6:.0f} MB"
    )
    return Measurement(
        (all_of_it - imports) / data, details=f"{words}; {data / 1e6:.0f} MB of data"
    )


def import_for_tables() -> None:
    """The same for a fit of a table with its report."""
    import_only()
    import formulaic  # noqa: F401
    import jinja2  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import zarr  # noqa: F401

    from amagold.report import _run_page  # noqa: F401
    from amagold.tables import _effects, _fit, _predictive_check  # noqa: F401


def fit_flights(folder: str) -> None:
    """From the file to the report, as `amagold fit` does."""
    from amagold.cli._main import main
    from amagold_lab.bench.factors import FORMULA

    where = Path(folder)
    more = ["--store", str(where / "run.zarr"), "--report", str(where / "report.html")]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if main(["fit", str(where / "flights.parquet"), FORMULA, *more]):
            raise NoRatioError("the fit failed")


def measure_table(num_rows: int, seconds: float) -> Measurement:
    """With programs compiled anew, which takes memory too."""
    from amagold.core.program_cache import VARIABLE
    from amagold_lab.bench.factors import flights

    table = flights(num_rows)
    data = 8 * num_rows * len(table.columns)
    with tempfile.TemporaryDirectory() as folder:
        as_texts = {"origin": str, "destination": str}  # as files of flights have them
        table.astype(as_texts).to_parquet(Path(folder) / "flights.parquet")
        imports = 1024 * peak_memory("import_for_tables()")
        whole = 1024 * peak_memory(f"fit_flights({folder!r})", {VARIABLE: "off"})
    words = f"{(whole - imports) / 1e6:.0f} MB; {data / 1e6:.0f} MB of numbers in float64"
    return Measurement((whole - imports) / data, details=words)


def measure_thinning(seconds: float) -> Measurement:
    return Measurement(peak_memory(f"draw_thinned({THIN})") / peak_memory("draw_thinned(1)"))


def measure_store(seconds: float) -> Measurement:
    return Measurement(peak_memory(f"draw_stored({MANY})") / peak_memory(f"draw_stored({FEW})"))
