"""The page around it all: nothing that a stranger wrote becomes markup, and nothing on it can ask the network."""

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Any


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], kind: str = "") -> str:
    """Cells of text."""
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    top = f"<thead><tr>{head}</tr></thead>" if heads else ""
    return f'<div class="scroll"><table class="{kind}">{top}<tbody>{body}</tbody></table></div>'


def folded(title: str, inside: str) -> str:
    """Something that is there for whoever wants to see it."""
    return f"<details><summary>{escape(title)}</summary>{inside}</details>"


def figure(title: str, inside: str, below: str = "", kind: str = "") -> str:
    """A graphic under its title; `inside` and `below` are markup."""
    return f'<figure class="{kind}"><figcaption>{escape(title)}</figcaption>{inside}{below}</figure>'


def embedded(name: str, value: Any) -> str:
    """Data for the script, in a block that nothing in it can end."""
    plain = json.dumps(value, allow_nan=False, separators=(",", ":"))  # all but ASCII is escaped, U+2028 too
    for character in "<>&":
        plain = plain.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{escape(name)}">{plain}</script>'


def document(title: str, main: str, *, version: str = "") -> str:
    """The whole page. With a `version` it asks where it came from, and nobody else, for a newer one."""
    style, script = (files("maxplore.report").joinpath(name).read_text() for name in ("page.css", "page.js"))
    policy = (
        f"default-src 'none'; style-src {_allowed(style)}; script-src {_allowed(script)}; img-src data:; "
        f"media-src data:; connect-src {chr(39)}{'self' if version else 'none'}{chr(39)}; base-uri 'none'; "
        "form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{style}</style></head>"
        f'<body data-version="{escape(version)}">{main}<script>{script}</script></body></html>\n'
    )


def _allowed(text: str) -> str:
    """What a policy calls exactly this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
