"""Programs of the library's own functions are found untraced by other processes, and only where
nothing else than what is named can have gone into them.
"""

import dataclasses
import functools
import hashlib
import json
import os
import pickle
import subprocess
import sys
import zlib
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from amagold.core import compiling, program_cache, program_files, program_words
from amagold.core.compiling import OFTEN, ONCE, jit
from amagold.core.program_cache import kept_programs
from amagold.core.program_words import UnknownDependencyError, words_of_program
from amagold.core.trees import record
from amagold.models._logistic import logistic
from amagold.models._noise_shapes import StudentT

MODULE = "amagold.core.compiling"  # as if a function of these tests were the library's own


def ours(function):
    function.__module__, function.__qualname__ = MODULE, function.__name__
    return function


TRACES = []


@ours
def double(x, times=2):
    TRACES.append(times)
    return jax.tree.map(lambda leaf: jnp.sin(leaf) * times, x)


@ours
def called_back(x):
    return jax.pure_callback(np.sin, jax.ShapeDtypeStruct((3,), np.float32), x)


class Pair(NamedTuple):
    one: float


@record(static=("name",))
class Named:
    name: str
    values: jax.Array


@pytest.fixture
def kept(monkeypatch, tmp_path):
    """Within a folder of our own, and without the cache that the tests have."""
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(program_cache.VARIABLE, raising=False)
    monkeypatch.setattr(program_cache, "_chosen", [])
    with kept_programs():
        yield program_cache.whole_programs()
    program_cache._set({"jax_compilation_cache_dir": before})


def as_in_a_new_process():
    """A program that nobody has traced; `TRACES` says with what it is."""
    jax.clear_caches()
    TRACES.clear()
    return jit(OFTEN, "times")(double)


def test_a_program_is_found_untraced(kept):
    x = jnp.arange(3.0)
    first = as_in_a_new_process()
    expected = first(x, times=3)
    assert TRACES == [3]
    assert len(list(kept.glob("*.program"))) == 1
    second = as_in_a_new_process()
    np.testing.assert_array_equal(second(x, 3), expected)
    np.testing.assert_array_equal(second(x + 1.0, times=3), jnp.sin(x + 1.0) * 3)
    assert TRACES == []
    # another static value, another shape and another type are other programs
    second(x)
    second(jnp.arange(4.0), 3)
    second(jnp.arange(3), 3)
    second(x, 3.0)
    assert list(map(str, TRACES)) == ["2", "3", "3", "3.0"]
    # and inside another program it is traced as ever
    np.testing.assert_allclose(jax.jit(lambda y: second(y, 3))(x), expected, rtol=1e-6)
    assert len(TRACES) == 5


def test_programs_over_devices_are_found(kept):
    mesh = Mesh(np.array(jax.devices()), ("chain",))
    x = jax.device_put(jnp.arange(4.0), NamedSharding(mesh, PartitionSpec("chain")))
    first = as_in_a_new_process()
    expected = first(x)
    second = as_in_a_new_process()
    found = second(x)
    assert TRACES == []
    assert found.sharding == expected.sharding
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("damage", [b"", b"spoilt", "shortened", "no program"])
def test_a_spoilt_program_is_compiled_again(kept, damage):
    x = jnp.arange(3.0)
    program = as_in_a_new_process()
    expected = program(x)
    (path,) = kept.glob("*.program")
    whole = path.read_bytes()
    if damage == "shortened":
        path.write_bytes(whole[:-7])
    elif damage == "no program":
        packed = zlib.compress(pickle.dumps(([0], False, b"nothing", None)))
        path.write_bytes(hashlib.sha256(packed).digest() + packed)
    else:
        path.write_bytes(damage)
    again = as_in_a_new_process()
    np.testing.assert_array_equal(again(x), expected)
    assert TRACES == [2]
    (path,) = kept.glob("*.program")
    third = as_in_a_new_process()
    np.testing.assert_array_equal(third(x), expected)
    assert TRACES == []


def test_a_program_that_calls_back_is_not_kept(kept):
    found = jit(ONCE)(called_back)(jnp.arange(3.0))
    np.testing.assert_allclose(found, np.sin(np.arange(3.0)), rtol=1e-6)
    assert not list(kept.glob("*.program"))


def test_those_used_longest_ago_go_first(kept):
    for age, name in enumerate("abc"):
        path = kept / f"{name}.program"
        kept.mkdir(exist_ok=True)
        path.write_bytes(bytes(100))
        os.utime(path, (1000.0 - age, 1000.0 - age))
    (kept / "left.partial").write_bytes(b"half")
    program_files._make_room(kept, 250)
    assert {path.name for path in kept.iterdir()} == {"a.program", "b.program"}


def test_programs_are_forgotten_together(kept):
    program = as_in_a_new_process()
    program(jnp.arange(3.0))
    assert any(compiling.PROGRAMS)
    compiling.forget_programs()
    assert not any(compiling.PROGRAMS)


def words(function=double, fixed=None, varying=None, level=ONCE):
    return words_of_program(
        function, {"times": 2} if fixed is None else fixed, varying or [jnp.arange(3.0)], level
    )


