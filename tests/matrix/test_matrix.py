"""Every part of the library with every other, through `amagold.sample`: it runs, says what it is,
and goes on where it stopped.
"""

import inspect
import itertools
import math

import cells
import numpy as np
import parts
import pytest
import xarray

import amagold

pytestmark = pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")

SELECTION = cells.selection()
REST = [cell for cell in cells.product() if cell not in set(SELECTION)]
NUM_SAMPLES = 6
UNEVEN = max(cells.CHAINS)  # on two devices the layout that asks the most; the others are slow


def test_the_matrix_knows_every_part():
    assert not parts.untaught(), "; ".join(parts.untaught())


@pytest.mark.parametrize("kind", ["sampler", "proposal", "test", "gradient", "batch plan"])
def test_a_new_part_is_asked_for(kind):
    found = parts.library_parts()
    found[kind] = [*found[kind], "brand_new"]
    assert parts.untaught(found) == [
        f"teach the matrix to build the {kind} 'brand_new': add it to tests/matrix/parts.py"
    ]


def test_every_argument_of_sample_is_used():
    used = {"target_or_sampler", "store"}.union(*(cell.arguments() for cell in SELECTION))
    for name in inspect.signature(amagold.sample).parameters:
        assert name in used, (
            f"teach the matrix to use sample({name}=...): add it to tests/matrix/cells.py"
        )


def test_the_selection_covers_every_part_with_every_number_of_chains():
    seen = set().union(*map(cells.pairs_of, SELECTION))
    for kind, names in (
        ("sampler", parts.SAMPLERS),
        ("test", parts.TESTS),
        ("gradient", parts.GRADIENTS),
    ):
        for name, chains in itertools.product(names, cells.CHAINS):
            assert (kind, name, chains) in seen
    for plan, chains in itertools.product(parts.PLANS - {"external"}, cells.CHAINS):
        assert ("plan", plan, chains) in seen
    for warmup, chains in itertools.product(cells.WARMUPS, cells.CHAINS):
        assert ("warmup", warmup, chains) in seen


@pytest.mark.slow
@pytest.mark.parametrize(
    "plans",
    [("", "iid", "external"), parts.PLANS],
    ids=["some", "all"],
)
def test_what_is_refused(plans):
    """The whole list: a combination that is refused beside these, or is refused no longer,
    fails.
    """
    seen = {}
    for combination in (found for found in cells.combinations() if found.plan in plans):
        sentence = None
        try:
            sampler = combination.build()
            if sampler.gradient.is_external:
                amagold.sample(sampler, 1, 0, 1, progress=False)
        except ValueError as reason:
            sentence = str(reason)
        expected = cells.refusal(combination)
        if expected is None:
            assert sentence is None, f"{combination} is refused: {sentence}"
        else:
            assert sentence is not None, f"{combination} is no longer refused"
            assert sentence.startswith(expected)
            seen.setdefault(expected, []).append(combination)
    assert len(seen) == 4
    assert sum(map(len, seen.values())) < len(cells.allowed())


def test_what_warmup_refuses():
    for sampler in parts.SAMPLERS:
        one_of_each = {}
        for combination in cells.allowed():
            if combination.sampler == sampler:
                one_of_each.setdefault(cells.warmup_refusal(combination, "adapted"), combination)
        for expected, combination in one_of_each.items():
            if expected is not None:
                arguments = {
                    **cells.WARMUPS["adapted"],
                    "init": np.zeros(2, np.float32),
                    "progress": False,
                }
                with pytest.raises(ValueError, match=f"^{expected}"):
                    amagold.sample(combination.build(), 1, num_chains=1, **arguments)


def test_what_needs_data_says_so():
    needs = set()
    for kind, table in (("acceptance", parts.TESTS), ("gradient", parts.GRADIENTS)):
        for name in table:
            given = table[name].build(
                *(["iid"] if kind == "gradient" and parts.has_plan(name) else [])
            )
            try:
                amagold.amagold(parts.dataless(), **parts.STEPS, **{kind: given})
            except ValueError as reason:
                needs.add(
                    (
                        name,
                        "needs a target with data (amagold.Posterior), got a Density; use"
                        in str(reason),
                    )
                )
    expected = {
        "austerity",
        "barker",
        "confidence",
        "delayed",
        "firefly",
        "tuna",
        "control_variate",
        "expansion",
        "minibatch",
    }
    assert needs == {(name, True) for name in expected}


class Questions:
    """Stands for `Stopper.reason`: counts how often it is asked, and gives a reason from some
    question on.
    """

    def __init__(self, before=math.inf):
        self.asked, self.before = 0, before

    def __call__(self, stopper):
        self.asked += 1
        return "out of time" if self.asked > self.before else None


def run_and_count(sampler, arguments, monkeypatch):
    """The whole run, and how often it asked whether to stop."""
    questions = Questions()
    with monkeypatch.context() as patch:
        patch.setattr("amagold.sampling._interruption.Stopper.reason", property(questions))
        return amagold.sample(sampler, **arguments), questions.asked


