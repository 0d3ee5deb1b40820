"""Code in the documents runs as it stands there, and the package stays light to import."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def python_blocks(name):
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), flags=re.DOTALL)


# fewer draws and rows than the documents have
SHORTER = {
    "num_samples=5_000": "num_samples=500",
    "thin=10": "thin=1",
    "num_samples=20_000": "num_samples=2_000",
    "1_000_000": "100_000",
}


WITH_EXAMPLES = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/interop.md",
    "docs/networks.md",
    "docs/samplers.md",
)
# a first posterior, a table, a sampler and a test of one's own
QUICK = {("README.md", 0), ("README.md", 3), ("CONTRIBUTING.md", 0), ("CONTRIBUTING.md", 2)}


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param(name, number, marks=() if (name, number) in QUICK else pytest.mark.slow)
        for name in WITH_EXAMPLES
        for number in range(len(python_blocks(name)))
    ],
)
def test_examples_run(name, number, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    block = python_blocks(name)[number]
    for long, short in SHORTER.items():
        block = block.replace(long, short)
    exec(compile(block, name, "exec"), {})
    if "print(" in block:
        assert capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(python_blocks("docs/sampling.md"))))
def test_examples_of_the_page_on_sampling_run(number, capsys):
    exec(compile(python_blocks("docs/sampling.md")[number], "docs/sampling.md", "exec"), {})
    assert "gap" in capsys.readouterr().out


def test_examples_are_found_and_shortened():
    readme = python_blocks("README.md")
    assert len(readme) >= 4
    assert len(python_blocks("CONTRIBUTING.md")) >= 3
    assert len(python_blocks("docs/sampling.md")) == 1
    assert len(python_blocks("docs/interop.md")) >= 3
    assert len(python_blocks("docs/networks.md")) >= 3
    for long in SHORTER:
        assert long in "".join(readme), f"{long!r} must be shortened"


def test_help_does_not_import_jax():
    code = (
        "import sys; from amagold_lab.cli import main\ntry: main(['--help'])\nexcept SystemExit: "
        "pass\nassert 'jax' not in sys.modules"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert "demo" in found.stdout
    assert "bench" in found.stdout
    assert "resume" in found.stdout


def test_import_brings_no_heavy_package():
    heavy = (
        "{'matplotlib', 'blackjax', 'numpyro', 'flax', 'equinox', 'rich', 'pandas', 'xarray', "
        "'zarr', 'arviz_stats', 'optax', 'scipy', 'jaxtyping', 'unittest', 'asyncio', "
        "'amagold.planning._plan'}"
    )
    code = (
        # JAX itself loads more where Flax is installed, whose paths (etils) it then uses
        "import sys, jax; there = set(sys.modules); import amagold; amagold.amagold, "
        "amagold.sample, amagold.from_numpyro, amagold.from_module, amagold.predict, "
        "amagold.last_layer; "
        f"assert not {heavy} & (set(sys.modules) - there)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("first", ["", "import jaxtyping; "], ids=["plain", "with jaxtyping"])
def test_every_file_loads_in_a_fresh_process(first):
    """Annotations are shapes where jaxtyping is loaded already, and plain arrays otherwise."""
    code = (
        f"{first}import importlib, pkgutil, sys, amagold\n"
        "found = list(pkgutil.walk_packages(amagold.__path__, 'amagold.'))\n"
        "for module in found: importlib.import_module(module.name)\n"
        "assert len(found) > 150 and ('jaxtyping' in sys.modules) == "
        f"{bool(first)}"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr


def test_every_public_name_is_there():
    import amagold

    for name in amagold.__all__:
        assert getattr(amagold, name) is not None
    with pytest.raises(AttributeError, match="amagolf"):
        getattr(amagold, "amagolf")  # noqa: B009
    assert set(amagold.__all__) <= set(dir(amagold))


def test_no_command_prints_help_and_a_bad_one_is_refused(capsys):
    from amagold_lab.cli import main

    assert main([]) == 0
    assert "demo" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        main(["dance"])
    assert stopped.value.code == 2
