// Shows the server who asks. The printed address brings a token, which is given once for a secret.

const KEY = "bayplan-session";
const AGAIN_MS = 3000;

const token = new URLSearchParams(location.search).get("token");
if (token) history.replaceState(null, "", location.pathname + location.hash);

// Other tabs of this browser have it as well. A cookie would also be sent to other ports of this machine.
const secret = token ? exchanged() : Promise.resolve(localStorage.getItem(KEY));

async function exchanged() {
  const response = await fetch("/open", { method: "POST", body: token }).catch(() => null);
  if (response?.ok) localStorage.setItem(KEY, await response.text());
  return localStorage.getItem(KEY);
}

export async function ask(path, options = {}) {
  return fetch(path, { ...options, headers: { Authorization: `Bearer ${await secret}` } });
}

// Tells the server-sent events at a path, over and over, and what keeps them away; EventSource sends no headers.
export async function listen(path, tell, fail) {
  for (;;) {
    try {
      const response = await ask(path);
      if (response.status === 401) return fail((await response.text()).trim());
      if (response.ok) await read(response.body.pipeThrough(new TextDecoderStream()).getReader(), tell);
    } catch { /* It is told below. */ }
    fail("bayplan web does not answer");
    await new Promise((wait) => setTimeout(wait, AGAIN_MS));
  }
}

async function read(reader, tell) {
  for (let text = "", from = 0; ;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    for (let end; (end = text.indexOf("\n\n", from)) >= 0; from = 0) {
      const event = /^event: (.*)\ndata: (.*)$/.exec(text.slice(0, end));
      if (event) tell(event[1], event[2]);
      text = text.slice(end + 2);
    }
    from = Math.max(text.length - 1, 0);
  }
}
