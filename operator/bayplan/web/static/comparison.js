// What several configurations make of the same cluster, side by side.

import { amount, bar, byId, el, name, number, plural, table, tenths } from "./dom.js";

const MOVED = 20;
const HOW = "bayplan web --cluster cluster.json.gz --config A --config B";

export class Comparison {
  #configurations = []; #told = null; #all = false;

  /** Says what is compared, or which command would. */
  about(page) {
    this.#configurations = page.configurations ?? [];
    if (this.#configurations.length < 2) {
      byId("comparison").replaceChildren(
        el("p", { class: "note" }, "Several configurations on a snapshot of this cluster are shown side by side by:"),
        el("pre", { tabindex: 0, role: "region", "aria-label": "Command" }, el("code", {}, page.mode === "live" ? `bayplan snapshot -o cluster.json.gz &&\n${HOW}` : HOW)));
    } else if (!this.#told) byId("comparison").replaceChildren(this.#key(), el("p", { class: "note" }, "Deciding."));
  }

  show(told) {
    this.#told = told;
    const summaries = told.configurations.map((each) => each.summary);
    const left = this.#configurations.length - told.decided;
    byId("comparison-note").textContent = left > 0 ? `${plural(left, "configuration")} still to decide` : "";
    const heads = told.configurations.map((_, at) => [letter(at), "n"]);
    const rows = [...counts(summaries), ...resources(summaries)].map(([label, cells, shares]) => el("tr", {}, el("th", { scope: "row" }, name(label)),
      cells.map((cell, at) => el("td", { class: "n" }, cell, shares ? bar(shares[at]) : null))));
    byId("comparison").replaceChildren(this.#key(),
      el("div", { class: "table-box", tabindex: 0, role: "region", "aria-label": "Configurations side by side" }, table([[el("span", { class: "unseen" }, "What is compared")], ...heads], rows)),
      ...(left > 0 ? [] : this.#moved(told)));
  }

  #key() {
    return el("ul", { class: "letters" }, this.#configurations.map((each, at) => el("li", {}, el("strong", {}, letter(at)), " ", name(each), at === 0 ? el("span", { class: "note" }, " the page above shows this one") : null)));
  }

  #moved(told) {
    if (!told.movedTotal) return [el("p", { class: "now" }, "All pods are on the same nodes.")];
    const many = this.#all ? told.moved.length : MOVED;
    const rows = told.moved.slice(0, many).map((pod) => el("tr", {}, el("th", { scope: "row" }, name(`${pod.namespace}/${pod.name}`)), pod.nodes.map((node) => el("td", {}, node === null ? "–" : name(node)))));
    const more = Math.min(told.moved.length, told.movedTotal) - rows.length;
    const box = el("div", { class: "table-box scroll", tabindex: 0, role: "region", "aria-label": "Pods that are on other nodes" }, table([["Pod"], ...told.configurations.map((_, at) => [letter(at)])], rows));
    const hidden = told.movedTotal - told.moved.length;
    return [
      el("h3", {}, `${plural(told.movedTotal, "pod is", "pods are")} not on the same node everywhere`), box,
      more > 0 ? el("button", { type: "button", onclick: () => { this.#all = true; this.show(told); byId("comparison").focus(); } }, `Show ${number(more)} more`) : null,
      hidden > 0 && more === 0 ? el("p", { class: "note" }, `and ${number(hidden)} more, which bayplan simulate -o json has`) : null,
    ].filter(Boolean);
  }
}

function counts(summaries) {
  const nodes = Math.max(1, ...summaries.map((each) => each.nodes));
  const row = (label, of) => [label, summaries.map((each) => number(of(each))), null];
  const share = (label, of) => [...row(label, of).slice(0, 2), summaries.map((each) => of(each) / nodes)];
  const rows = [
    row("Pods placed", (each) => each.scheduled), row("Pods that fit nowhere", (each) => each.unschedulable), row("Pods evicted", (each) => each.preempted),
    share("Nodes in use", (each) => each.nodesInUse), share("No packing needs fewer than", (each) => each.lowerBoundNodes),
  ];
  if (summaries[0].strandedDevices !== undefined) rows.push(row("Devices stranded", (each) => tenths(each.strandedDevices)));
  if (summaries.some((each) => each.overcommittedNodes)) rows.push(row("Overcommitted nodes", (each) => each.overcommittedNodes));
  return rows;
}

/** Per resource what is stranded, and the largest amount that still fits on one node. */
function resources(summaries) {
  const named = Object.entries(summaries[0].allocation).filter(([each, use]) => each !== "pods" && use.allocatable).map(([each]) => each);
  return named.flatMap((each) => [
    [`${each} stranded`, summaries.map((summary) => amount(each, summary.allocation[each].stranded)), summaries.map((summary) => summary.allocation[each].stranded / summary.allocation[each].allocatable)],
    [`${each} free on one node`, summaries.map((summary) => amount(each, summary.allocation[each].largestFree)), null],
  ]);
}

/** A, B and so on, AA after Z. */
function letter(at) {
  return (at >= 26 ? letter(Math.floor(at / 26) - 1) : "") + String.fromCharCode(65 + (at % 26));
}
