"""Groups of a table: their levels, what varies by them, and what cannot be."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
formulaic = pytest.importorskip("formulaic")
nw = pytest.importorskip("narwhals")

from amagold.cli import main  # noqa: E402
from amagold.tables._fit import model_of  # noqa: E402
from amagold.tables._read_table import read_table  # noqa: E402

NUM_ROWS = 300


def table(seed=0):
    generator = np.random.default_rng(seed)
    return pandas.DataFrame(
        {
            "late": generator.integers(0, 2, NUM_ROWS),
            "count": generator.poisson(3.0, NUM_ROWS),
            "delay": generator.normal(size=NUM_ROWS),
            "distance": generator.normal(1000.0, 300.0, NUM_ROWS),
            "month": generator.integers(1, 4, NUM_ROWS),
            "origin": generator.choice(["JFK", "LGA", "EWR", "a:b"], NUM_ROWS),
            "carrier": generator.integers(0, 8, NUM_ROWS).astype(float),
            "flag": generator.random(NUM_ROWS) < 0.3,
            "size": pandas.Categorical(
                generator.choice(["small", "large", "vast"], NUM_ROWS),
                ["small", "huge", "large", "vast"],
            ),
            "day": np.datetime64("2024-01-01", "ns")
            + generator.integers(0, 6, NUM_ROWS).astype("timedelta64[D]"),
            "one": "same",
            "row": np.arange(NUM_ROWS),
            "shared": generator.integers(1, 4, NUM_ROWS),
            "weight": generator.integers(1, 3, NUM_ROWS),
        }
    )


def model(formula, family="logistic", frame=None, **options):
    given = read_table(table() if frame is None else frame)
    return model_of(formula, given, family, None, False, None, **options)


GROUPS = {
    "origin": ("origin",),
    "carrier": ("carrier",),
    "flag": ("flag",),
    "size": ("size",),
    "day": ("day",),
    "origin:carrier": ("origin", "carrier"),
    "month:flag:size": ("month", "flag", "size"),
}


@pytest.mark.parametrize("group", GROUPS)
def test_codes_are_those_of_pandas(group):
    frame = table()
    terms = model(f"late ~ (1 | {group})").terms
    (term,) = terms.groups
    (rows,) = terms.group_rows(read_table(frame))
    keys = list(GROUPS[group])
    wanted = frame.groupby(keys, observed=True, sort=True).ngroup().to_numpy()
    np.testing.assert_array_equal(rows.codes, wanted)
    np.testing.assert_array_equal(term.num_rows, np.bincount(wanted))
    assert rows.strangers == ()
    assert rows.values is None
    first = {code: place for place, code in reversed(list(enumerate(wanted)))}
    for code, name in enumerate(term.levels):
        values = frame[keys].iloc[first[code]]
        whole = [int(value) if isinstance(value, float) else value for value in values]
        assert name == ":".join(map(str, whole))


@pytest.mark.parametrize("group", GROUPS)
def test_levels_that_were_not_fitted_are_strangers_by_name(group):
    frame, keys = table(), list(GROUPS[group])
    fitted = frame[frame[keys[0]] != frame[keys[0]].iloc[0]]
    if group == "flag":
        fitted = frame.assign(flag=np.where(frame.flag, "yes", "no"))
        frame = fitted.assign(flag=np.where(frame.flag, "yes", "perhaps"))
    terms = model(f"late ~ (1 | {group})", frame=fitted).terms
    (term,) = terms.groups
    (rows,) = terms.group_rows(read_table(frame))
    names = [*term.levels, *rows.strangers]
    assert len(set(rows.strangers)) == len(rows.strangers) > 0
    assert not set(rows.strangers) & set(term.levels)
    for code, values in zip(rows.codes, frame[keys].itertuples(index=False), strict=True):
        whole = [int(value) if isinstance(value, float) else value for value in values]
        assert names[code] == ":".join(map(str, whole))


VARYING = {
    "1 + distance": ["1", "distance"],
    "distance": ["1", "distance"],
    "0 + distance": ["distance"],
    "0 + C(month)": ["C(month)[1]", "C(month)[2]", "C(month)[3]"],
    "C(month)": ["1", "C(month)[T.2]", "C(month)[T.3]"],
    "scale(distance) + flag": ["1", "scale(distance)", "flag"],
    "distance:C(month) - 1": [f"distance:C(month)[{month}]" for month in (1, 2, 3)],
}


@pytest.mark.parametrize("varying", VARYING)
def test_what_varies_is_formulaics_matrix(varying):
    frame = table()
    terms = model(f"late ~ ({varying} | origin)").terms
    (term,) = terms.groups
    (rows,) = terms.group_rows(read_table(frame))
    wanted = formulaic.model_matrix(varying, frame.assign(flag=frame.flag.astype(float)))
    assert sorted(term.effects) == sorted(VARYING[varying])
    for place, name in enumerate(term.effects):
        column = wanted["Intercept" if name == "1" else name]
        np.testing.assert_allclose(rows.values[:, place], column, rtol=1e-12)
    np.testing.assert_allclose(term.moments, wanted.T @ wanted / NUM_ROWS, atol=1e-12)
    some = terms.group_rows(read_table(frame.iloc[5:9]))[0]  # by the state of the fit
    np.testing.assert_allclose(some.values, rows.values[5:9])


NAMED = {
    "(1 | origin)": {"1|origin": 4, "1|origin_sigma": None},
    "(1 + distance | origin) + (1 | origin:carrier)": {
        "1|origin": 4,
        "distance|origin": 4,
        "1|origin_sigma": None,
        "distance|origin_sigma": None,
        "1, distance|origin_correlation": None,
        "1|origin:carrier": 32,
        "1|origin:carrier_sigma": None,
    },
    "(0 + distance | origin)": {"distance|origin": 4, "distance|origin_sigma": None},
    "(1 | origin) + (0 + distance | origin)": {
        "1|origin": 4,
        "1|origin_sigma": None,
        "distance|origin": 4,
        "distance|origin_sigma": None,
    },
    "(1 | size)": {"1|size": 3, "1|size_sigma": None},
}


@pytest.mark.parametrize("random", NAMED)
@pytest.mark.parametrize("family", ["logistic", "linear"])
def test_draws_are_named_and_come_back(random, family):
    outcome = {"logistic": "late", "linear": "delay"}[family]
    target = model(f"{outcome} ~ distance + {random}", family).target
    generator = np.random.default_rng(0)
    position = jax.tree.map(lambda leaf: 0.3 * generator.normal(size=np.shape(leaf)), target.init)
    found = target.transform(position)
    sizes = {
        name: np.shape(values)[0] if np.ndim(values) else None for name, values in found.items()
    }
    noise = {"sigma": None} if family == "linear" else {}
    assert sizes == {"Intercept": None, "distance": None, **NAMED[random], **noise}
    labels = target.names.to_json()
    for name, size in NAMED[random].items():
        if size is not None:
            (axis,) = labels["dims"][name]
            assert axis == f"{name.partition('|')[2]}__factor_dim"
            assert len(labels["names"][axis]) == size
    again = target.transform.inverse(found)
    for name, leaf in position.items():
        np.testing.assert_allclose(again[name], leaf, rtol=2e-3, atol=2e-3)
    stacked = jax.tree.map(lambda leaf: np.stack([leaf, leaf])[None], position)
    assert np.shape(target.transform(stacked)["Intercept"]) == (1, 2)


def test_the_predictor_is_what_the_names_say():
    """z of the target, by its own likelihood, is that of the reported effects."""
    frame = table()
    found = model("count ~ distance + (1 + distance | origin) + (1 | carrier)", "poisson")
    target = found.target
    levels = target.names.to_json()["names"]
    origin = np.array([levels["origin__factor_dim"].index(name) for name in frame.origin])
    carrier = [levels["carrier__factor_dim"].index(f"{each:.0f}") for each in frame.carrier]
    generator = np.random.default_rng(1)

    def at_random():
        position = jax.tree.map(
            lambda leaf: jnp.asarray(0.2 * generator.normal(size=np.shape(leaf)), jnp.float32),
            target.init,
        )
        named = target.transform(jax.tree.map(np.asarray, position))
        z = named["Intercept"] + named["distance"] * frame.distance
        z += named["1|origin"][origin] + named["distance|origin"][origin] * frame.distance
        z += named["1|carrier"][carrier]
        # up to a constant of each row
        ours = np.asarray(target.log_likelihoods(position, target.data))
        return ours - (frame["count"] * z - np.exp(z))

    np.testing.assert_allclose(at_random(), at_random(), atol=2e-3)


BROKEN = {
    "one level": ("late ~ (1 | one)", {}, "'one' has one level in all rows; leave it out"),
    "fractions": ("late ~ (1 | distance)", {}, "'distance' holds numbers with fractions"),
    "stranger": ("late ~ (1 | speed)", {}, "'speed' is none"),
    "outcome": ("late ~ (1 | late)", {}, "must not explain the outcome 'late' by itself"),
    "outcome varies": ("late ~ (late | origin)", {}, "must not explain the outcome"),
    "constant slope": ("late ~ (one | origin)", {}, "'one' has one level"),
    "twice": ("late ~ (1 | origin) + (distance | origin)", {}, "got '1|origin' twice"),
    "none fixed": ("late ~ 0 + (1 | origin)", {}, "at least one term on the right side"),
    "too many": ("late ~ (0 + C(day):C(month) | origin)", {}, "at most"),
    "family": ("late ~ (1 | origin)", {"family": "gamma"}, "family must be one of 'logistic'"),
    "classes": ("size ~ (1 | origin)", {"family": "softmax"}, "family must be one of 'logistic'"),
    "noise": ("delay ~ (1 | row)", {"family": "linear"}, "has one for each of the 300 rows"),
    "no shape": ("count ~ (1 | origin)", {"family": "negative_binomial"}, "dispersion must be"),
    "shape": ("late ~ (1 | origin)", {"dispersion": 2.0}, "dispersion must be given for neg"),
    "fixed shape": ("late ~ distance", {"dispersion": 2.0}, "dispersion must not be given"),
    "laplace": (
        "late ~ distance + (1 | origin)",
        {"priors": {"distance": "laplace(0, 1)"}},
        "priors must be normal or horseshoes for fixed terms beside random effects",
    ),
    "horseshoe of a scale": (
        "late ~ distance + (1 | origin)",
        {"priors": {"1|origin_sigma": "horseshoe(1)"}},
        "priors must be normal or student_t about zero for '1|origin_sigma'",
    ),
    "horseshoe of the intercept": (
        "late ~ distance + (1 | origin)",
        {"priors": {"Intercept, distance": "horseshoe(1)"}},
        "priors must not give a horseshoe to 'Intercept'",
    ),
    "scale": (
        "late ~ (1 | origin)",
        {"priors": {"1|origin_sigma": "normal(1, 1)"}},
        "priors must be normal or student_t about zero for '1|origin_sigma'",
    ),
    "kinds": (
        "late ~ (distance | origin)",
        {"priors": {"1|origin_sigma": "normal(0, 1)"}},
        "of one kind for effects that vary together",
    ),
    "prior of effects": (
        "late ~ (1 | origin)",
        {"priors": {"1|origin": "normal(0, 1)"}},
        "priors must speak of the terms 'Intercept', '1|origin_sigma', got '1|origin'",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_is_said(name):
    formula, options, words = BROKEN[name]
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the words are looked for below
        model(formula, **{"family": "logistic", **options})
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "formula", ["late ~ (1 || origin)", "late ~ (1 | distance)", "late ~ (1 | g)"]
)
def test_broken_formulas_are_one_line_of_the_command(formula, tmp_path, capsys):
    table().to_csv(tmp_path / "flights.csv", index=False)
    assert main(["fit", str(tmp_path / "flights.csv"), formula]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_missing_levels_are_counted_or_left_out():
    frame = table()
    frame.loc[[3, 5], "origin"] = None
    with pytest.raises(ValueError, match="2 in 'origin'; fill them in, or give drop_missing"):
        model("late ~ (1 | origin)", frame=frame)
    kept = model_of("late ~ (1 | origin)", read_table(frame), "logistic", None, True, None)
    assert kept.target.num_examples == NUM_ROWS - 2


def test_what_says_little_is_said():
    found = model("late ~ (0 + distance | carrier) + (1 | month)").terms.doubts
    assert any(said.startswith("Slopes about zero: 'distance' varies by") for said in found)
    assert any(said.startswith("Few groups: 'month' has 3 levels") for said in found)
    alike = table().assign(again=table().carrier + 1.0)
    found = model("late ~ (1 | carrier) + (1 | again)", frame=alike).terms.doubts
    assert any(said.startswith("Groups alike: 'again' and 'carrier'") for said in found)
    found = model("late ~ C(month) + (1 | month)").terms.doubts
    assert any(said.startswith("Group twice: 'month' is a fixed term too") for said in found)
    assert not model("late ~ distance + (distance | carrier)").terms.doubts


def test_levels_of_one_class_each_are_said():
    frame = table().assign(late=lambda rows: (rows.carrier > 3).astype(int))
    found = model("late ~ distance + (1 | carrier)", frame=frame).terms.doubts
    assert any(said.startswith("Separation: the outcome is the same in all") for said in found)
    frame.loc[0, "late"] = 1 - frame.loc[0, "late"]
    assert not model("late ~ distance + (1 | carrier)", frame=frame).terms.doubts


def test_a_given_prior_of_the_noise_is_that_of_the_reported_scale():
    """log p differs by a constant from the density that was asked for."""
    given = {"sigma": "student_t(4, 0.5, 0.7)"}
    target = model("delay ~ distance + (1 | origin)", "linear", priors=given).target
    usual = model("delay ~ distance + (1 | origin)", "linear").target
    differences = []
    for log_scale in (-1.0, 0.2, 1.5):
        at = {**target.init, "sigma": np.float32(log_scale)}
        sigma = float(target.transform(at)["sigma"])
        own = float(target.log_prior(at)) - float(usual.log_prior(at))
        own += float(usual.log_prior.noise(at["sigma"]))
        wanted = -2.5 * np.log1p(((sigma - 0.5) / 0.7) ** 2 / 4.0) + np.log(sigma)
        differences.append(own - wanted)
    np.testing.assert_allclose(differences, differences[0], atol=1e-3)
    assert "sigma ~ the positive half of student_t(4, 0.5, 0.7)" in " ".join(target.notes)


@pytest.mark.parametrize("kind", ["text", "parquet", "out of core"])
def test_tables_of_other_kinds_are_the_same(kind, tmp_path):
    frame = table().drop(columns=["day", "size"])
    formula = "late ~ distance + (1 + distance | origin) + (1 | origin:carrier)"
    wanted = model(formula, frame=frame).target
    options = {}
    if kind == "text":
        frame.to_csv(tmp_path / "a.csv", index=False)
        given = str(tmp_path / "a.csv")
    elif kind == "parquet":
        frame.to_parquet(tmp_path / "a.parquet")
        given = str(tmp_path / "a.parquet")
    else:
        given, options = frame, {"out_of_core": True}
    found = model(formula, frame=given, **options).target
    assert found.names == wanted.names
    for ours, theirs in zip(jax.tree.leaves(found.data), jax.tree.leaves(wanted.data), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("standardised", [True, False])
def test_given_priors_are_those_of_reported_coefficients(standardised):
    """log p differs by a constant from the densities that were asked for."""
    given = {
        "Intercept": "normal(1, 2)",
        "distance": "normal(0.1, 0.01)",
        "C(month)": "normal(0, 3)",
        "1|origin_sigma": "student_t(4, 0, 0.7)",
        "distance|origin_sigma": "student_t(4, 0, 0.02)",
    }
    frame = table() if standardised else table().assign(distance=table().distance / 1000.0 - 1.0)
    found = model("late ~ distance + C(month) + (distance | origin)", frame=frame, priors=given)
    target = found.target
    usual = model("late ~ distance + C(month) + (distance | origin)", frame=frame).target
    generator = np.random.default_rng(2)

    def at_random():
        position = jax.tree.map(
            lambda leaf: jnp.asarray(0.3 * generator.normal(size=np.shape(leaf)), jnp.float32),
            target.init,
        )
        named = target.transform(jax.tree.map(np.asarray, position))
        wanted = -0.5 * ((named["Intercept"] - 1.0) / 2.0) ** 2
        wanted += -0.5 * ((named["distance"] - 0.1) / 0.01) ** 2
        wanted += -0.5 * np.sum((named["C(month)"] / 3.0) ** 2)
        for name, scale in (("1|origin_sigma", 0.7), ("distance|origin_sigma", 0.02)):
            wanted += -2.5 * np.log1p((named[name] / scale) ** 2 / 4.0) + np.log(named[name])
        prior = target.log_prior
        same = dataclasses.replace(
            prior, fixed=usual.log_prior.fixed, factors=usual.log_prior.factors
        )
        # what both have in common is taken out
        own = usual.log_prior.fixed(position["theta"])
        scales = usual.log_prior.factors[0]
        own += jnp.sum(scales.of_scales(position[f"{scales.form.name}_sigma"]))
        return float(prior(position) - same(position) + own - wanted)

    differences = [at_random() for _ in range(4)]
    np.testing.assert_allclose(differences, differences[0], rtol=2e-4, atol=0.02)
    assert "1|origin_sigma ~ the positive half of student_t(4, 0, 0.7)" in " ".join(target.notes)
