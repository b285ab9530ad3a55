// Why a pod goes where it goes, or nowhere: the same for a pod that is there and for one that is only asked about.

import { amount, bar, el, name, number, plural, table } from "./dom.js";

/** What would help, why nodes were rejected, and scores, each under a heading. */
export function reasons(explanation, words) {
  const body = [];
  if (words.changes.length) body.push(el("h3", {}, "What would help"), el("ul", { class: "help" }, words.changes.map((each) => el("li", {}, name(each)))));
  if (words.groups.length) {
    body.push(el("h3", {}, "Why nodes were rejected"), el("ul", { class: "causes" }, words.groups.map((text, at) => {
      const count = explanation.groups[at].count;
      return el("li", { class: "cause" }, el("span", {}, el("strong", {}, plural(count, "node")), " ", name(text)), bar(count / explanation.nodes));
    })));
  }
  const scored = [explanation.chosen, explanation.runnerUp].filter(Boolean);
  if (scored.length) body.push(el("h3", {}, "Scores"), ...scored.map(scores));
  return body;
}

function scores(scored) {
  const rows = scored.plugins.filter((each) => each.weighted || each.resources.length).sort((a, b) => b.weighted - a.weighted).flatMap((each) => [
    el("tr", {}, el("td", {}, name(each.plugin)), el("td", { class: "n" }, number(each.score)), el("td", { class: "n" }, `×${number(each.weight)}`), el("td", { class: "n" }, number(each.weighted))),
    ...each.resources.map((of) => el("tr", { class: "sub" },
      el("td", {}, name(of.resource), ` ${amount(of.resource, of.before)} → ${amount(of.resource, of.after)} of ${amount(of.resource, of.allocatable)}`),
      el("td", { class: "n" }, number(of.score)), el("td", { class: "n" }, `×${number(of.weight)}`), el("td", {}))),
  ]);
  return el("div", { class: "table-box" }, el("p", {}, el("strong", {}, name(scored.node)), ` ${number(scored.total)}`),
    table([["Plugin"], ["Score", "n"], ["Weight", "n"], ["Counts", "n"]], rows));
}
