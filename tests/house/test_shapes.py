"""The shapes that annotations of the numerical core promise are checked while the tests run."""

import importlib
import pkgutil
from pathlib import Path

import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
import shape_checks

from amagold import gradients
from amagold.acceptance._alias_table import AliasTable, alias_table
from amagold.energy._remembered_energy import DensityMemory, energy_of
from amagold.mode._newton import moved
from amagold.mode._reference import Reference
from amagold.trajectory import Leapfrog, Phase, _kick
from amagold.trajectory._mass_matrix import ScalarMass

# without the checks all of these would broadcast, and go on with numbers that mean nothing
WRONG = {
    "energy": lambda: energy_of(DensityMemory(jnp.zeros(2))),
    "mode": lambda: moved(np.zeros(3), np.zeros((1, 3))),
    "gradients": lambda: gradients.minibatch(2).arrange(jnp.array([True, False]), jnp.ones((2, 2))),
    "trajectory": lambda: _kick.kick(jnp.ones(3), jnp.ones(1), (), 0.1, None),
    "acceptance": lambda: alias_table(np.ones(3)).pick(jnp.zeros(3, jnp.int32), jnp.ones(1)),
    "records": lambda: AliasTable(jnp.ones(3), jnp.zeros(1, jnp.int32)),
    "shared axes": lambda: Reference(jnp.zeros(3), jnp.zeros(3), jnp.zeros((3, 1))),
    "fields": lambda: _leapfrog().reverse(Phase(jnp.zeros(3), jnp.zeros(1))),
    "forms": lambda: _leapfrog().mass.check({"a": jnp.zeros(2, int)}),
}


def _leapfrog():
    return Leapfrog(0.1, 0.5, ScalarMass(jnp.float32(1.0)))


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_shape_is_noticed(name):
    with pytest.raises(jaxtyping.TypeCheckError):
        WRONG[name]()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", WRONG)
def test_what_nobody_checks_goes_on(name):
    """Else the errors above would say nothing about the annotations."""
    WRONG[name]()


@pytest.mark.parametrize("room", shape_checks.ROOMS)
def test_every_file_of_the_core_is_checked(room):
    package = importlib.import_module(f"amagold.{room}")
    names = [found.name for found in pkgutil.iter_modules(package.__path__, f"amagold.{room}.")]
    assert names
    for name in [package.__name__, *names]:
        loader = importlib.import_module(name).__loader__
        assert type(loader).__module__.startswith("jaxtyping"), f"{name} was loaded by {loader}"


@pytest.mark.parametrize(
    ("written", "planted"),
    [
        ("noise: Position | tuple[()]", "noise: Position"),
        ("-> tuple[Position, Scalar]", "-> tuple[Scalar, Scalar]"),
        ("force: Position", "force: Scalar"),
        ("friction: Number | None", "friction: Number"),
    ],
)
def test_a_wrong_annotation_is_noticed(written, planted, tmp_path, monkeypatch):
    source = Path(_kick.__file__).read_text()
    assert written in source
    (tmp_path / "right.py").write_text(source)
    (tmp_path / "wrong.py").write_text(source.replace(written, planted))
    monkeypatch.syspath_prepend(tmp_path.parent)
    with jaxtyping.install_import_hook(tmp_path.name, "shape_checks.checked"):
        right, wrong = (
            importlib.import_module(f"{tmp_path.name}.{name}") for name in ("right", "wrong")
        )
    arguments = (jnp.ones(3), jnp.ones(3), (), 0.1, None)
    right.kick(*arguments)
    with pytest.raises(jaxtyping.TypeCheckError):
        wrong.kick(*arguments)
