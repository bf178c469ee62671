"""What is compiled, and with which options."""

import subprocess
import sys
import textwrap
import threading

import jax
import jax.numpy as jnp
import pytest

from maxplore import stalls
from maxplore.compiling import OPTIONS, compiled
from tests.counting import compilations


@compiled
def doubled(x):
    return 2 * x


def test_inside_other_compiled_code_it_is_a_part_of_that_program():
    own = compiled(lambda x: doubled(x) + 1, filtered=False)
    assert own(jnp.ones(3)).tolist() == [3.0, 3.0, 3.0]
    assert jax.vmap(doubled)(jnp.ones((2, 3))).shape == (2, 3)
    assert float(jax.grad(lambda x: doubled(x))(1.0)) == 2.0
    assert jax.eval_shape(doubled, jnp.ones(3)).shape == (3,)
    with jax.ensure_compile_time_eval():
        assert float(doubled(jnp.float32(1))) == 2.0


def test_it_is_compiled_once_and_keeps_its_name():
    triple = compiled(lambda x: 3 * x)
    triple(jnp.ones(4))
    with compilations() as found:
        for _ in range(3):
            triple(jnp.zeros(4))
    assert not found
    assert doubled.__name__ == "doubled"


def test_what_was_given_to_be_used_up_is():
    add = compiled(lambda x: x + 1, filtered=False, donate_argnums=0)
    given = jnp.ones(3)
    assert add(given).tolist() == [2.0, 2.0, 2.0]
    assert given.is_deleted()


def test_a_call_is_watched_until_it_ends_even_if_it_fails():
    def failing(x):
        assert threading.get_ident() in stalls._under_way
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        compiled(failing)(jnp.ones(2))
    assert threading.get_ident() not in stalls._under_way


DUMP = """
    import jax.numpy as jnp
    from maxplore.compiling import compiled

    jnp.ones(3) + 1  # JAX has begun, by somebody else's code


    @compiled
    def product(x):
        return jnp.sin(x) @ x


    product(jnp.ones((4, 4)))
"""


def test_xla_itself_says_that_it_uses_the_other_scheduler(tmp_path):
    flags = f"--xla_dump_to={tmp_path} --xla_dump_hlo_module_re=.*product.*"
    code = [sys.executable, "-c", textwrap.dedent(DUMP)]
    subprocess.run(code, check=True, env={"PATH": "", "XLA_FLAGS": flags})
    (told,) = (path.read_text() for path in tmp_path.glob("*debug_options"))
    ((name, value),) = OPTIONS.items()
    assert f"{name}: {value}" in told
