# MuJoCo's bindings are compiled and carry no types: every name of theirs is Any.
from typing import Any

def __getattr__(name: str) -> Any: ...
