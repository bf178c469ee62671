"""Long compiled work in pieces, so that it can be told how far it is. What comes of it does not depend on them."""

import time
from collections.abc import Callable

Tell = Callable[[str, int, int, float | None], None]
"""Says what is being done, how much of it is done, of how much, and the return that is expected so far, if any is."""


def quietly(doing: str, done: int, of: int, expects: float | None = None) -> None:
    """A `Tell` that says nothing."""


def in_pieces(advance: Callable[[int], bool]) -> None:
    """Call `advance` with how many rounds to do next, about half a second's worth, while there are more."""
    rounds = 1
    while True:
        begun = time.monotonic()
        if not advance(rounds):
            return
        took = time.monotonic() - begun
        if took < 0.25:
            rounds *= 2
        elif took > 1:
            rounds = max(1, rounds // 2)
