// What the server says: answers to questions, and the rows of the table as they change. A page that was exported holds
// the answers in itself.

const holder = document.getElementById("recording");
const recording = holder ? JSON.parse(holder.textContent) : null;

export const isExport = recording !== null;

export function address(path, values) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(values || {})) {
    if (value !== undefined && value !== null) words.set(name, value);
  }
  const text = words.toString();
  return text ? path + "?" + text : path;
}

// Where an image comes from: an exported page holds it as text.
export function picture(path, values) {
  return recording ? recording[address(path, values)] || "" : address(path, values);
}

export class Refused extends Error {
  constructor(status, what, hint) {
    super(what);
    this.status = status;
    this.hint = hint || "";
  }
}

export async function ask(path, values) {
  if (recording) return recorded(path, values);
  const response = await fetch(address(path, values), { credentials: "same-origin" });
  return read(response);
}

export async function act(values, run) {
  const response = await fetch(address("/api/action", { run }), {
    method: "POST",
    credentials: "same-origin",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(values),
  });
  return read(response);
}

async function read(response) {
  const answer = await response.json();
  if (!response.ok) throw new Refused(response.status, answer.error || "the board refused", answer.hint);
  return answer;
}

function recorded(path, values) {
  const asked = values || {};
  const key = address(path, path === "/api/series" ? { run: asked.run, axis: asked.axis } : asked.run ? { run: asked.run } : {});
  if (!(key in recording)) throw new Refused(404, "this page was exported, and holds no answer to that", "");
  return recording[key];
}

// Calls changed(rows, gone) for news, and status(words) as the connection comes and goes. `again` is called when it is
// back, because news may have been missed.
export function listen(changed, status, again) {
  if (recording) {
    status("exported", "");
    return;
  }
  let source = null, before = false;
  const open = () => {
    source = new EventSource("/api/stream");
    source.onopen = () => {
      status("live", "live");
      if (before) again();
      before = true;
    };
    source.onmessage = (message) => {
      const news = JSON.parse(message.data);
      changed(news.rows, news.gone);
    };
    source.onerror = () => {
      status(source.readyState === EventSource.CLOSED ? "the board refused: open its address again" : "no answer; trying again", "lost");
    };
  };
  // A browser opens six connections to a board, however many tabs show it, so a tab that is hidden needs none.
  document.addEventListener("visibilitychange", () => {
    before = true;
    if (source) source.close();
    if (!document.hidden) open();
  });
  if (!document.hidden) open();
}