def test_everything_that_matters_has_its_word(monkeypatch):
    single = jax.device_put(jnp.arange(3.0), jax.devices()[0])
    there = jax.device_put(jnp.arange(3.0), jax.devices()[1])
    different = [
        words(),
        words(level=OFTEN),
        words(called_back),
        words(fixed={"times": 3}),
        words(fixed={"times": 2.0}),
        words(fixed={"times": True}),
        words(fixed={"times": "2"}),
        words(fixed={"times": (2,)}),
        words(fixed={"times": StudentT(4.0)}),
        words(fixed={"times": StudentT(5.0)}),
        words(fixed={"times": functools.partial(jnp.sin)}),
        words(fixed={"times": functools.partial(jnp.cos)}),
        words(varying=[jnp.arange(4.0)]),
        words(varying=[jnp.arange(3)]),
        words(varying=[np.arange(3.0)]),
        words(varying=[jnp.float32(1.0)]),
        words(varying=[jnp.multiply(1.0, 1)]),  # weakly typed
        words(varying=[1.0]),
        words(varying=[single]),
        words(varying=[there]),
        words(varying=[(jnp.arange(3.0),)]),
        words(varying=[{"a": jnp.arange(3.0)}]),
        words(varying=[{"b": jnp.arange(3.0)}]),
        words(varying=[jnp.arange(3.0), None]),
        words(varying=[jax.random.key(0)]),
    ]
    with jax.enable_x64(True):
        different.append(words())
    with jax.default_matmul_precision("highest"):
        different.append(words())
    program_words._words_of_process.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(program_words, "_source", lambda: "another release")
        different.append(words())
    program_words._words_of_process.cache_clear()
    assert len(different) == len(set(different))
    assert words() == different[0]


def test_a_whole_model_has_words():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(50, 2))
    one, other = (logistic(X, generator.random(50) < 0.5) for _ in range(2))
    assert words(varying=[one]) == words(varying=[other])
    assert words(varying=[one]) != words(varying=[logistic(X[:, :1], generator.random(50) < 0.5)])


class Callable:
    def __call__(self, x):
        return x


@dataclasses.dataclass(frozen=True)
class Settings:
    number: int = 2


@pytest.mark.parametrize(
    "unknown",
    [
        lambda x: x,
        test_a_whole_model_has_words,
        Callable(),
        Callable,
        Settings(),
        Pair(1.0),
        np.arange(3.0),
        object(),
        functools.partial(lambda x: x, 1.0),
        [lambda x: x],
        {"a": Settings()},
    ],
    ids=range(11),
)
def test_what_a_user_wrote_has_no_words(unknown):
    with pytest.raises(UnknownDependencyError):
        words(fixed={"times": unknown})


@pytest.mark.parametrize("tree", [Pair(1.0), Named("a", np.arange(3.0))], ids=["tuple", "record"])
def test_nor_have_trees_of_a_users_classes(tree):
    with pytest.raises(UnknownDependencyError):
        words(varying=[tree])


def test_nor_has_a_mesh_that_was_set_from_outside():
    mesh = jax.make_mesh((2,), ("chain",))
    with jax.set_mesh(mesh), pytest.raises(UnknownDependencyError):
        words()


def test_a_users_function_runs_and_is_not_kept(kept):
    program = jit(ONCE, "function")(ours_with_function)
    np.testing.assert_allclose(program(jnp.arange(3.0), lambda x: x + 1.0), [1.0, 2.0, 3.0])
    np.testing.assert_allclose(program(jnp.arange(3.0), lambda x: x + 2.0), [2.0, 3.0, 4.0])
    assert not kept.exists()


@ours
def ours_with_function(x, function):
    return function(x)


# every family and plan in one process: what is found must draw what would be compiled
PROCESS = """
import hashlib, json, warnings
import jax, numpy as np, amagold
warnings.simplefilter("ignore")
heard = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **details: heard.append(event)
)
draw = np.random.default_rng(0)
X = draw.normal(size=(3_000, 3)).astype(np.float32)
z = X @ np.array([0.5, -0.3, 0.2])
models = amagold.models
groups = draw.integers(0, 40, len(X))
targets = {
    "logistic": models.logistic(X, draw.random(len(X)) < 1 / (1 + np.exp(-z))),
    "linear": models.linear(X, z + draw.normal(size=len(X))),
    "robust": models.robust(X, z + draw.standard_t(4, len(X))),
    "poisson": models.poisson(X, draw.poisson(np.exp(z))),
    "softmax": models.softmax(X, draw.integers(0, 3, len(X))),
    "ordinal": models.ordinal(X, draw.integers(0, 3, len(X))),
    "double_well": models.double_well(),
    "mixed": models.mixed(X, draw.random(len(X)) < 0.5, {"1|g": groups}),
    "own": amagold.Posterior(
        lambda theta, row: -0.5 * (row["y"] - row["x"] @ theta) ** 2,
        lambda theta: -0.5 * theta @ theta,
        {"x": X, "y": z.astype(np.float32)},
        init=np.zeros(3),
    ),
}
found = {}
for name, target in targets.items():
    heard.clear()
    run = amagold.sample(target, 100, 200, 3, progress=False)
    draws = b"".join(run.posterior[each].to_numpy().tobytes() for each in sorted(run.posterior))
    found[name] = hashlib.sha256(draws).hexdigest(), heard.count(
        "/jax/core/compile/jaxpr_to_mlir_module_duration"
    )
print(json.dumps(found))
"""


@pytest.mark.slow
def test_a_second_process_traces_little_and_draws_the_same(tmp_path):
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_"))
    } | {"XDG_CACHE_HOME": str(tmp_path)}
    without, first, second = (
        json.loads(
            subprocess.run(
                [sys.executable, "-c", PROCESS],
                env=environment | more,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for more in ({program_cache.VARIABLE: "off"}, {}, {})
    )
    for name in without:
        assert without[name][0] == first[name][0] == second[name][0], name
    # of the library's own models only operations outside of programs are lowered again; a user's
    # functions are traced by every process
    for name in set(without) - {"own", "mixed"}:
        assert second[name][1] < without[name][1] / 2, name
    assert second["mixed"][1] < without["mixed"][1]
    assert second["own"][1] == first["own"][1] > 5