def run_in_two_parts(sampler, arguments, asked, folder, monkeypatch):
    """Stopped between two kept draws, and resumed once."""
    for count in reversed(range(asked)):
        path = folder / f"{count}.zarr"
        with monkeypatch.context() as patch:
            patch.setattr(
                "amagold.sampling._interruption.Stopper.reason", property(Questions(count))
            )
            part = amagold.sample(sampler, store=path, **arguments)
        if part.posterior.sizes["draw"] < NUM_SAMPLES:
            assert part.posterior.sizes["draw"] > 0, (
                "the run must be stopped between two kept draws"
            )
            assert part.is_partial
            return amagold.resume(path, sampler, progress=False, mesh=arguments.get("mesh"))
    raise AssertionError("the run was never stopped")


def told_by(run):
    """A row for each chain, and whether it shows its random numbers: where a proposal was accepted,
    or its ratio is a number. A test that rejects at its first look has none.
    """
    [draws] = run.posterior.data_vars.values()
    accepted = run.sample_stats["accepted"]
    ratios = run.sample_stats.get("energy_error", accepted).to_numpy().astype(float)
    rows = np.concatenate([draws.to_numpy().reshape(len(draws), -1), ratios], axis=1)
    return rows, accepted.any("draw").to_numpy() | np.isfinite(ratios).any(axis=1)


def check(cell, folder, monkeypatch):
    # so that there is something to stop between
    monkeypatch.setattr("amagold.runner._layout.MAX_CHUNK", 3)
    sampler, arguments = cell.combination.build(), cell.arguments()
    assert arguments["num_samples"] == NUM_SAMPLES
    whole, asked = run_and_count(sampler, arguments, monkeypatch)
    [(name, draws)] = whole.posterior.data_vars.items()
    assert draws.shape == (cell.num_chains, NUM_SAMPLES, 2), name
    assert np.isfinite(draws).all()
    assert np.isfinite(whole.sample_stats["acceptance_rate"]).all()
    assert whole.label.split(" ")[0] == cell.combination.label
    assert not whole.is_partial
    told, shows = told_by(whole)
    assert len(np.unique(told[shows], axis=0)) == shows.sum()
    resumed = run_in_two_parts(sampler, arguments, asked, folder, monkeypatch)
    assert not resumed.is_partial
    assert resumed.label == whole.label
    groups = ["posterior", "sample_stats", "warmup_sample_stats"]
    groups += ["warmup_posterior"] if cell.options.warmup == "kept" else []
    for group in groups:
        xarray.testing.assert_equal(getattr(resumed, group).load(), getattr(whole, group))
    other, also_shows = told_by(amagold.sample(sampler, **{**arguments, "seed": 4}))
    if (shows & also_shows).any():
        assert not np.array_equal(other, told)


def test_the_fast_cells_have_every_part():
    fast = set().union(*(cells.pairs_of(cell) for cell in SELECTION if cell.num_chains == UNEVEN))
    every = set().union(*map(cells.pairs_of, cells.product()))
    assert fast == {covered for covered in every if covered[-1] == UNEVEN}


@pytest.mark.parametrize(
    "cell",
    [
        pytest.param(
            cell, marks=() if cell.num_chains == UNEVEN else pytest.mark.slow, id=cell.name
        )
        for cell in SELECTION
    ],
)
def test_cell(cell, tmp_path, monkeypatch):
    check(cell, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("cell", REST, ids=lambda cell: cell.name)
def test_every_cell(cell, tmp_path, monkeypatch):
    check(cell, tmp_path, monkeypatch)


TARGETS = {"with data": parts.target, "without data": parts.dataless}
QUICK = {("with data", 1), ("with data", 5), ("without data", 2)}


@pytest.mark.parametrize(
    ("target", "num_chains"),
    [
        pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow)
        for case in itertools.product(TARGETS, cells.CHAINS)
    ],
)
def test_planned(target, num_chains):
    """A target alone, with all else left to the library."""
    whole = amagold.sample(TARGETS[target](), NUM_SAMPLES, 20, num_chains, progress=False)
    [draws] = whole.posterior.data_vars.values()
    assert draws.shape == (num_chains, NUM_SAMPLES, 2)
    assert np.isfinite(draws).all()
    assert whole.label == "exact"


def test_out_of_time_at_once(tmp_path):
    """`max_time` that is over before the first draw: nothing kept, all resumed."""
    sampler = amagold.amagold(parts.target(), **parts.STEPS, batch_size=4)
    arguments = {
        "num_samples": NUM_SAMPLES,
        "num_warmup": 2,
        "num_chains": 2,
        "init": np.zeros(2),
        "progress": False,
    }
    none = amagold.sample(sampler, **arguments, store=tmp_path / "run.zarr", max_time=1e-9)
    assert none.is_partial
    assert none.posterior.sizes["draw"] < NUM_SAMPLES
    resumed = amagold.resume(tmp_path / "run.zarr", sampler, progress=False)
    whole = amagold.sample(sampler, **arguments)
    xarray.testing.assert_equal(resumed.posterior.load(), whole.posterior)


def test_the_product_is_whole():
    found = cells.product()
    assert len(set(found)) == len(cells.allowed()) * len(cells.CHAINS)
    assert {cell.combination.test for cell in found} - {cells.OWN} == set(parts.TESTS)
