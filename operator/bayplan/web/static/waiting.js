// The pods that wait, together by what keeps them waiting.

import { bar, el, name, number, plural, shown } from "./dom.js";

const NAMED = 8;
const GROUPS = 12;
// What kube-scheduler writes on a pod that fits nowhere.
const NOWHERE = /^0\/(\d+) nodes are available: (.*?)\.(?: preemption: (.*))?$/s;
const STATES = { active: "to be tried next", backoff: "to be tried again soon", unschedulable: "fits on no node", gated: "held back by a gate or with its pod group" };

/** Reads a message: how many nodes, and for how many of them what is in the way; null if it is of another kind. */
export function causes(message) {
  const found = NOWHERE.exec(message);
  if (!found) return null;
  const parts = found[2].split(/, (?=\d+ )/).map((part) => /^(\d+) (.*)$/s.exec(part)).filter(Boolean);
  if (!parts.length) return null;
  return { nodes: Number(found[1]), parts: parts.map(([, count, text]) => ({ count: Number(count), text })).sort((a, b) => b.count - a.count) };
}

/** Puts pods together that wait for the same, the most pods first. */
export function grouped(items) {
  const groups = new Map();
  for (const item of items) {
    const read = causes(item.message);
    // A message that names the pod is another one for each.
    const said = item.message.replaceAll(item.name, "");
    const key = item.queue === "active" && !item.message ? "active" : `${item.queue}\n${read ? read.parts.map((part) => part.text).sort().join("\n") : said}`;
    if (!groups.has(key)) groups.set(key, { queue: item.queue, message: item.message, read, items: [] });
    groups.get(key).items.push(item);
  }
  return [...groups.values()].sort((a, b) => b.items.length - a.items.length);
}

/** Draws them; `open` shows a pod. */
export function showWaiting(box, note, answer, open) {
  const groups = grouped(answer.items), gangs = inRows(answer.items);
  note.textContent = answer.items.length < answer.total ? `the first ${number(answer.items.length)} of ${number(answer.total)}` : "";
  if (!groups.length) {
    box.replaceChildren(el("p", { class: "good" }, "No pod waits."));
    return;
  }
  const drawn = groups.slice(0, GROUPS).map((group) => el("section", { class: "reason" }, heading(group), told(group), pods(group, gangs, open)));
  const left = groups.length - drawn.length;
  if (left > 0) drawn.push(el("p", { class: "reason note" }, `and ${plural(left, "other reason")}`));
  box.replaceChildren(...drawn);
}

function heading(group) {
  const many = group.items.length;
  if (!group.read) return el("h3", {}, `${plural(many, "pod")}: ${many === 1 ? STATES[group.queue] : STATES[group.queue].replace("fits", "fit")}`);
  const first = group.read.parts[0].text.replace(/^node\(s\) /, "");
  return el("h3", {}, `${plural(many, "pod")}: `, name(first), el("span", { class: "note" }, group.queue === "unschedulable" ? "" : `, ${STATES[group.queue]}`));
}

function told(group) {
  if (!group.read) return group.message ? el("p", { class: "note" }, name(group.message)) : null;
  return el("ul", { class: "causes" }, group.read.parts.map((part) => el("li", { class: "cause" },
    el("span", {}, `${shown(part.text)}: ${number(part.count)} of ${plural(group.read.nodes, "node")}`), bar(part.count / group.read.nodes))));
}

/** Members of a gang by the gang, other pods by themselves. */
function inRows(items) {
  const rows = new Map();
  for (const item of items) {
    const row = item.group ? `${item.namespace}/${item.group}` : item;
    if (!rows.has(row)) rows.set(row, []);
    rows.get(row).push(item);
  }
  return rows;
}

function pods(group, gangs, open) {
  const rows = [...inRows(group.items)].slice(0, NAMED);
  const named = rows.map(([gang, [first]]) => el("li", {},
    el("button", { type: "button", class: "link", onclick: () => open(first.namespace, first.name) }, name(`${first.namespace}/${first.name}`)),
    first.group ? el("span", { class: "note" }, " of gang ", name(first.group), `, of which ${plural(gangs.get(gang).length, "pod")} wait`) : null));
  const left = rows.reduce((rest, [, items]) => rest - items.length, group.items.length);
  if (left > 0) named.push(el("li", { class: "note" }, `and ${number(left)} more`));
  return el("ul", { class: "pods" }, named);
}
