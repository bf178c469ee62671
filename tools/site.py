"""What MkDocs is told besides mkdocs.yml: pages link to files of the repository, and the site has them too."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
BESIDES = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "examples/*.py",
    "examples/*.toml",
    "results/**/*.json",
    "results/**/*.png",
    "results/**/*.svg",
)
"""Files outside of docs/ that pages link to."""


def on_files(files: Files, config: Any) -> Files:
    """Add them, as if docs/ were the root of the repository."""
    for path in (path for pattern in BESIDES for path in sorted(ROOT.glob(pattern))):
        files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links out of docs/, or into it, stay within; blocks that are not run look like all others."""
    depth = page.file.src_uri.count("/")
    out = markdown.replace("](" + "../" * (depth + 1), "](" + "../" * depth).replace("](docs/", "](")
    return re.sub(r"^```python no-run$", "```python", out, flags=re.MULTILINE)
