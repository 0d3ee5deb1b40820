"""Compiled programs are found again by other processes, and only where that is safe."""

import os
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.compilation_cache import compilation_cache

from amagold.core import program_cache
from amagold.core.program_cache import keep_programs, kept_programs

SETTINGS = (
    "jax_compilation_cache_dir",
    "jax_compilation_cache_max_size",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_enable_xla_caches",
)
HITS = "/jax/compilation_cache/cache_hits"
heard: list[str] = []
jax.monitoring.register_event_listener(lambda event, **details: heard.append(event))


@pytest.fixture
def as_installed(monkeypatch, tmp_path):
    """JAX without the cache that the tests have, and a home of our own."""
    before = {name: getattr(jax.config, name) for name in SETTINGS}
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(program_cache.VARIABLE, raising=False)
    monkeypatch.setattr(program_cache, "SHORTEST", 0.0)
    monkeypatch.setattr(program_cache, "_chosen", [])
    monkeypatch.setattr(sys, "platform", "linux")
    compilation_cache.reset_cache()
    yield tmp_path
    program_cache._set(before)


def compile_anew(number):
    """A program, compiled as in a process that has compiled nothing."""
    heard.clear()
    program = jax.jit(lambda x: jnp.sin(x) * number)
    assert program(2.0) == pytest.approx(float(jnp.sin(2.0)) * number)
    return heard.count(HITS)


def settings():
    return [getattr(jax.config, name) for name in SETTINGS]


def entries(folder):
    return [path for path in folder.rglob("*-cache") if path.name.startswith("jit__lambda")]


def test_a_program_is_found_again_and_jax_left_as_it_was(as_installed):
    before = settings()
    with kept_programs():
        with kept_programs():
            assert not compile_anew(3.25)
        assert compile_anew(3.25)
    assert settings() == before
    assert entries(as_installed)
    # outside of our calls nothing is looked for
    assert not compile_anew(3.25)


def test_a_cache_that_the_user_gave_jax_stays(as_installed, tmp_path):
    own = str(tmp_path / "own")
    jax.config.update("jax_compilation_cache_dir", own)
    before = settings()
    with kept_programs():
        assert settings() == before
    assert not (tmp_path / "amagold").exists()


@pytest.mark.parametrize("how", ["variable", "call", "jax"])
def test_it_can_be_switched_off(as_installed, monkeypatch, how):
    if how == "variable":
        monkeypatch.setenv(program_cache.VARIABLE, "off")
    elif how == "call":
        assert keep_programs(False) is None
    else:
        jax.config.update("jax_enable_compilation_cache", False)
    try:
        with kept_programs():
            compile_anew(4.25)
    finally:
        jax.config.update("jax_enable_compilation_cache", True)
    assert not entries(as_installed)


def test_folders_that_the_user_chooses(as_installed, monkeypatch, tmp_path):
    monkeypatch.setenv(program_cache.VARIABLE, str(tmp_path / "said"))
    said = keep_programs()
    assert said is not None
    assert said.parent == tmp_path / "said"
    chosen = keep_programs(tmp_path / "chosen")
    assert chosen is not None
    assert chosen.parent == tmp_path / "chosen"
    with kept_programs():
        assert jax.config.jax_compilation_cache_dir == str(chosen)
    assert (tmp_path / "chosen").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_folder_that_others_may_write_to_is_not_used(as_installed, mode):
    folder = keep_programs()
    assert folder is not None
    folder.chmod(mode)
    assert keep_programs() is None
    with kept_programs():
        assert jax.config.jax_compilation_cache_dir is None
        compile_anew(5.25)
    assert not entries(as_installed)
    with pytest.raises(ValueError, match="folder must be the user's own"):
        keep_programs(folder)


def test_nor_one_that_others_may_replace(as_installed):
    assert keep_programs() is not None
    (as_installed / "amagold").chmod(0o777)
    assert keep_programs() is None
    (as_installed / "amagold").chmod(0o1777)  # as /tmp is: nobody moves what is not theirs
    assert keep_programs() is not None


def test_nor_that_of_another_user(as_installed, monkeypatch):
    assert keep_programs() is not None
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    assert keep_programs() is None


def test_where_no_folder_can_be_made_nothing_is_kept(as_installed, monkeypatch):
    (as_installed / "amagold").write_text("a file")
    with kept_programs():
        assert not compile_anew(6.25)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", _nobody)
    assert keep_programs() is None


def _nobody():
    raise RuntimeError("Could not determine home directory.")


def test_spoilt_and_half_written_programs_do_no_harm(as_installed):
    with kept_programs():
        compile_anew(7.25)
    (entry,) = entries(as_installed)
    whole = entry.read_bytes()
    for spoilt in (b"", whole[:-20], whole[:50] + bytes(10) + whole[60:]):
        entry.write_bytes(spoilt)
        with kept_programs():  # warnings are errors here
            assert not compile_anew(7.25)
    # killed before the time of its last use was written: forgotten, and made again
    entry.with_name(entry.name.replace("-cache", "-atime")).unlink()
    with kept_programs():
        assert not entry.exists()
        compile_anew(7.25)
        assert compile_anew(7.25)


def test_without_locks_nothing_is_kept(as_installed, monkeypatch):
    class NoLock:
        def __init__(self, path, timeout):
            raise NotImplementedError("no flock here")

    monkeypatch.setattr(program_cache.filelock, "FileLock", NoLock)
    with kept_programs():
        assert jax.config.jax_compilation_cache_dir is None
