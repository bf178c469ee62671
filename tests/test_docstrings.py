"""The examples in docstrings run and say what they say."""

import doctest
import importlib
import pkgutil

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
