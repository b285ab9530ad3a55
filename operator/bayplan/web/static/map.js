// Draws nodes on a canvas, in slices so that no frame waits for thousands of them.

import { percent, plural, shown } from "./dom.js";
import { shortened } from "./names.js";

const SLICE_MS = 6;
const TILES = 140;
const GAP = 2;
const PAD = 7;
// Few nodes do not fill the width: a name of usual length fits.
const WIDEST = 320;
const NAME_FONT = "600 11px system-ui, 'DejaVu Sans', sans-serif";
// So many characters are measured at most: names from a cluster may be long.
const LONGEST = 40;

export class NodeMap {
  #canvas; #now; #open; #context;
  #nodes = null; #order = []; #place = new Map(); #labels = new Map(); #focus = -1; #hover = -1;
  #columns = 1; #cellWidth = 10; #cellHeight = 10; #width = 0; #colours = null; #drawing = 0; #left = [];

  constructor(canvas, now, open) {
    this.#canvas = canvas;
    this.#now = now;
    this.#open = open;
    this.#context = canvas.getContext("2d");
    new ResizeObserver(() => this.#layout()).observe(canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.#colours = null; this.#redraw(); });
    canvas.addEventListener("pointermove", (event) => this.#point(event));
    canvas.addEventListener("pointerleave", () => this.#hovered(-1));
    canvas.addEventListener("click", (event) => {
      this.#point(event);
      if (this.#hover >= 0) { this.#focusOn(this.#hover); this.#open(this.#nodes.names[this.#hover]); }
    });
    canvas.addEventListener("keydown", (event) => this.#key(event));
    canvas.addEventListener("focus", () => { if (this.#focus < 0 && this.#order.length) this.#focusOn(this.#order[0]); else this.#redraw(); });
    canvas.addEventListener("blur", () => this.#redraw());
  }

  show(nodes, order) {
    const focused = this.#focus >= 0 ? this.#nodes.names[this.#focus] : null;
    const same = this.#nodes !== null && this.#order.length === order.length;
    this.#nodes = nodes;
    this.#order = order;
    this.#place = new Map(order.map((node, place) => [node, place]));
    this.#hover = -1;
    this.#canvas.title = "";
    this.#focus = focused === null ? -1 : nodes.names.indexOf(focused);
    if (!this.#place.has(this.#focus)) this.#focus = -1;
    this.#tell(this.#focus);
    if (same) { this.#label(); this.#redraw(); } else this.#layout();
  }

  #layout() {
    const box = this.#canvas.parentElement;
    const width = box.clientWidth;
    if (!this.#nodes || !width) return;
    const height = width < 600 ? 260 : 340;
    // The room that is kept until there is something to draw.
    box.style.minHeight = "0";
    const count = this.#order.length;
    if (count <= TILES) {
      this.#columns = Math.max(1, Math.min(count, Math.floor(width / (width < 600 ? 84 : 92))));
      this.#cellWidth = Math.min(WIDEST, Math.floor(width / this.#columns));
      const rows = Math.ceil(count / this.#columns);
      this.#cellHeight = Math.max(34, Math.min(58, Math.floor(height / rows)));
    } else {
      let size = Math.max(5, Math.floor(Math.sqrt((width * height) / count)));
      while (size > 5 && Math.floor(width / size) * Math.floor(height / size) < count) size--;
      this.#columns = Math.floor(width / size);
      this.#cellWidth = this.#cellHeight = size;
    }
    const rows = Math.ceil(count / this.#columns);
    const scale = devicePixelRatio || 1;
    this.#width = width;
    this.#canvas.width = Math.floor(width * scale);
    this.#canvas.height = Math.floor((rows * this.#cellHeight + GAP) * scale);
    this.#canvas.style.height = `${rows * this.#cellHeight + GAP}px`;
    this.#context.setTransform(scale, 0, 0, scale, 0, 0);
    this.#label();
    this.#redraw();
  }

  #label() {
    if (this.#order.length > TILES) return;
    this.#context.font = NAME_FONT;
    const texts = shortened(this.#order.map((node) => shown(this.#nodes.names[node])), (text) => this.#context.measureText(text).width <= this.#cellWidth - 2 - 2 * PAD);
    this.#labels = new Map(this.#order.map((node, place) => [node, texts[place]]));
  }

  #redraw() {
    if (!this.#nodes) return;
    this.#colours ??= colours();
    this.#left = this.#order;
    const first = this.#drawing === 0;
    this.#drawing = 1;
    this.#from = 0;
    if (first) requestAnimationFrame(() => this.#slice());
  }

  #from = 0;

  #slice() {
    const end = performance.now() + SLICE_MS;
    const rows = Math.ceil(this.#order.length / this.#columns);
    if (this.#from === 0) this.#context.clearRect(0, rows * this.#cellHeight, this.#width, 1000);
    while (this.#from < this.#order.length) {
      this.#cell(this.#from++);
      if (this.#from % 64 === 0 && performance.now() > end) { requestAnimationFrame(() => this.#slice()); return; }
    }
    const last = this.#order.length % this.#columns;
    if (last) this.#context.clearRect(last * this.#cellWidth, (rows - 1) * this.#cellHeight, this.#width, this.#cellHeight);
    this.#drawing = 0;
    this.#canvas.dataset.drawn = String(this.#order.length);
    // What is marked goes over its neighbours.
    for (const node of [this.#hover, this.#focus]) if (this.#place.has(node)) this.#mark(node);
  }

  #cell(place) {
    const node = this.#order[place];
    const context = this.#context;
    const x = (place % this.#columns) * this.#cellWidth, y = Math.floor(place / this.#columns) * this.#cellHeight;
    const big = this.#order.length <= TILES;
    const gap = big ? 4 : this.#cellWidth > 9 ? GAP : 1;
    const w = this.#cellWidth - gap, h = this.#cellHeight - gap;
    const { fills, edge, accent, soft } = this.#colours;
    const step = this.#nodes.step(node);
    context.clearRect(x, y, this.#cellWidth, this.#cellHeight);
    context.fillStyle = fills[step];
    if (big) { context.beginPath(); context.roundRect(x + 1, y + 1, w, h, 5); context.fill(); } else context.fillRect(x, y, w, h);
    if (step === 0) { context.strokeStyle = edge; context.lineWidth = 1; context.strokeRect(x + .5 + (big ? 1 : 0), y + .5 + (big ? 1 : 0), w - 1, h - 1); }
    if (this.#nodes.answer.unschedulable[node]) hatch(context, big ? x + 1 : x, big ? y + 1 : y, w, h, this.#ink(step), big ? 8 : 4);
    if (big) {
      context.fillStyle = step === 0 ? soft : this.#ink(step);
      context.font = NAME_FONT;
      context.fillText(this.#labels.get(node), x + PAD, y + h / 2 - 3);
      context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
      const told = step === 0 ? "no pods" : `${percent(this.#nodes.shares[node])} ${short(this.#nodes.resource(node))}`;
      context.fillText(cut(context, shown(told), w - 2 * PAD + 2), x + PAD, y + h / 2 + 12);
    }
    if (this.#nodes.answer.emptiable[node]) {
      const thick = big ? 3 : Math.max(1, Math.min(3, Math.floor(w / 4)));
      context.strokeStyle = accent;
      context.lineWidth = thick;
      const inset = thick / 2 + (big ? 1 : 0);
      if (big) { context.beginPath(); context.roundRect(x + inset, y + inset, w + 2 - 2 * inset, h + 2 - 2 * inset, 5); context.stroke(); }
      else context.strokeRect(x + inset, y + inset, w - thick, h - thick);
    }
  }

  #ink(step) {
    return this.#colours.bright[step] ? "#ffffff" : this.#colours.ink[step] ?? this.#colours.text;
  }

  #mark(node) {
    const place = this.#place.get(node);
    const x = (place % this.#columns) * this.#cellWidth, y = Math.floor(place / this.#columns) * this.#cellHeight;
    this.#context.strokeStyle = node === this.#focus && document.activeElement === this.#canvas ? this.#colours.focus : this.#colours.text;
    this.#context.lineWidth = 3;
    this.#context.strokeRect(x + .5, y + .5, this.#cellWidth - 2, this.#cellHeight - 2);
  }

  #at(event) {
    const box = this.#canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / this.#cellWidth), row = Math.floor((event.clientY - box.top) / this.#cellHeight);
    return column < 0 || column >= this.#columns || row < 0 ? -1 : this.#order[row * this.#columns + column] ?? -1;
  }

  #point(event) {
    if (this.#nodes) this.#hovered(this.#at(event));
  }

  #hovered(node) {
    if (node === this.#hover) return;
    this.#hover = node;
    this.#canvas.title = node >= 0 ? shown(this.#nodes.names[node]) : "";
    this.#tell(node >= 0 ? node : this.#focus);
    this.#redraw();
  }

  #focusOn(node) {
    this.#focus = node;
    this.#tell(node);
    this.#redraw();
  }

  #tell(node) {
    const nothing = this.#order.length ? "\u00a0" : this.#nodes.count ? "No node of that name." : "The cluster has no nodes.";
    const text = node < 0 ? nothing : `${shown(this.#nodes.names[node])}: ${shown(this.#nodes.sentence(node, percent, plural))}`;
    // What did not change is not read out again.
    if (this.#now.textContent !== text) this.#now.textContent = text;
  }

  #key(event) {
    if (!this.#order.length) return;
    const place = this.#place.get(this.#focus) ?? 0;
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.#columns, ArrowUp: -this.#columns };
    if (event.key in steps) {
      const next = place + steps[event.key];
      this.#focusOn(this.#order[next >= 0 && next < this.#order.length ? next : place]);
    } else if (event.key === "Home") this.#focusOn(this.#order[0]);
    else if (event.key === "End") this.#focusOn(this.#order[this.#order.length - 1]);
    else if (event.key === "Enter" || event.key === " ") { if (this.#focus >= 0) this.#open(this.#nodes.names[this.#focus]); }
    else return;
    event.preventDefault();
  }
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  return {
    fills: [of("--s0"), of("--s1"), of("--s2"), of("--s3"), of("--s4"), of("--s5"), of("--over")],
    // Which steps are dark enough for white text, and what the others are written in.
    bright: dark ? [0, 1, 1, 1, 0, 0, 0] : [0, 0, 0, 0, 1, 1, 1],
    ink: dark ? { 4: "#06121f", 5: "#06121f", 6: "#06121f" } : {},
    edge: of("--edge"), accent: of("--accent"), soft: of("--soft"), text: of("--text"), focus: of("--focus"),
  };
}

function hatch(context, x, y, w, h, colour, every) {
  context.save();
  context.beginPath();
  context.rect(x, y, w, h);
  context.clip();
  context.strokeStyle = colour;
  context.globalAlpha = .5;
  context.lineWidth = 1;
  context.beginPath();
  for (let at = -h; at < w; at += every) { context.moveTo(x + at, y + h); context.lineTo(x + at + h, y); }
  context.stroke();
  context.restore();
}

const short = (resource) => (resource === "memory" ? "mem" : resource.slice(resource.lastIndexOf("/") + 1));

function cut(context, whole, width) {
  const text = whole.slice(0, LONGEST);
  if (whole.length <= LONGEST && context.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > width) end--;
  return `${text.slice(0, end)}…`;
}
