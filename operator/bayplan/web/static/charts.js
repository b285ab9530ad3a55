// Packing over time against the fewest nodes that would do, and what a profile's scoring prefers.

import uPlot from "./vendor/uplot/uPlot.esm.js";
import { byId, el, name, number, plural, shown } from "./dom.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
const colour = (variable) => getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
// Of what is counted there are no halves.
const counted = { incrs: [0, 1, 2, 3, 4, 5, 6].flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power)) };
const axis = (more) => ({ stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") }, font: "12px system-ui, sans-serif", ...more });

/** A chart that is made anew when the colours change, and fits its box. */
class Chart {
  #box; #options; #plot = null; #data = null;

  constructor(box, options) {
    this.#box = box;
    this.#options = options;
    new ResizeObserver(() => { if (this.#plot) this.#plot.setSize(this.#size()); }).observe(box);
    dark.addEventListener("change", () => { this.#plot?.destroy(); this.#plot = null; if (this.#data) this.show(this.#data); });
  }

  #size() {
    return { width: Math.max(220, this.#box.clientWidth), height: 190 };
  }

  show(data) {
    this.#data = data;
    if (this.#plot) this.#plot.setData(data);
    else this.#plot = new uPlot({ ...this.#size(), ...this.#options() }, data, this.#box);
  }
}

/** The nodes in use and the fewest that would do, over time or over decisions. */
export class History {
  #chart = null; #live = null;

  show(points, live) {
    if (!points.length) return;
    // One point is no line: the sentence says it.
    byId("history").hidden = points.length < 2;
    if (this.#live !== live) {
      this.#live = live;
      byId("history").replaceChildren();
      this.#chart = new Chart(byId("history"), () => options(live));
    }
    this.#chart.show([points.map((each) => each.at), points.map((each) => each.nodesUsed), points.map((each) => each.lowerBound)]);
    const last = points[points.length - 1];
    const more = last.nodesUsed - last.lowerBound;
    byId("history-now").textContent = `${plural(last.nodesUsed, "node")} in use; by the sum of requests ${number(last.lowerBound)} would do${more > 0 ? `, ${number(more)} fewer` : ""}.`;
  }
}

function options(live) {
  return {
    scales: { x: { time: live }, y: { range: (_, low, high) => [low < high / 2 ? 0 : Math.floor(low * 0.95), Math.ceil(high * 1.05) || 1] } },
    axes: [axis(live ? {} : { ...counted, label: "decisions", size: 30, labelGap: 0, labelSize: 18, labelFont: "12px system-ui, sans-serif" }), axis({ ...counted, size: 52 })],
    series: [
      { label: live ? "time" : "decisions" },
      { label: "nodes in use", stroke: colour("--s4"), width: 2, points: { show: false } },
      { label: "lower bound", stroke: colour("--accent"), width: 2, dash: [6, 4], points: { show: false } },
    ],
    bands: [{ series: [1, 2], fill: `${colour("--accent")}22` }],
    legend: { live: false },
  };
}

/** Each profile's scoring strategy: points by use of a node. */
export class Profiles {
  #known = "";

  show(profiles) {
    const key = JSON.stringify(profiles);
    if (key === this.#known) return;
    this.#known = key;
    const boxes = profiles.map((profile) => this.#one(profile));
    byId("profiles").replaceChildren(...boxes.map(([box]) => box));
    for (const [, draw] of boxes) draw();
  }

  #one(profile) {
    const points = line(profile);
    const told = points ? points[0].map((at, i) => `${points[1][i]} points at ${at} per cent`).join(", ") : "";
    const chart = el("div", { class: "chart", role: "img", "aria-label": `Scoring function: ${told}` });
    const resources = profile.resources.map((each) => `${shown(each.name)} ×${each.weight}`).join(", ");
    const box = el("section", { class: "profile" },
      el("p", {}, el("strong", {}, name(profile.schedulerName)), ": ", profile.strategy ? sentence(profile) : "nodes are not scored by what is requested of them.",
        " ", el("span", { class: "note" }, resources ? `Weighs ${resources}.` : "")),
      points ? chart : null);
    return [box, () => points && new Chart(chart, shapeOptions).show(points)];
  }
}

function sentence(profile) {
  const told = { MostAllocated: "the fuller a node, the better: pods are packed.", LeastAllocated: "the emptier a node, the better: pods are spread." };
  return `${shown(profile.strategy)}; ${told[profile.strategy] ?? "points by how full a node would be."}`;
}

function line(profile) {
  if (profile.strategy === "MostAllocated") return [[0, 100], [0, 10]];
  if (profile.strategy === "LeastAllocated") return [[0, 100], [10, 0]];
  if (!profile.shape?.length) return null;
  const shape = profile.shape;
  const xs = shape.map((each) => each.utilization), ys = shape.map((each) => each.score);
  if (xs[0] > 0) { xs.unshift(0); ys.unshift(ys[0]); }
  if (xs[xs.length - 1] < 100) { xs.push(100); ys.push(ys[ys.length - 1]); }
  return [xs, ys];
}

function shapeOptions() {
  const labelled = { labelSize: 18, labelFont: "12px system-ui, sans-serif" };
  return {
    scales: { x: { time: false, range: [0, 100] }, y: { range: [0, 10.4] } },
    axes: [axis({ label: "per cent of the node requested", size: 30, labelGap: 0, ...labelled }), axis({ label: "points of 10", size: 40, ...labelled })],
    series: [{ label: "per cent" }, { label: "points", stroke: colour("--s4"), width: 2, fill: `${colour("--s4")}22` }],
    legend: { show: false },
  };
}
