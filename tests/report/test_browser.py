"""The page in a real Chromium: it shows itself, it can be used, and it asks nobody for anything."""

import re
import threading
from pathlib import Path

import numpy as np
import pytest

from maxplore.report import watch, write_page
from maxplore.runs import video
from maxplore.runs.directory import Folder
from maxplore.runs.record import Record

NASTY = '<img src="http://evil.example/x.png" onerror="document.title=1"><script>document.title=2</script>'

LAPTOP = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}


class Looked:
    """Somebody who looks at pages, and writes down what they ask for and what they complain about."""

    def __init__(self, browser):
        self.browser, self.asked, self.complaints, self.contexts = browser, [], [], []

    def at(self, place, viewport=LAPTOP, **how):
        context = self.browser.new_context(viewport=viewport, **how)
        self.contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("request", lambda own: self.asked.append(own.url))
        page.on("console", lambda own: self.complaints.append(own.text))
        page.on("pageerror", lambda own: self.complaints.append(str(own)))
        page.goto(place.as_uri() if isinstance(place, Path) else place)
        return page


@pytest.fixture
def looked(browser):
    """Nobody leaves unsatisfied: no complaint, and no question to anyone but where the page came from."""
    own = Looked(browser)
    yield own
    for context in own.contexts:
        context.close()
    assert own.complaints == []
    assert all(url.startswith(("file:///", "data:", "http://127.0.0.1:")) for url in own.asked), own.asked


@pytest.fixture(scope="module")
def pages(car, chain, tmp_path_factory):
    """Written pages: of the car, of the chain, of both."""
    place = tmp_path_factory.mktemp("pages")
    found = {"car": [car], "chain": [chain], "both": [car, chain]}
    for name, runs in found.items():
        write_page([Folder(run) for run in runs], place / f"{name}.html")
    return {name: place / f"{name}.html" for name in found}


def colours(page):
    return page.eval_on_selector_all(".cells rect", "all => all.map((own) => own.getAttribute('fill'))")


def test_everything_is_there(looked, pages):
    page = looked.at(pages["car"])
    assert page.title() == "maxplore: car"
    for words in ("What was asked", "How it learned", "What is known, and what is not"):
        assert page.get_by_role("heading", name=words).is_visible()
    for name in ("Utility that plans promise", "Saturation", "Model error", "Negative log", "Truth inside", "Coverage"):
        assert page.get_by_role("img", name=name).first.is_visible()
    assert page.get_by_role("img", name="Map of velocity").is_visible()
    assert page.get_by_role("img", name="Reliability diagram").is_visible()
    assert page.locator(".words").inner_text().startswith("Most uncertain: ")
    assert looked.asked == [pages["car"].as_uri(), "data:,"] or looked.asked == [pages["car"].as_uri()]


def test_the_script_draws_what_was_drawn_without_it(looked, pages):
    """The map, the way and the graph at the last moment are the same, whoever has drawn them."""
    still, moving = looked.at(pages["car"], java_script_enabled=False), looked.at(pages["car"])
    assert not still.locator(".controls").is_visible()
    assert moving.locator(".controls").is_visible()
    one, two = colours(still), colours(moving)
    assert len(one) == 24 * 24
    assert sum(a != b for a, b in zip(one, two, strict=True)) <= 2, "as far as they round alike"
    for kind in (".way.under", ".here", ".x-ticks", ".y-ticks", ".reliable", ".tick.bar"):
        assert moving.locator(kind).first.evaluate("own => own.outerHTML") == still.locator(kind).first.evaluate(
            "own => own.outerHTML"
        )
    still, moving = looked.at(pages["chain"], java_script_enabled=False), looked.at(pages["chain"])
    fills = "all => all.map((own) => own.getAttribute('fill'))"
    assert still.eval_on_selector_all(".node", fills) == moving.eval_on_selector_all(".node", fills)
    hidden = "all => all.map((own) => own.getAttribute('visibility') === 'hidden')"
    assert still.eval_on_selector_all(".untried", hidden) == moving.eval_on_selector_all(".untried", hidden)


