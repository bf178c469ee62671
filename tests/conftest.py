"""Shapes and types are checked, warnings are errors (pyproject.toml), ranks never promote silently."""

import jax
from jaxtyping import install_import_hook

jax.config.update("jax_numpy_rank_promotion", "raise")
install_import_hook("maxplore", "beartype.beartype")
