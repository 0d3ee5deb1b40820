"""`amagold launch -n 4 script.py`: several processes on this machine run one script together."""


def run(script: str, arguments: list[str], number: int) -> int:
    """Start them, and return the exit code of the first that fails, or 0.

    Args:
      script: a Python file.
      arguments: the script's own.
      number: of processes.
    """
    from pathlib import Path

    from amagold.core import checks
    from amagold.processes._launch import launch

    checks.whole_number("-n", number, at_least=1, remedy="give the number of processes")
    if not Path(script).is_file():
        raise ValueError(f"SCRIPT must be a Python file, but {script!r} is none")
    return launch(script, arguments, number)
