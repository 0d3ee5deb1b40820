"""Small real tables with groups: as formulas of this library, and as NumPyro models that share
nothing with it.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np
from packaged_tables import packaged

NUM_CHAINS, NUM_WARMUP, NUM_DRAWS = 4, 1_000, 2_000
INTERCEPT_SCALE, SLOPE_SCALE, GROUP_SCALE = 5.0, 2.0, 1.0


class GroupedCase(NamedTuple):
    """A formula, and the same in parts."""

    outcome: str
    fixed: str  # formulaic's right side
    groups: tuple[tuple[str, ...], ...]  # the columns of each random intercept
    family: str
    trials: str | None = None

    @property
    def formula(self) -> str:
        random = " + ".join(f"(1 | {':'.join(group)})" for group in self.groups)
        return f"{self.outcome} ~ {self.fixed} + {random}"

    @property
    def priors(self) -> dict[Any, str]:
        found: dict[Any, str] = {"Intercept": f"normal(0, {INTERCEPT_SCALE})"}
        found["*"] = f"normal(0, {SLOPE_SCALE})"
        for group in self.groups:
            found[f"1|{':'.join(group)}_sigma"] = f"student_t(3, 0, {GROUP_SCALE})"
        return found


CASES = {
    "cbpp": GroupedCase("incidence", "C(period)", (("herd",),), "logistic", "size"),
    "grouseticks": GroupedCase(
        "TICKS", "C(YEAR) + height", (("LOCATION",), ("LOCATION", "BROOD")), "poisson"
    ),
    "flights": GroupedCase("late", "far + hour", (("carrier",), ("dest",)), "logistic"),
    "InstEval": GroupedCase("good", "C(service)", (("s",), ("d",)), "probit"),
}


@lru_cache
def table(name: str) -> Any:
    """The rows of a case."""
    if name == "flights":
        found = packaged("nycflights13/flights").dropna(subset=["dep_delay", "distance", "hour"])
        found = found.sample(1_500, random_state=0)
        far = (found.distance - 1000.0) / 700.0
        hour = (found.hour - 13.0) / 5.0
        found = found.assign(late=(found.dep_delay > 15).astype(int), far=far, hour=hour)
        return found[["late", "far", "hour", "carrier", "dest"]].reset_index(drop=True)
    if name == "InstEval":
        found = packaged("lme4/InstEval")
        found = found[found.d.isin(found.d.unique()[:40])].head(1_500)
        found = found.assign(good=(found.y >= 4).astype(int))
        return found[["good", "service", "s", "d"]].reset_index(drop=True)
    found = packaged(f"lme4/{name}")
    if name == "grouseticks":
        found = found.assign(height=(found.HEIGHT - found.HEIGHT.mean()) / 50.0)
    return found


@lru_cache
def nuts(name: str) -> dict[str, np.ndarray]:
    """Draws of the fixed terms, scales and effects by NumPyro's NUTS, (chain, draw, ...)."""
    import formulaic
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist
    from numpyro.infer import MCMC, NUTS

    case, rows = CASES[name], table(name)
    X = np.asarray(formulaic.model_matrix(case.fixed, rows), np.float64)
    codes = [rows.groupby(list(group), observed=True).ngroup().to_numpy() for group in case.groups]
    scales = np.array([INTERCEPT_SCALE] + [SLOPE_SCALE] * (X.shape[1] - 1))
    y = rows[case.outcome].to_numpy()

    def model() -> None:
        beta = numpyro.sample("beta", dist.Normal(0.0, scales).to_event(1))
        z = jnp.asarray(X) @ beta
        for group, code in zip(case.groups, codes, strict=True):
            called = ":".join(group)
            scale = numpyro.sample(
                f"1|{called}_sigma", dist.FoldedDistribution(dist.StudentT(3.0, 0.0, GROUP_SCALE))
            )
            raw = numpyro.sample(f"raw {called}", dist.Normal().expand([code.max() + 1]))
            effects = numpyro.deterministic(f"1|{called}", scale * raw)
            z = z + effects[code]
        if case.family == "poisson":
            law = dist.Poisson(jnp.exp(z))
        elif case.family == "probit":
            law = dist.Bernoulli(probs=jnp.clip(jax.scipy.stats.norm.cdf(z), 1e-6, 1 - 1e-6))
        elif case.trials is not None:
            law = dist.Binomial(rows[case.trials].to_numpy(), logits=z)
        else:
            law = dist.Bernoulli(logits=z)
        numpyro.sample("y", law, obs=y)

    run = MCMC(
        NUTS(model),
        num_warmup=NUM_WARMUP,
        num_samples=NUM_DRAWS,
        num_chains=NUM_CHAINS,
        chain_method="vectorized",
        progress_bar=False,
    )
    run.run(jax.random.PRNGKey(0))
    found = run.get_samples(group_by_chain=True)
    return {key: np.asarray(found[key], np.float64) for key in found if not key.startswith("raw")}
