"""The page: what is on it, what cannot get into it, and how large it may be."""

import json
import os
import re
import shutil
import sqlite3
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

import maxplore_cli
from maxplore import InputError
from maxplore.report import page as paged
from maxplore.report.landscape import charted, smoothed
from maxplore.report.story import Story, thinned, told
from maxplore.runs.directory import Folder
from maxplore.runs.record import Record
from tests.rewriting import rewritten

NASTY = "</script><img src=x onerror=alert(1)>\"'&\u2028${1}"
"""Of a stranger who means no good."""


class Tags(HTMLParser):
    """Everything that a page consists of."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.data, self._within = [], [], "", ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._within = tag

    def handle_data(self, data):
        self.words.append(data)
        if self._within == "script" and data.startswith('{"palette"'):
            self.data = data


def read(*paths):
    return Tags(paged([Folder(path) for path in paths], Path()))


def story(path) -> Story:
    return told([Folder(path)])[0]


def test_a_run_of_real_states(car):
    found = read(car)
    labels = " ".join(own.get("aria-label") or "" for _, own in found.tags)
    for words in ("Utility that plans promise", "Map of velocity (per step) over position", "Reliability diagram"):
        assert words in labels
    assert all(own.get("aria-label") or own.get("aria-hidden") for tag, own in found.tags if tag == "svg")
    assert any("Most uncertain: " in text for text in found.words)
    run = json.loads(found.data)["runs"][0]
    assert run["steps"] == [20, 40, 60, 80]
    assert len(run["words"]) == len(run["reliable"]) == 4


def test_a_run_on_a_chain_is_a_graph(chain):
    found = read(chain)
    kinds = [own.get("class") for _, own in found.tags]
    assert kinds.count("node") == 6
    assert kinds.count("untried") == 12
    world = json.loads(found.data)["runs"][0]["world"]
    tried = np.array(world["tried"])
    assert tried.sum(axis=1).tolist() == [10, 20, 30, 40], "every step tried one pair"
    assert np.array(world["seen"]).sum(axis=1).tolist() == [10, 20, 30, 40]
    hidden = [own for _, own in found.tags if own.get("class") == "untried" and "visibility" in own]
    assert len(hidden) == int((tried[-1] > 0).sum())


def test_other_numbered_states_are_a_table_of_colours(chain, tmp_path):
    """The same run, as if action 0 had jumped from state 1 to state 5."""
    path = shutil.copytree(chain, tmp_path / "run")
    five = np.int64(5).tobytes()
    rewritten(path, row=lambda step: step if step.step else step._replace(next_observation=five))
    kinds = [own.get("class") for _, own in read(path).tags]
    assert kinds.count("pair") == 12
    assert "node" not in kinds


def test_a_run_without_models_and_one_without_a_step(handmade, tmp_path):
    found = read(handmade(tmp_path / "walk", method="random"))
    assert any("This method has no models" in text for text in found.words)
    assert not any("Most uncertain" in text for text in found.words)
    empty = handmade(tmp_path / "empty", steps=0)
    assert any("Nothing was measured yet." in text for text in read(empty).words)


def test_a_run_that_died_before_its_first_landscape(handmade, tmp_path):
    found = read(handmade(tmp_path / "walk"))
    assert any(own.get("class") == "map" for _, own in found.tags)
    assert not any("Most uncertain" in text for text in found.words)


def test_landscapes_of_other_spaces_are_refused_in_one_line(car, tmp_path):
    path = shutil.copytree(car, tmp_path / "run")
    nowhere = np.full(2, np.nan, np.float32).tobytes()
    for change, given in (
        ("UPDATE landscapes SET rows = 1024, columns = 1 WHERE name = 'states'", ()),
        ("UPDATE transitions SET next_observation = ? WHERE step = 7", (nowhere,)),
    ):
        with sqlite3.connect(path / "run.sqlite") as connection:
            connection.execute(change, given)
        connection.close()
        with pytest.raises(InputError, match="damaged"):
            read(path)


def gone_on(record):
    """One more step on record, and what models knew before it."""
    *_, last = record.transitions(79)
    record.write(last._replace(step=80))
    return {name: np.array(table) for name, table in record.landscapes(80).items()}


def test_what_is_not_a_number_leaves_no_mark(car, tmp_path):
    path = shutil.copytree(car, tmp_path / "run")
    with Record.open(path / "run.sqlite") as record:
        tables = gone_on(record)
        tables["utility"][:500] = np.nan
        tables["reliability"][:, 1] = np.nan
        record.survey(81, tables)
    found = read(path)
    assert any("No rows were held out" in text for text in found.words)
    json.loads(found.data)


def test_a_level_that_is_not_known_moves_no_other(car, tmp_path):
    """Of ten points of the diagram the first two are not known at the last moment."""
    path = shutil.copytree(car, tmp_path / "run")
    with Record.open(path / "run.sqlite") as record:
        tables = gone_on(record)
        tables["reliability"][:, 1] = np.linspace(0.1, 1.0, 10)
        tables["reliability"][:2, 1] = np.nan
        record.survey(81, tables)
    found = read(path)
    dots = [own for tag, own in found.tags if tag == "circle" and own.get("class") == "dot c0"]
    assert [own.get("visibility") for own in dots] == ["hidden"] * 2 + [None] * 8
    last, before = json.loads(found.data)["runs"][0]["reliable"][-1], json.loads(found.data)["runs"][0]["reliable"][-2]
    assert last["found"][:4] == ["", "", "30.0%", "40.0%"]
    assert [f"{place:.1f}" for place in last["places"][2:]] == [own["cy"] for own in dots[2:]]
    assert len(before["places"]) == len(before["found"]) == 10
    assert last["label"].startswith("Reliability diagram at step 81. 30% expected, 30% found; ")


def test_nothing_that_a_stranger_wrote_becomes_markup(handmade, tmp_path):
    space = spaces.Dict({NASTY: spaces.Box(-10.0, 10.0, (2,), np.float32)})
    own = {"env": NASTY, "method": NASTY, "settings": {NASTY: NASTY}, "command": NASTY, "in_force": {NASTY: NASTY}}
    path = handmade(tmp_path / NASTY.replace("/", "|"), space=space, **own)
    with Record.open(path / "run.sqlite") as record:
        record.note(NASTY, NASTY)
        report = {"forecast": {"low": 1.0, "mean": 2.0, "high": 3.0}}
        record.solved(NASTY, seed=0, settings={}, report=report, returns=[2.5])
    (path / "videos").mkdir()
    (path / "videos" / f"{NASTY.replace('/', '|')}.mp4").write_bytes(b"film")
    other = handmade(tmp_path / "other")
    found = read(path, other)
    assert [own for tag, own in found.tags if tag == "img"] == []
    assert [own.get("type") for tag, own in found.tags if tag == "script"] == ["application/json", None]
    assert not any(name.startswith("on") for _, own in found.tags for name in own)
    assert sum(text == NASTY for text in found.words) >= 5, "it is shown as the text that it is"
    run = json.loads(found.data)["runs"][0]
    assert run["land"]["dims"][0]["name"] == f"{NASTY} 0"
    assert "\u2028" not in found.data
    assert "<" not in found.data


def test_a_page_asks_nobody_for_anything(car):
    text = paged([Folder(car)], Path())
    found = Tags(text)
    policy = next(own["content"] for _, own in found.tags if own.get("http-equiv"))
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "connect-src 'none'" in policy
    assert "unsafe" not in policy
    assert not any("style" in own for _, own in found.tags), "which the policy would not allow"
    fetched = [own[name] for _, own in found.tags for name in ("src", "href") if name in own]
    assert fetched == ["data:,"]
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", text)


def test_many_seeds_are_a_band_and_few_are_lines(handmade, tmp_path):
    many = [handmade(tmp_path / f"max-{seed}", seed=seed) for seed in range(3)]
    few = [handmade(tmp_path / f"random-{seed}", seed=seed, method="random") for seed in range(2)]
    found = read(*many, *few)
    kinds = [own.get("class") or "" for _, own in found.tags]
    assert sum(kind.startswith("band") for kind in kinds) == 3, "of coverage, error and calibration"
    assert all(name in found.words for name in ("max (3 seeds)", "random-0", "random-1"))
    label = next(own["aria-label"] for _, own in found.tags if (own.get("aria-label") or "").startswith("Coverage"))
    assert "max (3 seeds): from 1 at step 0 to 41 at step 40" in label, "the median of seeds 0, 1 and 2"


def test_a_page_stays_small(handmade, tmp_path):
    """Twelve thousand steps of the ant, with a landscape every 400; and twenty runs of a car on one page."""
    path = handmade(tmp_path / "ant", dims=31, steps=12_000, env="maxplore/AntMaze-v0")
    draw = np.random.default_rng(0)
    with Record.open(path / "run.sqlite") as record:
        for step in range(400, 12_001, 400):
            tables = {"states": draw.normal(size=(512, 31)), "utility": draw.uniform(size=(512, 1))}
            record.survey(step, tables | {"reliability": np.full((10, 2), 0.5)})
    text = paged([Folder(path)], Path())
    assert len(text) < 900_000
    run = json.loads(Tags(text).data)["runs"][0]
    assert 6 <= len(run["steps"]) <= 24
    assert run["steps"][-1] == 12_000
    assert "7 cells were visited up to step 12000." in text
    several = [handmade(tmp_path / str(k), steps=200, seed=k) for k in range(20)]
    assert len(paged([Folder(own) for own in several], Path())) < 900_000


def test_the_map_is_the_mean_of_what_is_near(car):
    """In a landscape of one utility everywhere, every cell that is coloured has just that."""
    own = story(car)
    flat = [replace(f, tables={**f.tables, "utility": np.full((512, 1), 0.25, np.float32)}) for f in own.frames]
    land = charted(replace(own, frames=flat), 1)
    assert land is not None
    shown = smoothed(land, 0, 0, 1) * land.most
    np.testing.assert_allclose(shown[~np.isnan(shown)], 0.25, rtol=1e-4)
    assert (~np.isnan(shown)).mean() > 0.3


def test_films_are_inside_or_named(handmade, tmp_path, monkeypatch):
    path = handmade(tmp_path / "run")
    (path / "videos").mkdir()
    (path / "videos" / "short.mp4").write_bytes(b"film")
    (path / "videos" / "long.mp4").write_bytes(bytes(4_000_000))
    os.symlink("/etc/hostname", path / "videos" / "foreign.mp4")
    found = Tags(paged([Folder(path)], path))
    videos = [own["src"] for tag, own in found.tags if tag == "video"]
    assert videos == ["data:video/mp4;base64,ZmlsbQ=="]
    assert [own["href"] for tag, own in found.tags if tag == "a"] == ["videos/long.mp4"]
    assert "foreign" not in found.words


def test_few_of_many_keep_the_last():
    assert thinned(range(5), 9) == [0, 1, 2, 3, 4]
    assert thinned(range(1, 101), 4) == [25, 50, 75, 100]


def test_what_the_page_needs_comes_along():
    from hatchling.builders.wheel import WheelBuilder

    root = Path(maxplore_cli.__file__).parents[1]
    files = {file.distribution_path for file in WheelBuilder(str(root)).recurse_included_files()}
    assert {"maxplore/report/page.js", "maxplore/report/page.css"} <= files
