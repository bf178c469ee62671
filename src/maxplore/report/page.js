"use strict";
// Everything is on the page already, as it was at the last moment. What follows redraws it for others, and nothing more.

const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const words = (text) => new Uint16Array(bytes(text).buffer);
const put = (node, values) => Object.entries(values).forEach(([name, value]) => node.setAttribute(name, value));
const CHOICES = ["across", "up", "way", "states", "colours"];
const chosen = {}; // by the run's name: what its controls say

function begin() {
  const { palette, runs } = JSON.parse(document.getElementById("data").textContent);
  const colour = (share) => palette[Math.min(Math.max(Math.floor(share * 64), 0), 63)];
  document.querySelectorAll(".run").forEach((section) => {
    const run = runs[Number(section.dataset.run)];
    const controls = section.querySelector(".controls");
    if (!controls) return;
    if (run.land) {
      run.land.states = bytes(run.land.states);
      run.land.utility = words(run.land.utility);
      run.land.way = words(run.land.way);
    }
    controls.hidden = false;
    controls.addEventListener("submit", (event) => event.preventDefault());
    restore(run, controls);
    const redraw = () => draw(section, run, controls, colour);
    controls.addEventListener("input", () => { keep(run, controls); redraw(); });
    redraw();
  });
}

function keep(run, controls) {
  const own = { last: controls.moment.value === controls.moment.max, step: run.steps[controls.moment.value] };
  CHOICES.forEach((name) => { if (controls[name]) own[name] = controls[name].value; });
  chosen[run.name] = own;
}

function restore(run, controls) {
  const own = chosen[run.name];
  if (!own) return;
  const later = run.steps.findIndex((step) => step >= own.step);
  controls.moment.value = own.last || later < 0 ? controls.moment.max : later;
  CHOICES.forEach((name) => { if (controls[name]) controls[name].value = own[name]; });
}

function draw(section, run, controls, colour) {
  const moment = Number(controls.moment.value), step = run.steps[moment];
  section.querySelector(".time output").textContent = step.toLocaleString("en");
  controls.moment.setAttribute("aria-valuetext", `step ${step}`);
  const saying = section.querySelector(".words");
  if (saying) saying.textContent = run.words[moment];
  if (run.land) drawLand(section.querySelector(".map"), run, moment, controls, colour);
  if (run.maze) drawMaze(section, run.maze, moment, step);
  if (run.world) drawWorld(section, run, moment, colour);
  const diagram = section.querySelector("svg.reliability");
  if (diagram && run.reliable[moment]) drawReliable(diagram, run.reliable[moment]);
}

function smoothed(land, moment, across, up, states) {
  const { cells, reach, least, probes } = land, dims = land.dims.length, half = probes / 2;
  const total = new Float64Array(cells * cells), weight = new Float64Array(cells * cells);
  for (let k = states === 2 ? half : 0; k < (states === 1 ? half : probes); k++) {
    const level = land.utility[moment * probes + k], at = (moment * probes + k) * dims;
    if (level === 65535) continue;
    const row = land.states[at + up] / 255 * cells - 0.5, column = land.states[at + across] / 255 * cells - 0.5;
    const i0 = Math.floor(row + 0.5), j0 = Math.floor(column + 0.5);
    for (let i = Math.max(i0 - reach, 0); i <= Math.min(i0 + reach, cells - 1); i++) {
      for (let j = Math.max(j0 - reach, 0); j <= Math.min(j0 + reach, cells - 1); j++) {
        const share = Math.exp(-((i - row) ** 2 + (j - column) ** 2) / 2);
        total[i * cells + j] += share * (level / 65534);
        weight[i * cells + j] += share;
      }
    }
  }
  return total.map((sum, k) => (weight[k] >= least ? sum / weight[k] : NaN));
}

function drawLand(map, run, moment, controls, colour) {
  const land = run.land, dims = land.dims.length, [left, right, top, bottom] = land.plot;
  const across = Number(controls.across.value), up = Number(controls.up.value);
  const place = (k, dim, from, to) => (from + (to - from) * land.way[k * dims + dim] / 65535).toFixed(1);
  if (land.probes) {
    const which = controls.colours.value === "1" ? land.scales.length - 1 : moment;
    const [low, high] = land.scales[which], width = high - low || 1;
    const shown = smoothed(land, moment, across, up, Number(controls.states.value));
    map.querySelectorAll(".cells rect").forEach((rect, k) => {
      const row = land.cells - 1 - Math.floor(k / land.cells), value = shown[row * land.cells + k % land.cells];
      rect.setAttribute("fill", Number.isNaN(value) ? "none" : colour((value - low) / width));
    });
    map.querySelectorAll(".tick.bar").forEach((label, k) => { label.textContent = land.labels[which][k]; });
  }
  const begins = new Set(land.starts);
  const upto = land.waySteps.filter((step) => step <= run.steps[moment]).length;
  const episode = Math.max(0, ...land.starts.filter((k) => k < upto));
  let line = "";
  for (let k = [0, episode, upto][Number(controls.way.value)]; k < upto; k++) {
    line += (begins.has(k) ? "M" : "L") + place(k, across, left, right) + " " + place(k, up, bottom, top);
  }
  map.querySelectorAll(".way").forEach((path) => path.setAttribute("d", line));
  const here = Math.max(upto - 1, 0);
  put(map.querySelector(".here"), { cx: place(here, across, left, right), cy: place(here, up, bottom, top) });
  ticks(map.querySelector(".x-ticks"), land.dims[across].ticks, (at) => [left + (right - left) * at, bottom + 16], "tick middle");
  ticks(map.querySelector(".y-ticks"), land.dims[up].ticks, (at) => [left - 6, bottom + (top - bottom) * at + 4], "tick end");
  map.querySelector(".x-title").textContent = land.dims[across].name;
  map.querySelector(".y-title").textContent = land.dims[up].name;
  const names = `${land.dims[up].name} over ${land.dims[across].name}`;
  map.setAttribute("aria-label", `Map of ${names} at step ${run.steps[moment]}, with the way up to it. ${run.words[moment]}`);
}

