// Makes elements; every text from the cluster becomes a text node, never markup.

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]/gu;

/** Returns `text` with what is invisible, or would turn its neighbours around, written as an escape. */
export function shown(text) {
  return String(text).replace(HIDDEN, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Makes an element; `attributes` are set as attributes but for `class`, `onclick` and `width`, a share of 1. */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") made.className = value;
    else if (name === "onclick") made.addEventListener("click", value);
    else if (name === "width") made.style.width = `${Math.min(100, Math.max(0, 100 * value))}%`;
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** A name from the cluster, kept apart from the direction of the text around it. */
export const name = (text) => el("bdi", {}, shown(text));

export const byId = (id) => document.getElementById(id);

const count = new Intl.NumberFormat("en");
export const number = (value) => count.format(value);
export const plural = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;
export const tenths = (value) => Math.round(10 * value) / 10;
export const percent = (share) => `${Math.floor(100 * share + 1e-9)} %`;

const UNITS = [[2 ** 40, "Ti"], [2 ** 30, "Gi"], [2 ** 20, "Mi"], [2 ** 10, "Ki"]];

/** Writes an amount for reading: cores, binary units or a count, to three digits. */
export function amount(resource, value) {
  if (resource === "cpu") return `${Number((value / 1000).toPrecision(value < 1000 ? 3 : 4))}`;
  if (resource === "memory" || resource === "ephemeral-storage" || resource.startsWith("hugepages-")) {
    for (const [size, unit] of UNITS) if (Math.abs(value) >= size) return `${Number((value / size).toPrecision(3))} ${unit}`;
  }
  return number(value);
}

export function bar(share) {
  return el("div", { class: "bar", "aria-hidden": "true" }, el("span", { width: share, class: share > 1 ? "over" : "" }));
}

export function table(headings, rows) {
  const head = headings.map(([text, kind]) => el("th", { scope: "col", class: kind ?? "" }, text));
  return el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows));
}

export const clock = (time) => new Date(time).toLocaleTimeString("en-GB");
