"""Notes each program that JAX has compiled, or takes from its cache, in a Python process with this folder in its path.

A line of JSON each, in the file that COMPILED names: the program's name, and the options that were given for it alone.
"""

import json
import os
from typing import Any

from jax._src import compiler

_compiled = compiler.compile_or_get_cached


def _noted(backend: Any, module: Any, devices: Any, options: Any, *given: Any, **named: Any) -> Any:
    name = str(module.operation.attributes["sym_name"]).strip('"').removeprefix("jit_")
    with open(os.environ["COMPILED"], "a") as file:
        file.write(json.dumps([name, dict(options.env_option_overrides)]) + "\n")
    return _compiled(backend, module, devices, options, *given, **named)


compiler.compile_or_get_cached = _noted
