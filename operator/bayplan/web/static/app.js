// Listens to what changes and has each part of the page follow.

import { said, say } from "./address.js";
import { History, Profiles } from "./charts.js";
import { Comparison } from "./comparison.js";
import { showDecisions } from "./decisions.js";
import { Detail } from "./detail.js";
import { bar, byId, el, name, number, percent, plural, shown, tenths } from "./dom.js";
import { NodeMap } from "./map.js";
import { Nodes } from "./nodes.js";
import { NodesTable } from "./nodes_table.js";
import { Placing } from "./placing.js";
import { listen } from "./session.js";
import { showWaiting } from "./waiting.js";

const detail = new Detail(false);
const map = new NodeMap(byId("map"), byId("map-now"), detail.node);
const nodesTable = new NodesTable(byId("nodes-table"), detail.node);
const history = new History();
const profiles = new Profiles();
const comparison = new Comparison();
new Placing(detail.node);
let page = { mode: "live", title: "", skipped: 0 };
let answer = null, followed = false;

function showPage(told) {
  page = told;
  detail.planned = page.mode === "snapshot";
  byId("history-title").textContent = page.mode === "live" ? "Packing over time" : "Packing as pods are placed";
  comparison.about(page);
  byId("source").replaceChildren(page.mode === "live" ? "live, " : "snapshot of ", name(page.title), page.skipped ? `, ${plural(page.skipped, "object")} skipped` : "");
  if (!followed) follow();
}

function showState({ running, error }) {
  const state = byId("state");
  const words = page.mode === "live" ? "following" : running ? "deciding" : "all decided";
  state.className = error ? "bad" : running ? "running" : "done";
  state.textContent = error ? shown(error) : words;
}

function showSummary(summary) {
  const packing = summary.packing;
  const used = Math.max(0, ...packing.map((each) => each.nodesUsed)), bound = Math.max(0, ...packing.map((each) => each.lowerBound));
  byId("in-use").replaceChildren(number(used), el("small", {}, ` of ${number(summary.nodes)}`));
  byId("in-use-note").textContent = `run a pod that could run elsewhere; by the sum of requests ${number(bound)} would do`;
  const { active, backoff, unschedulable, gated } = summary.queue;
  const waiting = active + backoff + unschedulable + gated;
  byId("waiting").textContent = number(waiting);
  byId("waiting-tile").classList.toggle("wait", unschedulable > 0);
  const parts = [[active, "to be tried"], [backoff, "backing off"], [unschedulable, "fit on no node"], [gated, "gated"]];
  byId("waiting-note").textContent = parts.filter(([count]) => count).map(([count, text]) => `${number(count)} ${text}`).join(", ") || "every pod has a node";
  const meters = packing.filter((each) => each.allocatable && each.resource !== "pods" && each.resource !== "ephemeral-storage").slice(0, 3).map((each) => {
    const share = each.requested / each.allocatable;
    return el("div", { class: "meter" }, el("span", {}, name(each.resource.slice(each.resource.lastIndexOf("/") + 1))), bar(share), el("span", { class: "value" }, percent(share)));
  });
  byId("requested").replaceChildren(...meters);
  const stranded = summary.strandedDevices;
  byId("requested-note").textContent = stranded === null || stranded === undefined ? "" : `${plural(tenths(stranded), "device")} stranded: left of those taken in part`;
  profiles.show(summary.profiles);
}

function showNodes() {
  if (!answer) return;
  const measure = byId("measure");
  const offered = ["dominant", ...answer.resources];
  if (measure.options.length !== offered.length || offered.some((each, at) => measure.options[at].value !== each)) {
    const before = measure.value || said().measure || "dominant";
    measure.replaceChildren(...offered.map((each) => el("option", { value: each, selected: each === before }, each === "dominant" ? "fullest resource" : shown(each))));
  }
  const nodes = new Nodes(answer, measure.value || "dominant");
  const order = nodes.order(byId("order").value, byId("find").value.trim());
  map.show(nodes, order);
  nodesTable.show(nodes, order);
  const emptiable = answer.emptiable.filter(Boolean).length;
  byId("emptiable").replaceChildren(number(emptiable), el("small", {}, emptiable === 1 ? " node" : " nodes"));
  byId("emptiable-note").textContent = emptiable ? "the others have room for their pods, by the sum of requests" : "the pods of none fit on the others";
}

// How the nodes are shown, and what each control has when the address says nothing of it.
const VIEW = { measure: "dominant", order: "full", find: "" };

for (const [id, usual] of Object.entries(VIEW)) {
  byId(id).addEventListener("input", () => {
    showNodes();
    const value = byId(id).value;
    say({ [id]: value === usual ? "" : value }, "replaceState");
  });
}

/** Shows what the address says: when the page opens, and when a person goes back or changes it. */
function follow() {
  followed = true;
  const wanted = said();
  for (const [id, usual] of Object.entries(VIEW)) {
    byId(id).value = wanted[id] || usual;
    if (byId(id).selectedIndex < 0) byId(id).value = usual;
  }
  showNodes();
  detail.follow(wanted);
}
addEventListener("popstate", follow);
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); byId("map-card").focus(); });

const showers = {
  page: showPage,
  state: showState,
  summary: showSummary,
  nodes: (told) => { answer = told; showNodes(); },
  queue: (told) => showWaiting(byId("why"), byId("why-note"), told, detail.pod),
  decisions: (told) => showDecisions(byId("decisions"), byId("decisions-note"), told, { openPod: detail.pod, openNode: detail.node, withTime: page.mode === "live" }),
  comparison: (told) => comparison.show(told),
  history: (told) => history.show(told, page.mode === "live"),
};

// Each part has a frame of its own, and what was overtaken in between is never drawn.
const newest = new Map();
let drawing = false;
function drawNext() {
  const [topic] = newest.keys();
  const data = newest.get(topic);
  newest.delete(topic);
  showers[topic](JSON.parse(data));
  drawing = newest.size > 0;
  if (drawing) requestAnimationFrame(drawNext);
}

listen("/events", (topic, data) => {
  if (!(topic in showers)) return;
  newest.set(topic, data);
  if (!drawing) { drawing = true; requestAnimationFrame(drawNext); }
}, (error) => {
  byId("state").className = "bad";
  byId("state").textContent = error;
});
