// The last decisions, the newest first.

import { clock, el, name, number, shown, table } from "./dom.js";

const SHOWN = 60;

export function showDecisions(box, note, answer, { openPod, openNode, withTime }) {
  note.textContent = answer.last ? `${number(answer.last)} so far` : "";
  const rows = answer.items.slice(-SHOWN).reverse().map((item) => el("tr", {},
    el("td", { class: "t" }, withTime ? clock(item.time) : number(item.seq)),
    el("td", {}, el("button", { type: "button", class: "link", onclick: () => openPod(item.namespace, item.name) }, name(`${item.namespace}/${item.name}`))),
    outcome(item, openNode),
    el("td", { class: "n" }, item.score === null ? "" : number(item.score)),
    el("td", { class: "n" }, item.milliseconds.toFixed(1))));
  box.replaceChildren(rows.length
    ? table([[withTime ? "Time" : "#"], ["Pod"], ["Where"], ["Score", "n"], ["ms", "n"]], rows)
    : el("p", { class: "note" }, "No decision yet."));
}

function outcome(item, openNode) {
  if (item.node !== null) {
    return el("td", {}, el("button", { type: "button", class: "link", onclick: () => openNode(item.node) }, name(item.node)),
      el("span", { class: "note" }, ` of ${number(item.feasible)} that fit`));
  }
  const evicted = item.preempted.map((pod) => `${pod.namespace}/${pod.name}`).join(", ");
  return el("td", {}, el("div", { class: "why-not", title: shown(item.message ?? "") }, el("span", { class: "bad" }, "no node"), " ", el("span", { class: "note" }, name(item.message ?? ""))),
    evicted ? el("div", {}, "evicts ", name(evicted)) : null);
}
