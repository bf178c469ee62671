"""Small programs that may lock up under XLA's concurrency-optimised scheduler of the CPU, for a report to XLA.

    python benchmarks/lockup.py [--patience 20] [--out results/benchmarks/lockup.json]

Each program runs in processes of its own, under the usual scheduler and under the memory-optimised one. A process whose
threads were all asleep whenever it was looked at, for `--patience` seconds, is stuck, and is ended. Nothing of maxplore
is needed for programs but the last, which is maxplore's own: the probe policies of the preset `tasks`.

With jaxlib 0.10.2 on 2 cores of an AMD EPYC (Zen 5), twice each: under the usual scheduler the last was stuck twice
and all others returned. It is not cut down yet.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

START = """
import sys
import jax, jax.numpy as jnp
options = {"xla_cpu_scheduler_type": sys.argv[1]} if sys.argv[1] != "usual" else None
"""

PROGRAMS = {
    "two loops that need not wait for each other": """
        @lambda f: jax.jit(f, compiler_options=options)
        def program(x, y):
            def loop(x):
                return jax.lax.fori_loop(0, 1000, lambda _, x: jnp.tanh(x @ x), x)
            return loop(x), loop(y)

        for _ in range(20):
            jax.block_until_ready(program(jnp.ones((64, 64)), jnp.ones((64, 64))))
    """,
    "a loop of five products side by side": """
        @lambda f: jax.jit(f, compiler_options=options)
        def program(weights, x):
            def step(_, x):
                return sum(jnp.tanh(x @ weight) for weight in weights) / 5
            return jax.lax.fori_loop(0, 2000, step, x)

        for _ in range(10):
            jax.block_until_ready(program([jnp.ones((128, 128)) / 128] * 5, jnp.ones((32, 128))))
    """,
    "the gradient through a batch of walks, in a loop": """
        @lambda f: jax.jit(f, compiler_options=options)
        def program(weights, x):
            def total(weights, x):
                def step(x, key):
                    parts = [jnp.tanh(x @ weight) for weight in weights]
                    noise = jax.random.normal(key, x.shape)
                    x = sum(parts) / 5 + 0.1 * noise
                    return x, jnp.sum(jnp.var(jnp.stack(parts), axis=0))
                return jnp.sum(jax.lax.scan(step, x, jax.random.split(jax.random.key(0), 25))[1])

            def update(_, weights):
                return jax.tree.map(lambda w, g: w - 1e-4 * g, weights, jax.grad(total)(weights, x))

            return jax.vmap(lambda x: jax.lax.fori_loop(0, 100, update, weights), in_axes=0)(x)

        for _ in range(2):
            jax.block_until_ready(program([jnp.ones((64, 64)) / 64] * 5, jnp.ones((3, 32, 64))))
    """,
    "maxplore: probe policies of a Half Cheetah": """
        import equinox as eqx
        import numpy as np
        from maxplore import ExplorationMDP, GaussianConfig, GaussianEnsemble, History
        from maxplore.explorers.dreams import boldest, dream_mdp, dreamer, records

        rng = np.random.default_rng(0)
        states = rng.normal(size=(257, 19)).astype(np.float32)
        history = History.continuous(19, 6).append(states[:-1], rng.uniform(-1, 1, (256, 6)), states[1:])
        ensemble = GaussianEnsemble(19, 6, GaussianConfig(), key=jax.random.key(0)).adapted(history)
        own = dreamer(100, 100), dream_mdp(ensemble, history, None), records(ensemble, history, 100)
        program = eqx.filter_jit(boldest, compiler_options=options)
        jax.block_until_ready(program(*own, jnp.zeros(19), key=jax.random.key(1)).promise)
    """,
}
"""Two or three loops, batches and gradients: what maxplore's programs are made of."""


def tried(program: str, scheduler: str, patience: float) -> dict[str, Any]:
    """One process: how long it took, or after how long it was stuck."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("XLA_", "JAX_"))}
    code = START + textwrap.dedent(program)
    begin = awake = time.monotonic()
    process = subprocess.Popen([sys.executable, "-c", code, scheduler], env=environment)
    while process.poll() is None:
        time.sleep(0.2)
        now = time.monotonic()
        if at_work(process.pid):
            awake = now
        if now > awake + patience:
            process.kill()
            process.wait()
            return {"outcome": "stuck", "after": round(awake - begin, 1)}
    outcome = "returned" if process.returncode == 0 else f"failed ({process.returncode})"
    return {"outcome": outcome, "after": round(time.monotonic() - begin, 1)}


def at_work(pid: int) -> bool:
    """Whether a thread of a process runs, or waits for a processor or a disk."""
    for task in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(OSError):  # it has just ended
            if task.read_text().rpartition(")")[2].split()[0] in "RD":
                return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--patience", type=float, default=20.0)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks/lockup.json"))
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name, program in PROGRAMS.items():
        for scheduler in ("usual", "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"):
            for _ in range(asked.times):
                rows.append({"program": name, "scheduler": scheduler, **tried(program, scheduler, asked.patience)})
                print(json.dumps(rows[-1]), flush=True)
    result = {
        "what": "programs in processes of their own; stuck is: all threads asleep, for good",
        "command": f"python benchmarks/lockup.py {' '.join(sys.argv[1:])}".strip(),
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "jaxlib": version("jaxlib")},
        "runs": rows,
    }
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
