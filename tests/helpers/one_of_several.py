"""What each of several processes runs, started by `amagold launch`: a small regression from parts
of a table, and ways to go wrong.
"""

import os
import signal
import sys
import threading
import time
import warnings

import jax
import numpy as np

import amagold

warnings.simplefilter("ignore", amagold.SamplingWarning)
what, folder, out, *rest = sys.argv[1:]
here, count = jax.process_index(), jax.process_count()


def table(path):
    part = (here, count) if count > 1 else None
    return amagold.models.logistic(amagold.data.open(path, part=part), outcome="y")


def save(run):
    found = {str(name): np.asarray(values) for name, values in run.posterior.data_vars.items()}
    np.savez(f"{out}-{here}.npz", **found)


def in_memory(different):
    x = np.arange(40, dtype=np.float32).reshape(20, 2) + (here if different else 0)
    return {"x": x, "z": x} if different == "columns" and here else {"x": x}


def small(data, init=0.0):
    return amagold.Posterior(
        lambda position, row: -0.5 * (row["x"].mean() - position) ** 2,
        lambda position: -0.5 * position**2,
        data,
        init=init,
    )


quick = {"num_samples": 50, "num_warmup": 50, "progress": False}
if what == "sample":
    save(amagold.sample(table(folder), 300, 200, progress=False))
elif what == "store":
    store, num_samples = rest[0], int(rest[1])
    if os.path.isdir(store):
        save(amagold.resume(store, table(folder), progress=False))
    else:
        save(amagold.sample(table(folder), num_samples, 200, progress=False, store=store))
elif what == "whole":  # the same arrays on all processes: only chains are spread
    save(amagold.sample(small(in_memory(None)), **quick))
elif what == "full test":
    # every process gives the same rows as its part: as many times as there are processes
    rows = in_memory(None)
    if count == 1:
        rows = {"x": np.concatenate([rows["x"]] * int(rest[0]))}
    target = small(amagold.data.part(rows))
    save(amagold.sample(amagold.hmc(target, step_size=0.2, num_steps=3), **quick))
elif what == "other seed":
    amagold.sample(small(in_memory(None)), seed=here, **quick)
elif what == "other data":
    amagold.sample(small(in_memory("numbers")), **quick)
elif what == "other columns":
    amagold.data.part(in_memory("columns"))
elif what == "other model":
    scale = 1.0 + here
    target = amagold.Posterior(
        lambda position, row: -0.5 * scale * (row["x"].mean() - position) ** 2,
        lambda position: -0.5 * position**2,
        in_memory(None),
        init=0.0,
    )
    amagold.sample(target, **quick)
elif what == "uneven":
    amagold.data.part({"x": np.zeros((10 if here else 30, 2), np.float32)})
elif what == "wrong part":
    amagold.data.open(folder, part=(0, count))
elif what == "fails":
    amagold.data.open(folder if here == 0 else f"{folder}-missing", part=(here, count))
elif what in ("dies", "hangs"):
    if here == 1:
        number = signal.SIGKILL if what == "dies" else signal.SIGSTOP
        pause = float(rest[0])
        threading.Thread(
            target=lambda: (time.sleep(pause), os.kill(os.getpid(), number)), daemon=True
        ).start()
    amagold.sample(table(folder), 2_000_000, 200, progress=False)
