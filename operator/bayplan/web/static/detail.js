// A node's pods, or why a pod is where it is, beside the page.

import { say } from "./address.js";
import { amount, bar, byId, el, name, number, percent, plural, shown, table } from "./dom.js";
import { reasons } from "./reasons.js";
import { ask } from "./session.js";

const STATES = { bound: "on", assumed: "about to be on", nominated: "waits for room on" };

/** The panel; it keeps where the focus was, and gives it back. The page's address says what is open in it. */
export class Detail {
  #dialog = byId("detail"); #asked = 0;

  /** `planned` is whether assumed pods are only planned there, as in a snapshot. */
  constructor(planned) {
    this.planned = planned;
    byId("detail-close").addEventListener("click", () => this.#dialog.close());
    this.#dialog.addEventListener("click", (event) => { if (event.target === this.#dialog) this.#dialog.close(); });
    this.#dialog.addEventListener("close", () => { if (!this.#dialog.open) say({ node: "", pod: "" }, "pushState"); });
  }

  node = (node) => this.#open({ node, pod: "" });

  pod = (namespace, pod) => this.#open({ node: "", pod: `${namespace}/${pod}` });

  #open(wanted) {
    say(wanted, "pushState");
    this.follow(wanted);
  }

  /** Shows the node, or the pod as namespace/name, that the address says, or nothing. */
  follow({ node, pod }) {
    const at = pod.indexOf("/"), asked = new URLSearchParams({ namespace: pod.slice(0, at), name: pod.slice(at + 1) });
    if (node) this.#show(node, `/bayplan/v1/nodes/${encodeURIComponent(node)}`, (answer) => this.#nodeBody(answer));
    else if (pod) this.#show(pod, `/told?${asked}`, (answer) => this.#podBody(answer));
    else this.#dialog.close();
  }

  async #show(title, path, draw) {
    const asked = ++this.#asked;
    byId("detail-title").replaceChildren(name(title));
    byId("detail-body").replaceChildren(el("p", { class: "note", role: "status" }, "Asking"));
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#dialog.scrollTop = 0;
    byId("detail-title").focus();
    let drawn;
    try {
      const response = await ask(path);
      const answer = await response.json();
      drawn = response.ok ? draw(answer) : [el("p", { class: "bad", role: "alert" }, shown(answer.error))];
    } catch {
      drawn = [el("p", { class: "bad", role: "alert" }, "bayplan web does not answer.")];
    }
    if (asked === this.#asked) byId("detail-body").replaceChildren(...drawn);
  }

  #nodeBody(node) {
    const resources = Object.keys(node.allocatable).filter((each) => node.allocatable[each] > 0);
    const meters = resources.map((each) => {
      const taken = node.requested[each] ?? 0, share = taken / node.allocatable[each];
      return el("div", {}, el("div", {}, el("strong", {}, name(each)), ` ${amount(each, taken)} of ${amount(each, node.allocatable[each])}, ${percent(share)}`), bar(share));
    });
    const taints = node.taints.map((each) => el("li", {}, shown(`${each.key}${each.value ? `=${each.value}` : ""}:${each.effect}`)));
    const labels = Object.entries(node.labels).map(([key, value]) => el("li", {}, shown(`${key}=${value}`)));
    const pods = [...node.pods].sort((a, b) => b.priority - a.priority).map((pod) => el("tr", {},
      el("td", {}, el("button", { type: "button", class: "link", onclick: () => this.pod(pod.namespace, pod.name) }, name(`${pod.namespace}/${pod.name}`))),
      el("td", { class: "n" }, number(pod.priority)),
      el("td", {}, shown(Object.entries(pod.requests).map(([each, taken]) => `${each} ${amount(each, taken)}`).join(", "))),
      el("td", {}, pod.state === "assumed" && this.planned ? "would come" : shown(pod.state))));
    return [
      node.unschedulable ? el("p", { class: "bad" }, "Cordoned: it takes no new pods.") : null,
      el("div", { class: "meters" }, meters),
      el("h3", {}, plural(node.pods.length, "pod")),
      el("div", { class: "table-box" }, table([["Pod"], ["Priority", "n"], ["Requests"], ["State"]], pods)),
      taints.length ? el("h3", {}, "Taints") : null, taints.length ? el("ul", { class: "chips" }, taints) : null,
      labels.length ? el("h3", {}, "Labels") : null, labels.length ? el("ul", { class: "chips" }, labels) : null,
    ].filter(Boolean);
  }

  #podBody({ answer, words, waitsWith, firstWithout }) {
    const explanation = answer.explanation;
    const body = [el("p", { class: "sentence" }, standing(answer, waitsWith, this.planned))];
    if (answer.queue && !this.planned) body.push(el("p", { class: "note" }, waiting(answer)));
    if (firstWithout) {
      const { namespace, name: pod } = answer.group.firstWithout;
      body.push(el("h3", {}, "The first of its group without room"), el("p", {}, name(`${namespace}/${pod}: ${firstWithout.outcome}`)), ...reasons(answer.group.missing, firstWithout));
    }
    body.push(el("h3", {}, answer.node !== null ? "If it were scheduled now" : waitsWith ? "By itself, on the nodes as they are now" : "On the nodes as they are now"), el("p", {}, name(words.outcome)));
    body.push(...reasons(explanation, words));
    if (answer.ahead.length) body.push(el("h3", {}, "Ahead of it"), el("ul", {}, answer.ahead.map((each) => el("li", {}, name(`${each.namespace}/${each.name}`), ` priority ${number(each.priority)}`))));
    if (answer.wokenBy.length && !this.planned) body.push(el("h3", {}, "What would have it tried again"), el("ul", { class: "chips" }, answer.wokenBy.map((each) => el("li", {}, shown(`${each.event} (${each.plugin})`)))));
    if (answer.attempts.length) body.push(el("h3", {}, "Attempts that failed"), el("ul", {}, answer.attempts.map((each) => el("li", { class: "note" }, this.planned ? "" : `${shown(each.time)} `, name(each.message)))));
    return body;
  }
}

function standing(answer, waitsWith, planned) {
  if (answer.node !== null) {
    const on = answer.state === "assumed" && planned ? "would be put on" : `is ${STATES[answer.state] ?? "on"}`;
    return [`It ${on} `, name(answer.node), "."].flatMap((part) => part);
  }
  if (answer.nomination) return ["It waits for room on ", name(answer.nomination.node), "."];
  if (waitsWith) return ["It ", name(waitsWith), "."];
  const held = answer.group ? "It waits with its pod group: " : "It is held back by a gate: ";
  return answer.queue?.queue === "gated" ? [held, name(answer.queue.message)] : ["It waits."];
}

function waiting({ queue }) {
  const place = queue.position === null ? queue.queue : `number ${number(queue.position)} in the queue`;
  const retry = queue.nextRetry ? `, next retry ${shown(queue.nextRetry)} at the latest` : "";
  return `${place}, ${plural(queue.attempts, "attempt")}, since ${shown(queue.waitingSince)}${retry}`;
}
