// "Where would this pod go?": asks the simulation about what is pasted. Nothing is bound.

import { byId, el, name, number, plural, shown } from "./dom.js";
import { reasons } from "./reasons.js";
import { ask } from "./session.js";

const COUNT = /^(?:max|\d{1,7})?$/;
const NODES_SHOWN = 20;

/** The form and its answer; an error stands beside the form, and an answer takes the focus. */
export class Placing {
  #asking = null; #openNode;

  constructor(openNode) {
    this.#openNode = openNode;
    byId("placing").addEventListener("submit", (event) => { event.preventDefault(); this.#ask(); });
    byId("placing-text").addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.#ask(); });
  }

  async #ask() {
    const text = byId("placing-text"), count = byId("placing-count");
    this.#fail(null, "");
    if (!text.value.trim()) return this.#fail(text, "Paste a pod or a workload first.");
    if (!COUNT.test(count.value.trim())) return this.#fail(count, "How many: give a number from 0 to 9999999, max, or nothing.");
    this.#asking?.abort();
    const asking = this.#asking = new AbortController();
    byId("placing-state").textContent = "Asking";
    byId("placing-answer").replaceChildren();
    let answer = null, error = "";
    try {
      const response = await ask(`/asked?${new URLSearchParams({ count: count.value.trim() })}`, { method: "POST", body: text.value, signal: asking.signal });
      answer = await response.json();
      if (!response.ok) error = answer.error;
    } catch {
      error = "bayplan web does not answer.";
    }
    if (asking !== this.#asking) return;
    byId("placing-state").textContent = "";
    if (error) return this.#fail(text, error);
    const box = byId("placing-answer");
    box.replaceChildren(...this.#answer(answer));
    byId("placing-state").textContent = sentence(answer.pods);
    box.focus();
  }

  #fail(field, error) {
    for (const each of [byId("placing-text"), byId("placing-count")]) each.setAttribute("aria-invalid", String(each === field));
    byId("placing-error").textContent = shown(error);
    field?.focus();
  }

  #answer({ pods, count, countError }) {
    const body = [];
    if (count) body.push(...fits(count, this.#openNode));
    if (countError) body.push(el("p", { class: "bad" }, "How many fit: ", name(countError)));
    for (const [at, pod] of pods.entries()) {
      const title = el("span", {}, name(`${pod.namespace}/${pod.name}`), ": ", pod.node === null ? el("span", { class: "bad" }, "no node") : name(pod.node));
      body.push(el("details", { class: "asked", open: at === 0 }, el("summary", {}, title), ...this.#pod(pod)));
    }
    return body;
  }

  #pod(pod) {
    const body = [];
    if (pod.node !== null) body.push(el("p", {}, "It would go to ", this.#node(pod.node), pod.victims.length ? ", on the room of pods that it evicts." : "."));
    else if (pod.nominated) body.push(el("p", {}, "It would wait for room on ", this.#node(pod.nominated), "."));
    if (pod.victims.length) body.push(el("h3", {}, `Evicts ${plural(pod.victims.length, "pod")}`), el("ul", { class: "chips" }, pod.victims.map((each) => el("li", {}, name(each)))));
    if (pod.words) body.push(el("p", {}, name(pod.words.outcome)), ...reasons(pod.explanation, pod.words));
    if (pod.message) body.push(el("h3", {}, "What would be written on the pod"), el("p", { class: "note" }, name(pod.message)));
    return body;
  }

  #node = (node) => el("button", { type: "button", class: "link", onclick: () => this.#openNode(node) }, name(node));
}

function sentence(pods) {
  const placed = pods.filter((pod) => pod.node !== null).length;
  if (pods.length === 1) return placed && pods[0].victims.length ? "It would find a node by evicting pods." : placed ? "It would find a node." : pods[0].nominated ? "It would find room by evicting pods." : "It would find no node.";
  return `${number(placed)} of ${plural(pods.length, "pod")} would find a node.`;
}

function fits(count, openNode) {
  const nodes = Object.entries(count.perNode).sort(([, a], [, b]) => b - a);
  const asked = count.asked === null ? "" : ` of the ${number(count.asked)} asked for`;
  const gangs = count.gangOf === undefined ? "" : ` ${count.fits === 1 ? "gang" : "gangs"} of ${number(count.gangOf)}`;
  const listed = nodes.slice(0, NODES_SHOWN).map(([node, many]) => el("li", {}, `${number(many)} on `, el("button", { type: "button", class: "link", onclick: () => openNode(node) }, name(node))));
  const left = nodes.length - listed.length;
  if (left > 0) listed.push(el("li", {}, `and ${plural(left, "other node")}`));
  return [
    el("p", { class: "sentence" }, el("strong", {}, number(count.fits)), `${gangs} fit${asked}, on ${plural(nodes.length, "node")}.`),
    listed.length ? el("ul", { class: "chips" }, listed) : null,
    count.schedulingGates.length ? el("p", { class: "note" }, "Counted without its gates: ", name(count.schedulingGates.join(", "))) : null,
    count.stoppedBy === null ? null : el("p", { class: "note" }, "The next one: ", name(count.stoppedBy)),
  ].filter(Boolean);
}
