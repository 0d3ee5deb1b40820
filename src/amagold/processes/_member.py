"""One of the processes that `amagold launch` starts: it joins the others, then runs the script."""

import os
import runpy
import socket
import sys


def _take_share(number: int, count: int) -> None:
    """This process's share of the cores, before XLA starts a thread for each that it sees."""
    if not hasattr(os, "sched_setaffinity"):
        return
    cores = sorted(os.sched_getaffinity(0))
    own = cores[number * len(cores) // count : (number + 1) * len(cores) // count]
    os.sched_setaffinity(0, own or {cores[number % len(cores)]})


def main(address: str, count: str, number: str, script: str, *arguments: str) -> None:
    _take_share(int(number), int(count))
    import jax

    with socket.socket() as here:
        # the first process starts a service of its own at the address it is given, beside the one
        # that all of them meet at
        here.bind(("127.0.0.1", 0))
        unused = f"127.0.0.1:{here.getsockname()[1]}"
    jax.distributed.initialize(address, int(count), int(number), coordinator_bind_address=unused)
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))  # as Python itself would have it
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