def test_the_slider_goes_through_time(looked, pages):
    page = looked.at(pages["car"])
    slider, before = page.get_by_role("slider"), colours(page)
    words = page.locator(".words").inner_text()
    assert page.locator(".time output").inner_text() == "80"
    slider.focus()
    page.keyboard.press("Home")
    assert page.locator(".time output").inner_text() == "20"
    assert slider.get_attribute("aria-valuetext") == "step 20"
    assert colours(page) != before
    assert page.locator(".words").inner_text() != words
    assert "at step 20" in page.locator(".map").get_attribute("aria-label")
    short = len(page.locator("path.way").first.get_attribute("d"))
    diagram, column = page.locator("svg.reliability"), page.locator(".believed td:last-child")
    found = [text.strip("%") for text in column.all_text_contents()]
    told = [int(share) for share in re.findall(r"expected, (\d+)% found", diagram.get_attribute("aria-label"))]
    assert "at step 20" in diagram.get_attribute("aria-label")
    assert np.allclose(told, [float(text) for text in found if text], atol=0.6), "words and table are of one moment"
    page.keyboard.press("ArrowRight")
    assert "at step 40" in diagram.get_attribute("aria-label")
    assert page.locator(".time output").inner_text() == "40"
    assert len(page.locator("path.way").first.get_attribute("d")) > short
    page.keyboard.press("End")
    assert colours(page) == before


def test_the_selects_choose_what_is_drawn(looked, pages):
    page = looked.at(pages["car"])
    before = colours(page)
    page.locator("select[name=across]").select_option("velocity (per step)")
    assert page.locator(".x-title").text_content() == "velocity (per step)"
    assert colours(page) != before
    page.locator("select[name=across]").select_option("position")
    assert colours(page) == before
    page.locator("select[name=states]").select_option("like those visited")
    assert colours(page).count("none") > before.count("none")
    labels = page.locator(".tick.bar").all_text_contents()
    page.locator("select[name=colours]").select_option("of all steps")
    assert page.locator(".tick.bar").first.text_content() in ("0.00", "0.000", "0")
    assert page.locator(".tick.bar").all_text_contents() != labels
    page.locator("select[name=way]").select_option("none")
    assert page.locator("path.way").first.get_attribute("d") == ""


def test_the_chain_fills_as_time_goes_on(looked, pages):
    page = looked.at(pages["chain"])
    shown = "all => all.filter((own) => own.getAttribute('visibility') !== 'hidden').length"
    untried, edges = ([], [])
    for moment in range(4):
        page.get_by_role("slider").fill(str(moment))
        untried.append(page.eval_on_selector_all(".untried", shown))
        edges.append(page.eval_on_selector_all(".edge", shown))
    assert untried == sorted(untried, reverse=True)
    assert edges == sorted(edges)
    assert untried[0] > untried[-1]
    assert edges[0] < edges[-1]


def test_dark_is_dark_and_print_is_light(looked, pages):
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = looked.at(pages["both"]), looked.at(pages["both"], color_scheme="dark")
    assert light.evaluate(ground) == "rgb(255, 255, 255)"
    assert dark.evaluate(ground) != light.evaluate(ground)
    line = "getComputedStyle(document.querySelector('.line.c0')).stroke"
    assert dark.evaluate(line) != light.evaluate(line)
    dark.emulate_media(media="print")
    assert dark.evaluate(ground) == "rgb(255, 255, 255)"
    assert not dark.locator(".controls").first.is_visible()


def test_it_prints_to_pages(looked, pages):
    printed = looked.at(pages["both"], color_scheme="dark").pdf(format="A4")
    assert printed.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) > 1


@pytest.fixture(scope="module")
def ant(handmade, tmp_path_factory):
    """The page of a walk through the maze, with a task that was tried, and a film."""
    place = tmp_path_factory.mktemp("ant")
    path = handmade(place / "ant", dims=31, steps=60, env="maxplore/AntMaze-v0", method="random")
    with Record.open(path / "run.sqlite") as record:
        report = {"forecast": {"low": 1.0, "mean": 2.0, "high": 3.0}}
        record.solved("far-end", seed=0, settings={}, report=report, returns=[2.5, 0.5, 1.5])
    (path / "videos").mkdir()
    frames = [np.full((32, 48, 3), 20 * k, np.uint8) for k in range(10)]
    video.film(path / "videos" / "walk.mp4", frames, 10)
    write_page([Folder(path)], place / "ant.html")
    return place / "ant.html"


