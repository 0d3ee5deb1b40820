"""Start local processes that run one script together: for trying, and for tests."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO

from amagold.processes._exchange import patience

ENDING = 30.0  # seconds beyond the processes' own patience, after which those left are ended
POLL = 0.1  # seconds between two looks


def launch(script: str, arguments: Sequence[str], num_processes: int) -> int:
    """Run the script in so many processes, and return an exit code: that of the first that fails.

    They meet here and not at one of themselves, so that any of them may end and the others are
    told which.
    """
    # JAX's own service; it has no public name
    from jax._src.lib import _jax  # pyright: ignore[reportPrivateImportUsage]

    address = f"127.0.0.1:{_free_port()}"
    service = _jax.get_distributed_runtime_service(address, num_processes)
    processes = [
        _start(script, arguments, address, number, num_processes) for number in range(num_processes)
    ]
    try:
        return _wait(processes)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        service.shutdown()


def _start(
    script: str, arguments: Sequence[str], address: str, number: int, count: int
) -> subprocess.Popen[bytes]:
    cores = max(1, (os.cpu_count() or 1) // count)
    process = subprocess.Popen(
        [
            *(sys.executable, "-u", "-m", "amagold.processes._member"),
            *(address, str(count), str(number), script, *arguments),
        ],
        env={"JAX_NUM_CPU_DEVICES": str(cores), **os.environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # Ctrl-C reaches them once, by the launcher
    )
    assert process.stdout is not None
    reader = threading.Thread(target=_repeat, args=(process.stdout, number), daemon=True)
    reader.start()
    process.reader = reader  # type: ignore[attr-defined]
    return process


def _repeat(lines: IO[bytes], number: int) -> None:
    """What a process says, with its number before each line."""
    for line in lines:
        sys.stdout.buffer.write(b"[%d] %s" % (number, line))
        sys.stdout.buffer.flush()


def _wait(processes: Sequence[subprocess.Popen[bytes]]) -> int:
    deadline, code = None, 0
    while True:
        try:
            found = [process.poll() for process in processes]
            if deadline is None and any(found):
                code = next(each for each in found if each)
                deadline = time.monotonic() + patience() + ENDING
            if all(each is not None for each in found):
                break
            if deadline is not None and time.monotonic() > deadline:
                break
            time.sleep(POLL)
        except KeyboardInterrupt:
            for process in processes:
                if process.poll() is None:
                    process.send_signal(signal.SIGINT)
    for process in processes:
        if process.poll() is not None:
            process.reader.join(ENDING)  # type: ignore[attr-defined]
    return code if code >= 0 else 128 - code


def _free_port() -> int:
    with socket.socket() as here:
        here.bind(("127.0.0.1", 0))
        return here.getsockname()[1]
