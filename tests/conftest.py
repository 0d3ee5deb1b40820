"""Two host devices, as on a small machine, so that chains spread over devices are tested
everywhere.
"""

import collections
import gc
import itertools
import os
from pathlib import Path

# the suite compiles much and runs little: the tests' own programs with the library's options
# (once: a worker has the flags from its parent)
os.environ["XLA_FLAGS"] = " ".join(
    dict.fromkeys(
        [
            *os.environ.get("XLA_FLAGS", "").split(),
            "--xla_backend_optimization_level=1",
            "--xla_cpu_use_fusion_emitters=false",
        ]
    )
)

# compiled programs are shared by the workers, the processes that tests start, and the next run
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(
    Path(__file__).parent.parent / ".pytest_cache" / "programs"
)
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.05"
os.environ["JAX_COMPILATION_CACHE_MAX_SIZE"] = str(2**30)

# before anything else: `sample` loads it in a thread of its own, and Python 3.11 does not parse two
# modules at a time (the shape checks parse what they check)
import arviz_stats  # noqa: F401
import jax
import jaxtyping
import pytest
import shape_checks

shape_checks.install()

# folders whose tests check all annotations
CHECKED = {*shape_checks.ROOMS, "house", "matrix", "samplers"}
# bytes, above which compiled programs are given up: thousands of tests have each their own
MOST_RESIDENT, MORE_RESIDENT = 3 * 2**30, 2**30
# Linux allows a process 65,530 of them, and the compiler crashes where it gets no more
MOST_MAPS, TESTS_BETWEEN_COUNTS = 40_000, 16

jax.config.update("jax_num_cpu_devices", 2)
# programs of thousands of tests are looked through for garbage each time
gc.set_threshold(200_000, 20, 50)


@pytest.fixture(autouse=True)
def unexpected_warnings_fail(monkeypatch):
    """`amagold.sample` prints its warnings where they are errors; a test that expects none has to
    see them.
    """

    def fail(error):
        raise error

    monkeypatch.setattr("amagold.sampling._advice._instead_of_raising", fail)


@pytest.fixture(autouse=True)
def shapes_are_checked_where_they_are_made(request):
    """By the tests of the numerical rooms and of what is built of them, and by all slow ones:
    checks take a sixth of the time, and the other fast tests call the same functions.
    """
    room = request.path.relative_to(Path(__file__).parent).parts[0]
    is_checked = room in CHECKED or request.node.get_closest_marker("slow") is not None
    jaxtyping.config.update("jaxtyping_disable", not is_checked)


@pytest.fixture
def unchecked(shapes_are_checked_where_they_are_made):
    """Wrong types come through, as they do for a user, who gets a sentence."""
    jaxtyping.config.update("jaxtyping_disable", True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """`few(n)`: of a test's cases that are not slow already, n stay in `make test`."""
    seen = collections.Counter()
    for item in items:
        few = item.get_closest_marker("few")
        if few is None or item.get_closest_marker("slow") is not None:
            continue
        function = item.nodeid.split("[")[0]
        seen[function] += 1
        if seen[function] > few.args[0]:
            item.add_marker(pytest.mark.slow)


_allowed = [MOST_RESIDENT]
_tests_run = itertools.count(1)


@pytest.fixture(autouse=True)
def programs_are_given_up_in_time():
    yield
    # counting the maps of a process with many takes long
    is_time_to_count = next(_tests_run) % TESTS_BETWEEN_COUNTS == 0
    if _resident() > _allowed[0] or (is_time_to_count and _num_maps() > MOST_MAPS):
        jax.clear_caches()
        # what is given up may stay with the process: the next time is when it has grown again
        _allowed[0] = max(MOST_RESIDENT, _resident() + MORE_RESIDENT)


def _num_maps() -> int:
    """Pieces of memory that are mapped, several for each program, where Linux says so."""
    maps = Path("/proc/self/maps")
    return maps.read_bytes().count(b"\n") if maps.exists() else 0


def _resident() -> int:
    """Bytes of memory, where Linux says so."""
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if pages.exists() else 0
