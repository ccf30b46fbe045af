// The logs of a job's workers: live at their end, and searched as a whole.

import { ask } from "./api.js";
import { el, note, replace, setText } from "./dom.js";
import { bytes, whole } from "./format.js";
import { RunHead } from "./run.js";

const LOG_PAUSE = 500, LOG_KEPT = 2 << 20;
const LOG_BEHIND = 1 << 20; // bytes that a reader of the end need not see

export class LogsPage {
  constructor(store, ids) {
    this.store = store;
    this.id = ids[0];
    this.head = new RunHead(this.id, "logs");
    this.names = el("select", { onchange: () => this.open(this.names.value) });
    this.search = el("input", { type: "search", placeholder: "in the whole log", onchange: () => this.find() });
    this.follow = el("input", { type: "checkbox", checked: true });
    this.text = el("pre", { class: "log", tabindex: 0, role: "region", "aria-label": "Log" });
    this.words = el("p", { class: "quiet", role: "status" });
    this.node = el("div", {}, this.head.node,
      el("div", { class: "tools" }, el("label", {}, "Log", this.names), el("label", {}, "Search", this.search), el("label", {}, this.follow, "Follow the end")),
      this.words, this.text);
    this.head.update(store.rows.get(this.id));
    this.list();
    this.timer = setInterval(() => this.more(), LOG_PAUSE);
  }

  title() {
    return "Logs of " + (this.store.rows.get(this.id) || { name: "a job" }).name;
  }

  update(changed) {
    this.head.update(this.store.rows.get(this.id));
    if (changed && changed.has(this.id)) this.list();
  }

  async list() {
    if (performance.now() < (this.listed || -5000) + 5000) return;
    this.listed = performance.now();
    try {
      const { logs } = await ask("/api/logs", { run: this.id });
      if (!logs.length) setText(this.words, "This run keeps no logs: a training in one process writes to its terminal.");
      const known = [...this.names.options].map((option) => option.value).join("\n");
      if (logs.map((log) => log.name).join("\n") === known) return;
      const chosen = this.names.value;
      replace(this.names, logs.map((log) => el("option", { value: log.name }, log.name + " (" + bytes(log.size) + ")")));
      if (logs.some((log) => log.name === chosen)) this.names.value = chosen;
      else if (logs.length) this.open((logs.find((log) => /\.\d+\.log$/.test(log.name)) || logs[0]).name);
    } catch (error) {
      setText(this.words, error.message);
    }
  }

  open(name) {
    this.names.value = name;
    this.name = name;
    this.next = undefined;
    this.search.value = "";
    this.text.textContent = "";
    setText(this.words, "");
    this.more();
  }

  async more() {
    if (!this.name || this.busy || this.search.value.trim() || document.hidden) return;
    this.busy = true;
    const name = this.name;
    try {
      const piece = await ask("/api/log", { run: this.id, name, from: this.next });
      if (this.over || name !== this.name || this.search.value.trim()) return;
      if (this.next === undefined || piece.next < this.next) this.text.textContent = "";
      this.next = this.follow.checked && piece.size - piece.next > LOG_BEHIND ? undefined : piece.next;
      if (this.next === undefined) return; // the end comes next, without what is before it
      if (piece.cut) setText(this.words, "The last " + bytes(piece.next - piece.from) + " of " + bytes(piece.size) + "; a search reads all of it.");
      if (!piece.text) return;
      this.text.append(piece.text);
      if (this.text.textContent.length > LOG_KEPT) this.text.textContent = this.text.textContent.slice(-LOG_KEPT / 2);
      if (this.follow.checked) this.text.scrollTop = this.text.scrollHeight;
    } catch (error) {
      setText(this.words, error.message);
    } finally {
      this.busy = false;
    }
  }

  async find() {
    const search = this.search.value.trim();
    if (!search) return this.open(this.name);
    try {
      const { matches, more } = await ask("/api/log", { run: this.id, name: this.name, search });
      if (this.over || this.search.value.trim() !== search) return undefined;
      setText(this.words, whole(matches.length) + (more ? " lines and more" : " lines"));
      replace(this.text, matches.map((match) => [el("span", { class: "quiet" }, String(match.line).padStart(6) + "  "), match.text + "\n"]));
    } catch (error) {
      setText(this.words, error.message);
    }
    return undefined;
  }

  end() {
    this.over = true;
    clearInterval(this.timer);
  }
}
