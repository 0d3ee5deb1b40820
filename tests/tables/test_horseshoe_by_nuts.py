"""Sparse regressions under a horseshoe prior against NUTS with every local scale a parameter."""

import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from false_alarms import PLANTED, threshold

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")
numpyro = pytest.importorskip("numpyro")

import numpyro.distributions as dist  # noqa: E402

import amagold  # noqa: E402
from amagold import priors  # noqa: E402

pytestmark = pytest.mark.slow

NUM_ROWS, WIDTH, SCALE = 100, 10, 0.3
TRUE = {"logistic": (1.5, -1.5), "linear": (1.0, -0.6)}
NAMES = [f"x{number}" for number in range(WIDTH)]
NUM_NUTS, NUM_DRAWS = 3000, 3000
LEVELS, SPREAD = 12, 0.8  # of a group, and of its effects


def table(family):
    """With a column g, whose levels differ."""
    generator = np.random.default_rng(1)
    X = generator.normal(size=(NUM_ROWS, WIDTH))
    group = np.arange(NUM_ROWS) % LEVELS
    effects = SPREAD * np.random.default_rng(2).normal(size=LEVELS)
    z = 0.3 + X[:, :2] @ np.array(TRUE[family]) + effects[group]
    y = generator.random(NUM_ROWS) < 1 / (1 + np.exp(-z))
    if family == "linear":
        y = z + generator.normal(size=NUM_ROWS)
    return pandas.DataFrame(dict(zip(NAMES, X.T, strict=True)) | {"y": y, "g": group})


def model(X, y, group, family, power):
    """brms's parametrisation; `power` of tau is added to the density, zero is right."""
    tau = numpyro.sample("tau", dist.HalfCauchy(SCALE))
    numpyro.factor("planted", power * jnp.log(tau))
    local = numpyro.sample("lambda", dist.HalfCauchy(1.0).expand([WIDTH]).to_event(1))
    standard = numpyro.sample("standard", dist.Normal(0.0, 1.0).expand([WIDTH]).to_event(1))
    beta = numpyro.deterministic("beta", standard * local * tau)
    # the usual priors of this table: the intercept's at the predictors' means
    center, width = intercept_prior(family, y)
    at_means = numpyro.sample("at_means", dist.Normal(center, width))
    z = at_means + (X - X.mean(axis=0)) @ beta
    numpyro.deterministic("intercept", at_means - X.mean(axis=0) @ beta)
    if group is not None:
        # the usual prior of a scale: half-Student-t(3) of 1, or of 2.5 sd(y)
        width = 2.5 * y.std() if family == "linear" else 1.0
        spread = numpyro.sample("spread", dist.FoldedDistribution(dist.StudentT(3.0, 0.0, width)))
        own = numpyro.sample("own", dist.Normal(0.0, 1.0).expand([LEVELS]).to_event(1))
        z = z + spread * own[group]
    if family == "linear":
        log_sigma = numpyro.sample("log_sigma", dist.Normal(jnp.log(y.std()), 2.0))
        numpyro.sample("y", dist.Normal(z, jnp.exp(log_sigma)), obs=y)
    else:
        numpyro.sample("y", dist.Bernoulli(logits=z), obs=y)


def intercept_prior(family, y):
    if family == "linear":
        return y.mean(), 2.5 * y.std()
    return jnp.log(y.mean() / (1.0 - y.mean())), 2.5


def by_nuts(family, power=0.0, has_groups=False):
    """(chain, draw, quantity)."""
    frame = table(family)
    group = jnp.asarray(frame["g"].to_numpy()) if has_groups else None
    X, y = jnp.asarray(frame[NAMES].to_numpy()), jnp.asarray(frame["y"].to_numpy(np.float32))
    kernel = numpyro.infer.NUTS(model, target_accept_prob=0.99, max_tree_depth=12)
    chains = numpyro.infer.MCMC(
        kernel,
        num_warmup=1000,
        num_samples=NUM_NUTS,
        num_chains=4,
        chain_method="vectorized",
        progress_bar=False,
    )
    chains.run(jax.random.key(0), X, y, group, family, power)
    drawn = chains.get_samples(group_by_chain=True)
    columns = [drawn["intercept"], *jnp.moveaxis(drawn["beta"], -1, 0), jnp.log(drawn["tau"])]
    if family == "linear":
        columns.append(drawn["log_sigma"])
    if has_groups:
        columns.append(jnp.log(drawn["spread"]))
    return np.stack([np.asarray(column, np.float64) for column in columns], axis=-1)


def by_amagold(family, has_groups=False):
    run = amagold.fit(
        f"y ~ {' + '.join(NAMES)}" + " + (1 | g)" * has_groups,
        table(family),
        family,
        priors={"*": priors.horseshoe(SCALE)},
        num_samples=NUM_DRAWS,
        progress=False,
    )
    assert run.label == "exact"
    assert not run.warnings
    drawn = run.posterior
    columns = [drawn["Intercept"], *(drawn[name] for name in NAMES), np.log(drawn["horseshoe_tau"])]
    if family == "linear":
        columns.append(np.log(drawn["sigma"]))
    if has_groups:
        columns.append(np.log(drawn["1|g_sigma"]))
    return np.stack([column.values for column in columns], axis=-1)


def deviation(ours, theirs):
    """The largest of means, spreads and shares beyond quantiles, in joint Monte Carlo errors and
    as a share of its threshold.
    """
    found = []
    middle = theirs.mean(axis=(0, 1))
    for column in range(ours.shape[-1]):
        one, other = ours[..., column], theirs[..., column]
        cuts = np.quantile(other, [0.05, 0.25, 0.5, 0.75, 0.95])
        for feature in (
            lambda x: x,
            lambda x, at=middle[column]: (x - at) ** 2,
            *(lambda x, cut=cut: (x < cut).astype(float) for cut in cuts),
        ):
            sides = [feature(side) for side in (one, other)]
            errors = [
                side.std() / np.sqrt(float(arviz_stats.ess(side, method="mean"))) for side in sides
            ]
            found.append(abs(sides[0].mean() - sides[1].mean()) / np.hypot(*errors))
    assert len(found) == 7 * ours.shape[-1]
    return max(found) / threshold(len(found))


@pytest.mark.parametrize("family", ["logistic", "linear"])
def test_draws_agree_with_explicit_scales(family):
    ours = by_amagold(family)
    assert deviation(ours, by_nuts(family)) < 1.0
    if family == "logistic":
        # a Jacobian of log tau that was left out
        assert deviation(ours, by_nuts(family, -1.0)) > PLANTED


@pytest.mark.parametrize("family", ["logistic", "linear"])
def test_draws_beside_random_effects_agree_with_explicit_scales(family):
    ours = by_amagold(family, has_groups=True)
    assert deviation(ours, by_nuts(family, has_groups=True)) < 1.0
    if family == "logistic":
        assert deviation(ours, by_nuts(family, -1.0, has_groups=True)) > PLANTED
