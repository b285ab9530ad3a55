// The nodes as a table, a page at a time: what the map shows, for reading and for screen readers.

import { el, name, number, percent, plural, table } from "./dom.js";

const ROWS = 25;

export class NodesTable {
  #box; #details; #open; #nodes = null; #order = []; #page = 0;

  constructor(details, open) {
    this.#details = details;
    this.#box = details.querySelector(".table-box");
    this.#open = open;
    details.addEventListener("toggle", () => this.#draw());
  }

  show(nodes, order) {
    this.#nodes = nodes;
    this.#order = order;
    this.#page = Math.min(this.#page, Math.max(0, Math.ceil(order.length / ROWS) - 1));
    this.#draw();
  }

  #draw() {
    if (!this.#details.open || !this.#nodes) return;
    const nodes = this.#nodes, start = this.#page * ROWS;
    const rows = this.#order.slice(start, start + ROWS).map((i) => el("tr", {},
      el("th", { scope: "row" }, el("button", { type: "button", class: "link", onclick: () => this.#open(nodes.names[i]) }, name(nodes.names[i]))),
      el("td", { class: "n" }, percent(nodes.shares[i])),
      el("td", {}, name(nodes.answer.pods[i] || nodes.shares[i] ? nodes.resource(i) : "")),
      el("td", { class: "n" }, number(nodes.answer.pods[i])),
      el("td", {}, [nodes.answer.unschedulable[i] ? "cordoned" : "", nodes.answer.emptiable[i] ? "could be emptied" : ""].filter(Boolean).join(", "))));
    const move = (text, by, able) => el("button", { type: "button", disabled: !able, onclick: () => { this.#page += by; this.#draw(); } }, text);
    const end = Math.min(start + ROWS, this.#order.length);
    this.#box.replaceChildren(
      table([["Node"], ["Full", "n"], ["of"], ["Pods", "n"], [""]], rows),
      el("div", { class: "pager" }, move("Before", -1, start > 0), move("After", 1, end < this.#order.length),
        el("span", { class: "note" }, end ? `${number(start + 1)} to ${number(end)} of ${plural(this.#order.length, "node")}` : "no node of that name")));
  }
}
