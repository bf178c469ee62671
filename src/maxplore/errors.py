"""The one error that means: what you gave cannot be used, and here is what to do."""


class InputError(ValueError):
    """Bad input, told in one line: which argument, what was expected, what came, what to do."""

    def __init__(self, reason: str) -> None:
        super().__init__(" ".join(reason.split()))  # arrays and spaces print themselves over many lines
