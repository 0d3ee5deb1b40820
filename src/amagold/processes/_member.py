"""One of the processes that `amagold launch` starts: it joins the others, then runs the script."""

import runpy
import socket
import sys


def main(address: str, count: str, number: str, script: str, *arguments: str) -> None:
    import jax

    with socket.socket() as here:
        # the first process starts a service of its own at the address it is given, beside the one
        # that all of them meet at
        here.bind(("127.0.0.1", 0))
        unused = f"127.0.0.1:{here.getsockname()[1]}"
    jax.distributed.initialize(address, int(count), int(number), coordinator_bind_address=unused)
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
