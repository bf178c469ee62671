"""The examples in docstrings and on the pages run and say what they say."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import maxplore

MODULES = ["maxplore", *(m.name for m in pkgutil.walk_packages(maxplore.__path__, "maxplore."))]


@pytest.mark.parametrize("name", MODULES)
def test_examples_hold(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_there_are_examples():
    found = (test for name in MODULES for test in doctest.DocTestFinder().find(importlib.import_module(name)))
    assert sum(len(test.examples) for test in found) >= 5


@pytest.mark.parametrize("page", ["README.md", "docs/runs.md"])
def test_the_pages_run_as_they_stand(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parents[1] / page).read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {})