def test_the_maze_fills_as_time_goes_on(looked, ant):
    page = looked.at(ant)
    maze, places = page.locator("svg.maze"), ".places path"
    dots = "all => all.map((own) => (own.getAttribute('d').match(/M/g) || []).length).reduce((a, b) => a + b)"
    assert maze.is_visible()
    assert page.eval_on_selector_all(places, dots) == 61, "where it began, and where every step led"
    late = maze.get_attribute("aria-label")
    page.get_by_role("slider").focus()
    page.keyboard.press("Home")
    step = int(page.locator(".time output").inner_text())
    assert page.eval_on_selector_all(places, dots) == step + 1 < 61
    assert page.locator(".maze-note").inner_text().endswith(f"cells were visited up to step {step}.")
    assert page.locator(".maze-note").inner_text() in maze.get_attribute("aria-label") != late


def test_what_a_task_was_paid_stands_beside_its_forecast(looked, ant):
    page = looked.at(ant)
    chart = page.get_by_role("img", name="Returns of the task far-end")
    assert "forecast 2 (1 to 3), real returns 2.5, 0.5, 1.5" in chart.get_attribute("aria-label")
    ends = [float(x) for x in re.findall(r"[MH]([\d.]+)", chart.locator(".interval").get_attribute("d"))][:2]
    paid = [float(own.get_attribute("cx")) for own in chart.locator("circle.paid").all()]
    assert [ends[0] <= x <= ends[1] for x in paid] == [True, False, True]
    page.locator("details", has_text="real returns").last.locator("summary").click()
    assert page.get_by_role("cell", name="2 of 3").is_visible()


def test_a_film_is_on_the_page_itself(looked, ant):
    """It need not play: not every Chromium may decode it. What it is made of is there, and nobody is asked for it."""
    page = looked.at(ant)
    film = page.locator("video")
    assert film.is_visible()
    assert film.get_attribute("src").startswith("data:video/mp4;base64,")
    assert page.get_by_text("walk").first.is_visible()


@pytest.mark.parametrize("name", ["car", "chain", "both"])
def test_a_phone_need_not_scroll_sideways(looked, pages, name):
    page = looked.at(pages[name], PHONE)
    page.eval_on_selector_all("details", "all => all.forEach((own) => { own.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.get_by_role("slider").first.is_visible()


def test_what_a_stranger_wrote_is_text(looked, handmade, tmp_path):
    path = handmade(tmp_path / "run", env=NASTY, method=NASTY)
    with Record.open(path / "run.sqlite") as record:
        record.note("note", NASTY)
    write_page([Folder(path)], tmp_path / "page.html")
    page = looked.at(tmp_path / "page.html")
    assert page.title() == "maxplore: run"
    assert page.get_by_role("cell", name=NASTY).is_visible()
    assert page.locator("img[src]").count() == 0


def test_a_live_page_follows_the_run_and_keeps_its_place(looked, handmade, tmp_path, monkeypatch):
    monkeypatch.setattr(watch, "PATIENCE", 0.0)
    path = handmade(tmp_path / "run")
    with watch.Server([Folder(path)], 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            page = looked.at(server.url)
            page.get_by_role("slider").focus()
            page.keyboard.press("ArrowLeft")
            chosen = page.locator(".time output").inner_text()
            page.locator("select[name=way]").select_option("none")
            with Record.open(path / "run.sqlite") as record:
                record.note("note", "something happened")
            page.get_by_role("cell", name="something happened").wait_for()
            assert page.locator(".time output").inner_text() == chosen
            assert page.locator("select[name=way]").input_value() == "2"
            assert page.evaluate("document.body.dataset.version") == server.live.version
        finally:
            server.shutdown()
            thread.join()
    looked.contexts.pop().close()  # before it notices that nobody answers
