"""A run without sampling: draws from a random generator, with everything that a report asks for."""

import numpy as np
import pandas
import xarray

from amagold.sampling._given_sampler import Given
from amagold.sampling._run import Run
from amagold.tables._predictive_check import PredictiveCheck

CHAINS, DRAWS = 4, 200
PLAN = Given(
    proposal="Leapfrog",
    gradient="Full",
    acceptance="FullTest",
    label="exact",
    num_steps=5,
    resample_momentum=True,
    step_size=0.1,
    friction=None,
    batch_size=None,
    batch_plan=None,
    numbers="",
    target_acceptance=None,
    mass=None,
)


class InventedRun(Run):
    """What needs a model is invented too."""

    asked_with = None

    def effects(self, interval=0.9, *, table=None, **options):
        self.asked_with = table
        rows = [
            {"term": name, "level": level, "mean": 0.02, "sd": 0.01, "lower": 0.001, "upper": 0.04}
            for name, levels in self.levels.items()
            for level in levels or [None]
            if name != "Intercept"
        ]
        return pandas.DataFrame(rows)

    def predictive_check(self, *, table=None, **options):
        places = np.array([0.1, 0.5, 0.9])
        calibration = pandas.DataFrame(
            {
                "predicted": places,
                "observed": places + np.array([0.0, 0.02, 0.08]),
                "lower": places - 0.05,
                "upper": places + 0.05,
                "count": [30, 30, 30],
            }
        )
        statistics = pandas.DataFrame(
            {
                "statistic": ["mean", "sd"],
                "observed": [0.44, 0.9],
                "mean": [0.45, 0.5],
                "lower": [0.4, 0.49],
                "upper": [0.5, 0.51],
                "share_above": [0.6, 0.0],
            }
        )
        return PredictiveCheck(calibration, statistics)

    def laplace_gap(self, target=None):
        names = [
            name if levels is None else f"{name}[{level}]"
            for name, levels in self.levels.items()
            for level in levels or [None]
        ]
        table = pandas.DataFrame(
            {
                "mean_shift": 0.1,
                "sd_ratio": 1.05,
                "below": 0.04,
                "above": 0.07,
                "error": 0.02,
                "sd_error": 0.02,
                "tail_error": 0.01,
            },
            index=names,
        )
        table.attrs["verdict"] = "Gaussian enough for means."
        return table


def invented_run(levels, attributes=None, warnings=(), means=None):
    """A run of variables, each with a list of levels or None."""
    generator = np.random.default_rng(0)
    variables, dims, names = {}, {}, {}
    for name, labels in levels.items():
        shape = () if labels is None else (len(labels),)
        center = (means or {}).get(name, 0.3)
        values = center + 0.1 * generator.normal(size=(CHAINS, DRAWS, *shape))
        axes = ["chain", "draw"] + ([] if labels is None else [f"{name}_dim_0"])
        variables[name] = (axes, values)
        if labels is not None:
            dims[name], names[f"{name}_dim"] = [f"{name}_dim"], labels
    groups = {
        "posterior": xarray.Dataset(variables),
        "sample_stats": invented_stats(CHAINS, DRAWS),
    }
    known = invented_attributes(dims, names, CHAINS, DRAWS) | (attributes or {})
    run = InventedRun(groups, known, PLAN, list(warnings), None)
    run.levels = levels
    return run


def whole_run(run):
    """What a report asks for beside the draws and the model of a run."""
    posterior, model = run.posterior, run.model
    labels = model.target.names.to_json()
    sizes = posterior.sizes["chain"], posterior.sizes["draw"]
    known = invented_attributes(labels["dims"], labels["names"], *sizes)
    known |= {
        "formula": model.terms.formula,
        "family": model.family,
        "table": model.facts.to_json(),
        "notes": list(model.target.notes),
    }
    groups = {"posterior": posterior, "sample_stats": invented_stats(*sizes)}
    found = Run(groups, known, PLAN, [], None)
    found.model = model
    return found


def invented_stats(num_chains, num_draws):
    rates = np.full((num_chains, num_draws), 0.9, np.float32)
    steps = np.full((num_chains, num_draws), 5)
    stats = {
        "acceptance_rate": rates,
        "diverging": np.zeros((num_chains, num_draws), bool),
        "n_steps": steps,
        "num_gradient_examples": 10 * steps,
        "num_energy_examples": 10 * steps,
    }
    return xarray.Dataset({name: (["chain", "draw"], values) for name, values in stats.items()})


def invented_attributes(dims, names, num_chains, num_draws):
    return {
        "label": "exact",
        "labels": {"dims": dims, "names": names},
        "settings": {
            "num_samples": num_draws,
            "num_warmup": 100,
            "num_chains": num_chains,
            "seed": 3,
            "thin": 1,
        },
        "versions": {"amagold": "0.0", "jax": "0.0"},
        "seed": 3,
        "data_fingerprint": "f" * 64,
        "num_examples": 90,
        "notes": ["each coefficient ~ N(0, 1.5e+04^2)"],
        "gradients_per_step": 1,
        "is_complete": True,
        "stopped": None,
        "warmup_time": 1.0,
        "sampling_time": 2.0,
        "compile_time": 3.0,
    }
