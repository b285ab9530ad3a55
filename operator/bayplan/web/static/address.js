// What the page's address says after the `#`: which node or pod is open, and how the nodes are shown.

const KEYS = ["node", "pod", "measure", "order", "find"];

/** What the address says, by key; "" for what it does not say. */
export function said() {
  const given = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(KEYS.map((key) => [key, given.get(key) ?? ""]));
}

/** Has the address say `changes` as well; `how` is pushState where the back button is to lead back, else replaceState. */
export function say(changes, how) {
  const told = Object.entries({ ...said(), ...changes }).filter(([, value]) => value);
  const hash = String(new URLSearchParams(told)).replaceAll("%2F", "/");
  if (location.hash !== (hash && `#${hash}`)) history[how](null, "", hash ? `#${hash}` : location.pathname);
}
