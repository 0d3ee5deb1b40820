"""Compiled programs are kept on disk, so that a second process need not compile them again.

JAX does the keeping (its persistent compilation cache) of small programs and of those with a user's
functions; the library's own are kept whole (`program_files`). Both within this library's calls
alone, and never where the user has chosen a folder of their own.
"""

import contextlib
import hashlib
import os
import platform
import stat
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import filelock
import jax
from jax.experimental.compilation_cache import compilation_cache

VARIABLE = "AMAGOLD_PROGRAM_CACHE"  # "off", or a folder
OFF = ("off", "0", "no", "false")
MOST_BYTES = 2**28  # kept, half of it by JAX: those used longest ago go first
WHOLE = "whole"  # the folder of whole programs
# seconds: what compiles faster is not worth a file
SHORTEST = 0.02
PROBLEMS = "Error (reading|writing) persistent compilation cache"
PATIENCE = 1.0  # seconds for the lock of another process

_chosen: list[Path | None] = []  # by `keep_programs`; empty if it was not called
_guard = threading.RLock()
_depth = [0]
_in_use: list[Path] = []  # where whole programs are kept now


def keep_programs(folder: str | os.PathLike[str] | bool = True) -> Path | None:
    """Choose where compiled programs are kept between processes.

    Without a call they are kept in the user's cache folder, or as the environment variable
    AMAGOLD_PROGRAM_CACHE says (`off`, or a folder). A cache that JAX itself was given
    (`JAX_COMPILATION_CACHE_DIR`) is used as it is.

    Compiled programs are run as they are found. The folder must therefore be the user's own, and
    closed to others for writing.

    Args:
      folder: a folder; True for the usual one, False for none.

    Returns:
      The folder, or None where nothing is kept.
    """
    if isinstance(folder, bool):
        _chosen[:] = [] if folder else [None]
        return _usable(_wanted())
    path = _usable(Path(folder).expanduser() / _machine())
    if path is None:
        raise ValueError(
            f"folder must be the user's own and closed to others for writing, got "
            f"{str(folder)!r}; choose another, or make it so with chmod 700"
        )
    _chosen[:] = [path]
    return path


@contextlib.contextmanager
def kept_programs() -> Iterator[None]:
    """Within this, JAX looks for compiled programs in the folder, and keeps new ones there."""
    with _guard:
        _depth[0] += 1
        settings = _switch_on() if _depth[0] == 1 else None
    try:
        with warnings.catch_warnings():
            # a program that cannot be read is compiled, and one that cannot be kept is not
            warnings.filterwarnings("ignore", message=PROBLEMS)
            yield
    finally:
        with _guard:
            _depth[0] -= 1
            if settings is not None:
                _in_use.clear()
                _set(settings)


def whole_programs() -> Path | None:
    """The folder of whole programs, within `kept_programs`; None where none are kept."""
    return _in_use[0] if _in_use and jax.process_count() == 1 else None


@contextlib.contextmanager
def without_jax_keeping() -> Iterator[None]:
    """Within this JAX compiles anew: what it has read from its cache cannot be written again."""
    with _guard:
        before = {"jax_enable_compilation_cache": _setting("jax_enable_compilation_cache")}
        _set({"jax_enable_compilation_cache": False})
        try:
            yield
        finally:
            _set(before)


def _switch_on() -> dict[str, object] | None:
    """What JAX was set to before, or None where nothing was changed."""
    has_own = bool(_setting("jax_compilation_cache_dir"))
    if has_own or not _setting("jax_enable_compilation_cache"):
        return None
    folder = _usable(_wanted())
    if folder is None or not _tidy(folder):
        return None
    wanted: dict[str, object] = {
        "jax_compilation_cache_dir": str(folder),
        "jax_compilation_cache_max_size": MOST_BYTES // 2,
        "jax_persistent_cache_min_compile_time_secs": SHORTEST,
        # XLA's own files for GPUs are not bounded in size
        "jax_persistent_cache_enable_xla_caches": None,
    }
    before = {name: _setting(name) for name in wanted}
    _set(wanted)
    _in_use[:] = [folder / WHOLE]
    return before


def _setting(name: str) -> object:
    return getattr(jax.config, name)


def _set(settings: dict[str, object]) -> None:
    for name, value in settings.items():
        jax.config.update(name, value)
    # JAX looks at its settings when it first compiles, and not again
    compilation_cache.reset_cache()


def _wanted() -> Path | None:
    """Where programs should be kept."""
    if _chosen:
        return _chosen[0]
    said = os.environ.get(VARIABLE, "")
    if said.strip().lower() in OFF:
        return None
    try:
        base = Path(said).expanduser() if said.strip() else _cache_folder() / "programs"
    except RuntimeError:  # nobody's home is known
        return None
    return base / _machine()


def _cache_folder() -> Path:
    """As the platform has it."""
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "amagold" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "amagold"
    given = os.environ.get("XDG_CACHE_HOME", "")
    # a relative one must be ignored, by the XDG rules
    return (Path(given) if os.path.isabs(given) else Path.home() / ".cache") / "amagold"


def _machine() -> str:
    """Of the processor's kind: a home may be shared by machines that do not know the same
    instructions.
    """
    kind = platform.processor()
    with contextlib.suppress(OSError):  # Linux says more
        lines = set(Path("/proc/cpuinfo").read_text(errors="replace").splitlines())
        said = "flags", "Features", "model name"
        kind = "".join(sorted(line for line in lines if line.startswith(said)))
    return f"{platform.machine()}-{hashlib.sha256(kind.encode()).hexdigest()[:12]}"


def _usable(folder: Path | None) -> Path | None:
    """The folder, made if need be, if nobody else can write there and we can."""
    if folder is None:
        return None
    try:
        folder = folder.resolve()
        for each in (*reversed(folder.parents), folder):
            if not each.exists():
                each.mkdir(mode=0o700, exist_ok=True)
        is_ours = sys.platform == "win32" or (_is_private(folder) and _is_guarded(folder))
        return folder if is_ours and os.access(folder, os.W_OK | os.X_OK) else None
    except OSError:
        return None


def _is_private(folder: Path) -> bool:
    found = folder.stat()
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_guarded(folder: Path) -> bool:
    """Whether no stranger can put another folder in its place."""
    for parent in folder.parents:
        found = parent.stat()
        may_write = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        is_open = may_write and not found.st_mode & stat.S_ISVTX
        if is_open or found.st_uid not in (0, os.getuid()):
            return False
    return True


def _tidy(folder: Path) -> bool:
    """Remove what a process that was killed has left half-written; False where files cannot be
    locked here, without which JAX bounds no sizes.

    JAX writes the time of last use after the program itself, so a program without is not whole.
    """
    try:
        with filelock.FileLock(folder / ".lockfile", timeout=PATIENCE):
            names = {entry.name for entry in os.scandir(folder)}
            for name in names:
                kind = name.removesuffix("-cache")
                if kind != name and f"{kind}-atime" not in names:
                    (folder / name).unlink(missing_ok=True)
                kind = name.removesuffix("-atime")
                if kind != name and f"{kind}-cache" not in names:
                    (folder / name).unlink(missing_ok=True)
    except (OSError, NotImplementedError):  # the lock's Timeout is an OSError too
        return False
    return True
