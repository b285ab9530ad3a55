// Shortens names so that they fit where they are drawn: what most of them have in common goes, what tells them apart stays.

const MOST = 0.75;
// So many characters are tried at most: names from a cluster may be long.
const LONGEST = 40;

/** Returns a text that `fits` for each of `names`, in their order. They are left whole if all fit, and "…" stands where something was left out. */
export function shortened(names, fits) {
  let texts = names;
  for (const cut of [withoutEnd, withoutStart]) if (!texts.every(fits)) texts = cut(texts);
  return texts.map((text) => middleOut(text, fits));
}

// Hosts of one domain: ip-10-0-1-12.eu-west-1.compute.internal
function withoutEnd(names) {
  const end = common(names, (name, at) => name.slice(at));
  return end ? names.map((name) => (name.endsWith(end) && name !== end ? `${name.slice(0, -end.length)}…` : name)) : names;
}

// Nodes of one pool: gke-prod-default-pool-8b3f9a2c-x7k2
function withoutStart(names) {
  const start = common(names, (name, at) => name.slice(0, at + 1));
  return start ? names.map((name) => (name.startsWith(start) && name !== start ? `…${name.slice(start.length)}` : name)) : names;
}

/** The longest part that most of the names have, which begins or ends at a separator; none of a single name. */
function common(names, part) {
  const counts = new Map();
  let longest = "";
  if (names.length < 2) return longest;
  for (const name of names) {
    for (const { index } of name.matchAll(/[-.]/g)) {
      const found = part(name, index), count = (counts.get(found) ?? 0) + 1;
      counts.set(found, count);
      if (count >= MOST * names.length && found.length > longest.length) longest = found;
    }
  }
  return longest;
}

/** Leaves out as little of the middle as needed: names differ at their ends, most of all in what follows the last separator. */
function middleOut(text, fits) {
  if (text.length <= LONGEST * 2 && fits(text)) return text;
  const last = /[^-.]*$/.exec(text)[0].length;
  let kept = LONGEST, cut = text;
  do {
    const end = Math.max(Math.ceil(kept / 2), Math.min(last, Math.floor((kept * 2) / 3)));
    cut = `${text.slice(0, kept - end)}…${text.slice(-end)}`;
  } while (--kept > 1 && !fits(cut));
  return cut;
}