function ticks(group, all, spot, kind) {
  group.replaceChildren(...all.map(([at, label]) => {
    const text = document.createElementNS("http://www.w3.org/2000/svg", "text"), [x, y] = spot(at);
    put(text, { x: x.toFixed(1), y: y.toFixed(1), class: kind });
    text.textContent = label;
    return text;
  }));
}

function drawMaze(section, maze, moment, step) {
  const paths = [...section.querySelectorAll(".places path")], lines = paths.map(() => "");
  maze.steps.forEach((own, k) => { if (own <= step) lines[maze.shades[k]] += `M${maze.x[k] / 10} ${maze.y[k] / 10}h0`; });
  paths.forEach((path, k) => path.setAttribute("d", lines[k]));
  section.querySelector(".maze-note").textContent = maze.notes[moment];
  section.querySelector("svg.maze").setAttribute("aria-label", `The maze from above. ${maze.notes[moment]}`);
}

function drawWorld(section, run, moment, colour) {
  const { actions, tried, seen, utility } = run.world, graph = section.querySelector(".graph svg");
  if (!graph) return;
  const level = (pair) => colour((utility ? utility[moment][pair] : 0) / 64);
  graph.querySelectorAll("[data-pair]").forEach((node) => {
    node.setAttribute(node.dataset.edge ? "stroke" : "fill", level(Number(node.dataset.pair)));
  });
  graph.querySelectorAll("[data-edge]").forEach((node) => {
    const count = seen[moment][Number(node.dataset.edge)];
    put(node, { visibility: count ? "visible" : "hidden", "stroke-width": (1.2 + 0.8 * Math.log10(1 + count)).toFixed(2) });
  });
  graph.querySelectorAll("[data-node]").forEach((node) => {
    const first = Number(node.dataset.node) * actions, own = [...Array(actions).keys()].map((k) => first + k);
    node.setAttribute("fill", level(utility ? own.reduce((a, b) => (utility[moment][a] >= utility[moment][b] ? a : b)) : 0));
  });
  graph.querySelectorAll("[data-untried]").forEach((node) => {
    node.setAttribute("visibility", tried[moment][Number(node.dataset.untried)] ? "hidden" : "visible");
  });
  graph.setAttribute("aria-label", `At step ${run.steps[moment]}. ${run.words[moment]}`);
}

function drawReliable(diagram, { places, found, label }) {
  const points = [], rows = diagram.closest("figure").querySelectorAll(".believed tbody tr");
  diagram.querySelectorAll("circle").forEach((dot, k) => {
    const there = places[k] !== null;
    dot.setAttribute("visibility", there ? "visible" : "hidden");
    if (rows[k]) rows[k].lastElementChild.textContent = found[k];
    if (!there) return;
    dot.setAttribute("cy", places[k].toFixed(1));
    points.push(`${dot.getAttribute("cx")} ${places[k].toFixed(1)}`);
  });
  diagram.querySelector(".reliable").setAttribute("d", points.length ? `M${points.join("L")}` : "");
  diagram.setAttribute("aria-label", label);
}

// What is folded, by the run, the figure and the words that it is under.
function named(details) {
  const figure = details.closest("figure"), run = details.closest(".run");
  return [run && run.dataset.run, figure && figure.firstElementChild.textContent, details.firstElementChild.textContent].join("|");
}

async function follow() {
  try {
    const version = await (await fetch("version")).text();
    const playing = [...document.querySelectorAll("video")].some((video) => !video.paused);
    if (version && version !== document.body.dataset.version && !playing) {
      const next = new DOMParser().parseFromString(await (await fetch("./")).text(), "text/html");
      const opened = new Map([...document.querySelectorAll("details")].map((own) => [named(own), own.open]));
      const focused = document.activeElement, within = focused && focused.closest(".run");
      document.querySelector("main").replaceWith(next.querySelector("main"));
      document.querySelectorAll("details").forEach((own) => { own.open = opened.get(named(own)) ?? own.open; });
      document.title = next.title;
      document.body.dataset.version = next.body.dataset.version;
      begin();
      if (within && focused.name) document.querySelector(`[data-run="${within.dataset.run}"] [name="${focused.name}"]`)?.focus();
    }
  } catch (gone) {
    // The watcher has ended; the page stays as it was, and looks again.
  }
  setTimeout(follow, 2000);
}

begin();
addEventListener("beforeprint", () => document.querySelectorAll("details.run").forEach((own) => { own.open = true; }));
if (document.body.dataset.version) follow();
