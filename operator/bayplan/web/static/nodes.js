// The nodes as columns, how full each is, and in which order they are shown.

const SKIPPED = "pods";

/** The newest answer about all nodes; map and table read it. */
export class Nodes {
  constructor(answer, measure) {
    this.answer = answer;
    this.names = answer.names;
    this.count = answer.names.length;
    this.measure = measure;
    this.shares = new Float64Array(this.count);
    this.dominant = new Int16Array(this.count);
    // Pods are few beside what a node may hold, so they fill it last; a node full of pods is full all the same.
    const named = measure === "dominant" ? answer.resources : [measure];
    named.forEach((resource) => this.#take(resource, answer.resources.indexOf(resource)));
  }

  #take(resource, at) {
    const requested = this.answer.requested[resource] ?? [];
    const allocatable = this.answer.allocatable[resource] ?? [];
    for (let i = 0; i < this.count; i++) {
      const taken = requested[i] ?? 0;
      const share = allocatable[i] > 0 ? taken / allocatable[i] : taken > 0 ? 2 : 0;
      if (share > this.shares[i]) {
        this.shares[i] = share;
        this.dominant[i] = at;
      }
    }
  }

  /** The resource that a node is fullest of. */
  resource(i) {
    return this.measure === "dominant" ? this.answer.resources[this.dominant[i]] ?? SKIPPED : this.measure;
  }

  /** Which colour of the legend: 0 for no pods, 1 to 5 by fullness, 6 for more than there is. */
  step(i) {
    const share = this.shares[i];
    if (share > 1) return 6;
    if (this.answer.pods[i] === 0 && share === 0) return 0;
    return share <= 0.25 ? 1 : share <= 0.5 ? 2 : share <= 0.75 ? 3 : share <= 0.9 ? 4 : 5;
  }

  /** The nodes whose names contain `sought`, in the order asked for. */
  order(how, sought) {
    const found = [];
    for (let i = 0; i < this.count; i++) if (!sought || this.names[i].includes(sought)) found.push(i);
    // Their order by name is that of the answer, and sorting is stable.
    if (how === "full") found.sort((a, b) => this.shares[b] - this.shares[a]);
    return found;
  }

  sentence(i, percent, plural) {
    const marks = [];
    if (this.answer.unschedulable[i]) marks.push("cordoned");
    if (this.answer.emptiable[i]) marks.push("could be emptied");
    const pods = this.answer.pods[i];
    const full = pods || this.shares[i] ? `${percent(this.shares[i])} of ${this.resource(i)}, ${plural(pods, "pod")}` : "no pods";
    return [full, ...marks].join(", ");
  }
}
