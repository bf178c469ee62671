"""The site is built without a warning, has every public name, and fetches nothing from anywhere."""

import re
from pathlib import Path

import pytest

import maxplore
from maxplore import solvers, utilities

ROOT = Path(__file__).parents[1]
FETCHED = re.compile(r"""<(?:script|img|iframe|source|link)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//[^>]*>""")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """All of it, in a folder of its own. A broken link is a warning, and a warning is an error."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder


def test_no_page_fetches_anything_from_elsewhere(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        found = [tag for tag in FETCHED.findall(page.read_text()) if 'rel="canonical"' not in tag]
        assert not found, page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(\s*[\"']?(?:https?:)?//|@import\s+[\"']?(?:https?:)?//", sheet.read_text()), sheet


def test_links_lead_to_files_that_are_there(site):
    for page in sorted(site.rglob("*.html")):
        for link in re.findall(r'(?:src|href)="([^"#?]+)', page.read_text()):
            if not re.match(r"(?:[a-z]+:|//|/)", link):
                assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_every_public_name_is_in_the_reference(site):
    text = "".join(page.read_text() for page in sorted((site / "api").glob("*.html")))
    shown = {name.rpartition(".")[2] for name in re.findall(r'<h[23] id="(maxplore\.[\w.]+)"', text)}
    modules = {"devices", "envs", "solvers", "tasks", "utilities"}
    names = {*maxplore.__all__, *utilities.__all__, *solvers.__all__} - modules
    assert names <= shown, sorted(names - shown)
    assert "GROUP_BYTES" not in shown, "a module stands where a function of its name is meant"


def test_examples_in_docstrings_are_code(site):
    text = (site / "api" / "explorer.html").read_text()
    assert "&gt;&gt;&gt;" in text
    assert "<blockquote>" not in text
