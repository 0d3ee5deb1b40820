"""The result of a run: draws, statistics, and where they come from."""

import json
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amagold.core.files import as_path
from amagold.sampling._labelled import labelled
from amagold.sampling._next_steps import NextSteps

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.figure import Figure

    from amagold.diagnose._effective_cost import Cost


class Run(NextSteps):
    """Draws of one run, in memory or on disk. Groups are xarray datasets with dimensions (chain,
    draw, ...).

    Attributes:
      posterior: the draws.
      sample_stats: acceptance_rate, accepted, diverging, energy, energy_error, step_size, n_steps
        and examples used, by ArviZ's names.
      plan: what was chosen and why; print it.
      warnings: sentences about what needs attention; empty when nothing does.
      attributes: settings, versions, seed, times; of a stored run a fingerprint of the data.
      path: the folder of the store, or None.
      sampler: the sampler as warm-up froze it; None for a run that was loaded.
      positions: where its chains are, as they are sampled; None for a run that was loaded.
    """

    def __init__(
        self,
        groups: dict[str, "xarray.Dataset"],
        attributes: dict[str, Any],
        plan: Any,
        warnings: list[str],
        path: Path | None,
        sampler: Any = None,
        positions: Any = None,
    ) -> None:
        self._groups = labelled(groups, attributes.get("labels"))
        self.attributes = attributes
        self.plan = plan
        self.warnings = warnings
        self.path = path
        self.sampler = sampler
        self.positions = positions
        self._model: Any = None

    @property
    def posterior(self) -> "xarray.Dataset":
        return self._groups["posterior"]

    @property
    def sample_stats(self) -> "xarray.Dataset":
        return self._groups["sample_stats"]

    @property
    def warmup_sample_stats(self) -> "xarray.Dataset":
        """How the warm-up went, transition by transition: step_size, n_steps, mass_scale,
        acceptance_rate, diverging.
        """
        return self._groups["warmup_sample_stats"]

    @property
    def warmup_posterior(self) -> "xarray.Dataset":
        """The warm-up draws, if `Warmup(keep=True)` asked for them."""
        if "warmup_posterior" not in self._groups:
            raise ValueError(
                "warmup_posterior was not kept; ask for it with warmup=amagold.Warmup(keep=True)"
            )
        return self._groups["warmup_posterior"]

    @property
    def is_partial(self) -> bool:
        """True when the run was stopped before all draws were made."""
        return not self.attributes["is_complete"]

    @property
    def label(self) -> str:
        """Whether the draws are exact in the limit, approximate, or biased."""
        return self.attributes["label"]

    @property
    def sampling_seconds(self) -> float:
        """Wall time of the kept draws until the last is there, after warm-up and compilation;
        writing to the store counts.
        """
        return self.attributes["sampling_time"]

    @property
    def warmup_seconds(self) -> float:
        """Wall time of the warm-up, without compilation."""
        return self.attributes["warmup_time"]

    @property
    def compile_seconds(self) -> float:
        """Time that went into tracing and compiling."""
        return self.attributes["compile_time"]

    def to_datatree(self) -> "xarray.DataTree":
        """All groups as ArviZ takes them."""
        import xarray

        tree = xarray.DataTree.from_dict(dict(self._groups))
        tree.attrs.update(
            {
                name: value if isinstance(value, (str, int, float)) else json.dumps(value)
                for name, value in self.attributes.items()
            }
        )
        return tree

    def to_numpyro(self) -> dict[str, Any]:
        """All draws by name, chains one after another, as NumPyro's `Predictive` takes them:
        `Predictive(model, run.to_numpyro())(key, X_new)`.
        """
        arrays = {str(name): draws.to_numpy() for name, draws in self.posterior.items()}
        return {name: array.reshape(-1, *array.shape[2:]) for name, array in arrays.items()}

    def to_netcdf(self, path: str | Path) -> None:
        """Write all groups to one netCDF file."""
        place = as_path("path", path, "a file to write")
        if not place.absolute().parent.is_dir() or place.is_dir():
            remedy = "make the folder first, or name a file"
            raise ValueError(
                f"path must be a file in a folder that exists, got {str(place)!r}; {remedy}"
            )
        try:
            import h5netcdf  # noqa: F401
        except ImportError:
            raise ImportError(
                "netCDF export needs h5netcdf: pip install 'amagold[netcdf]'"
            ) from None
        tree = self.to_datatree()
        tree.attrs = {
            name: int(value) if isinstance(value, bool) else value
            for name, value in tree.attrs.items()
        }
        # netCDF has no booleans
        tree = tree.map_over_datasets(
            lambda group: group.map(
                lambda array: array.astype("int8") if array.dtype == bool else array
            )
        )
        part = place.with_name(f".{place.name}.partial")
        try:
            tree.to_netcdf(part, engine="h5netcdf")
            part.replace(place)
        finally:
            part.unlink(missing_ok=True)

    def summary(self, **options: Any) -> "pandas.DataFrame":
        """Mean, sd, interval, ess_bulk, ess_tail, r_hat and Monte Carlo errors of every parameter,
        by ArviZ; options go to it.

        Memory is bounded: parameters are read some at a time. Where all chains together have more
        than a million draws, only mean and sd are of all of them; intervals, ESS, R-hat and Monte
        Carlo errors are of every k-th draw, at most a million. The ESS is then that of the thinned
        chains, which have no more information than the whole ones.

        The table's `attrs` hold the label of the draws, the warnings, and k as `every`.
        """
        from amagold.sampling._summary import summarise

        self._check_draws("be summarised")
        table, every = summarise(self.to_datatree(), **options)
        table.attrs.update(
            label=self.label, is_partial=self.is_partial, warnings=list(self.warnings), every=every
        )
        return table

    def cost(self, posterior: "xarray.Dataset | None" = None) -> "Cost":
        """Effective draws per gradient evaluation and per pass over the data.

        Args:
          posterior: the draws whose worst coordinate counts; None takes all.
        """
        from amagold.diagnose._effective_cost import effective_cost

        self._check_draws("have a cost")
        stats = self.sample_stats
        num_gradients = (
            int(stats["n_steps"].astype("int64").sum()) * self.attributes["gradients_per_step"]
        )
        return effective_cost(
            self.posterior if posterior is None else posterior,
            stats["num_gradient_examples"].to_numpy(),
            stats["num_energy_examples"].to_numpy(),
            self.attributes["num_examples"],
            num_gradients,
        )

    def report(self, path: str | Path = "report.html", *, table: Any = None) -> Path:
        """Write all of the run into one HTML page that needs nothing else: what was asked, found,
        checked and done. Returns its path.

        Args:
          path: the file, which ends in .html; it appears whole or not at all.
          table: the table that was fitted, for a loaded run that did not keep it.
        """
        from amagold.report._run_page import write_report

        return write_report(self, path, table)

    def plot(self) -> "Figure":
        """The run at a glance, as a matplotlib figure: step size, acceptance, energy errors, and
        the slowest parameter.
        """
        from amagold.report._requirements import check_matplotlib

        check_matplotlib()
        from amagold.report import _run_picture as run_picture

        return run_picture.draw(self)

    @cached_property
    def _acceptance(self) -> float:
        return (
            float(self.sample_stats["acceptance_rate"].mean())
            if self.sample_stats.sizes["draw"]
            else float("nan")
        )

    def __repr__(self) -> str:
        sizes = self.posterior.sizes
        lines = [
            f"amagold run: {sizes['chain']} chains x {sizes['draw']} draws, {self.label}"
            + (", PARTIAL" if self.is_partial else ""),
            f"acceptance {self._acceptance:.3f}; sampling {self.sampling_seconds:.2f} s, warm-up "
            f"{self.warmup_seconds:.2f} s, "
            f"compilation {self.compile_seconds:.2f} s",
            *(f"warning: {sentence}" for sentence in self.warnings),
        ]
        if self.is_partial:
            wanted = self.attributes["settings"]["num_samples"]
            lines.insert(
                1,
                f"stopped ({self.attributes['stopped'] or 'no reason given'}) after "
                f"{sizes['draw']} of {wanted} draws",
            )
        if self.path is not None:
            lines.append(f"stored in {self.path}")
        return "\n".join(lines)
