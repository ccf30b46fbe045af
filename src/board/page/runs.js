// The table of all runs: it is sorted, filtered and kept up to date row by row.

import { el, setText } from "./dom.js";
import { ago, boardTime, duration, lossText, percent, secondsAgo, short, whole, isNumber, NONE } from "./format.js";
import { csvOf, save } from "./download.js";
import { RowWindow } from "./window.js";

const MOST_COMPARED = 28;

export function progressOf(row) {
  if (row.state === "finished") return 1;
  return isNumber(row.epochs_total) && row.epochs_total > 0 ? Math.min(1, row.epochs / row.epochs_total) : null;
}

function progressText(row) {
  if (!row.steps) return NONE;
  // A training that stopped early has not come to its last epoch.
  const part = row.epochs_total > 0 ? Math.min(1, row.epochs / row.epochs_total) : null;
  const epochs = short(Number(row.epochs.toFixed(2)));
  return isNumber(row.epochs_total) ? epochs + " / " + short(row.epochs_total) + (part === null ? "" : " (" + Math.floor(100 * part) + " %)") : epochs;
}

// As it is shown, so that runs that train do not change their places with each line.
function updatedOrder(row, now) {
  const past = secondsAgo(row.updated, now);
  return past === null ? null : -past;
}

const TABLE_COLUMNS = [
  { name: "Run", text: true, value: (row) => row.name, width: "15%" },
  { name: "State", text: true, value: (row) => row.state, width: "8.5%" },
  { name: "Network", text: true, value: (row) => row.network || NONE, rare: true },
  { name: "Epochs", value: (row) => row.epochs, show: progressText, width: "12%" },
  { name: "Loss", value: (row) => row.loss, show: lossText },
  { name: "Accuracy", value: (row) => row.accuracy, show: (row) => percent(row.accuracy) },
  { name: "Validation", value: (row) => row.validation_accuracy, show: (row) => percent(row.validation_accuracy), width: "7.2%" },
  { name: "Best", value: (row) => row.best_accuracy, show: (row) => percent(row.best_accuracy), rare: true },
  { name: "Samples/s", value: (row) => row.speed, show: (row) => short(row.speed), width: "7.2%" },
  { name: "Workers", value: (row) => row.workers, show: (row) => whole(row.workers), rare: true },
  { name: "Worker time", title: "What the run has cost: the time of all its workers", value: (row) => row.worker_seconds, show: (row) => duration(row.worker_seconds), rare: true, width: "9%" },
  { name: "Updated", value: (row) => row.updated, order: updatedOrder, show: (row) => ago(row.updated, boardTime()), width: "8%" },
];

function compare(a, b) {
  const none = (value) => value === null || value === undefined || value === NONE || Number.isNaN(value);
  if (none(a) || none(b)) return none(a) - none(b);
  return typeof a === "string" ? a.localeCompare(b, undefined, { numeric: true }) : a - b;
}

export class RunsPage {
  constructor(store) {
    this.store = store;
    this.lines = new Map();
    // What the reader chose stays while other pages are looked at.
    const kept = (store.table = store.table || { chosen: new Set(), order: { column: TABLE_COLUMNS[TABLE_COLUMNS.length - 1], down: true }, filter: "" });
    this.kept = kept;
    this.chosen = kept.chosen;
    this.filter = el("input", {
      type: "search",
      id: "filter",
      value: kept.filter,
      placeholder: "name, network, state",
      oninput: () => this.filterBy(this.filter.value)
    });
    this.button = el("button", { type: "button", onclick: () => this.compareChosen() }, "Compare");
    this.none = el("button", { type: "button", onclick: () => this.chooseNone() }, "Choose none");
    this.countChosen();
    this.count = el("span", { class: "quiet", role: "status" });
    this.heads = TABLE_COLUMNS.map((column) => el("th", { scope: "col", class: [column.text ? "text" : "", column.rare ? "rare" : ""].join(" ").trim() },
      el("button", { type: "button", title: column.title, onclick: () => this.sortBy(column) }, column.name)));
    this.body = el("tbody");
    const widths = el("colgroup", {}, el("col", { class: "check" }), TABLE_COLUMNS.map((column) => {
      const node = el("col", { class: column.rare ? "rare" : "of-" + column.name.toLowerCase().replace(/\W/g, "-") });
      if (column.width) node.style.width = column.width;
      return node;
    }));
    widths.firstChild.style.width = "34px";
    this.node = el("div", {},
      el("h1", {}, "Runs"),
      el("div", { class: "tools" },
        el("label", { for: "filter" }, "Filter", this.filter), this.button, this.none,
        el("button", { type: "button", onclick: () => this.saveTable() }, "CSV"), this.count),
      (this.holder = el("div", { class: "holder", tabindex: 0, role: "region", "aria-label": "Table of runs" },
        (this.table = el("table", { class: "runs" }, widths,
          el("thead", {}, el("tr", {}, el("th", {}, el("span", { class: "skip" }, "Chosen")), this.heads)), this.body)))));
    this.window = new RowWindow(this.holder, this.body, (line) => this.drawn(line));
    this.update();
  }

  title() {
    return "Runs";
  }

  update() {
    for (const row of this.store.rows.values()) {
      const line = this.lines.get(row.id);
      if (line) line.row = row;
      else this.lines.set(row.id, { row, shown: null, node: null });
    }
    for (const id of this.lines.keys()) {
      if (!this.store.rows.has(id)) this.lines.delete(id);
    }
    for (const id of this.chosen) if (!this.store.rows.has(id)) this.choose(id, false);
    this.arrange();
  }

  // The row as it is now; it is made when it is first seen.
  drawn(line) {
    if (!line.node) this.makeLine(line);
    const { row } = line, last = TABLE_COLUMNS.length - 1;
    setText(line.cells[last], TABLE_COLUMNS[last].show(row));
    if (line.shown === row) return line.node;
    line.shown = row;
    TABLE_COLUMNS.forEach((column, i) => {
      if (i > 1) setText(i === 3 ? line.words : line.cells[i], column.show ? column.show(row) : column.value(row));
    });
    setText(line.link, row.name);
    setText(line.state, row.state);
    line.state.className = "state " + row.state;
    line.state.title = row.reason || "";
    const part = progressOf(row);
    line.bar.style.width = (part === null ? 0 : 100 * part) + "%";
    return line.node;
  }

  makeLine(line) {
    const { row } = line;
    line.link = el("a", { href: "#/run/" + row.id, title: row.folder });
    line.state = el("span", { class: "state" });
    line.bar = el("i");
    line.words = el("span");
    line.check = el("input", {
      type: "checkbox",
      "aria-label": "Choose " + row.name,
      checked: this.chosen.has(row.id),
      onchange: () => this.choose(row.id, line.check.checked)
    });
    line.cells = TABLE_COLUMNS.map((column, i) => el("td", { class: [column.text ? "text" : "", column.rare ? "rare" : "", i === 3 ? "progress" : ""].join(" ").trim() || null },
      i === 0 ? line.link : i === 1 ? line.state : i === 3 ? [line.words, line.bar] : null));
    line.node = el("tr", {}, el("td", {}, line.check), line.cells);
  }

  choose(id, on) {
    if (on) this.chosen.add(id);
    else this.chosen.delete(id);
    this.countChosen();
  }

  chooseNone() {
    this.chosen.clear();
    for (const line of this.lines.values()) if (line.check) line.check.checked = false;
    this.countChosen();
  }

  countChosen() {
    this.none.hidden = this.chosen.size === 0;
    this.button.disabled = this.chosen.size < 2 || this.chosen.size > MOST_COMPARED;
    setText(this.button, this.chosen.size > 1 ? "Compare " + this.chosen.size : "Compare");
  }

  filterBy(words) {
    this.kept.filter = words;
    this.arrange();
  }

  compareChosen() {
    location.hash = "#/run/" + [...this.chosen].join(",");
  }

  sortBy(column) {
    const { order } = this.kept;
    this.kept.order = { column, down: order.column === column ? !order.down : !column.text };
    this.arrange();
  }

  shown() {
    const words = this.filter.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [...this.lines.values()].filter((line) => {
      const text = (line.row.name + " " + line.row.network + " " + line.row.state + " " + line.row.kind).toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const { column, down } = this.kept.order, now = boardTime(), keyOf = column.order || column.value;
    const keys = new Map(rows.map((line) => [line, keyOf(line.row, now)]));
    return rows.sort((a, b) => {
      const first = keys.get(a), second = keys.get(b);
      const missing = compare(first, second);
      const none = (value) => value === null || value === undefined || value === NONE;
      return (down && !none(first) && !none(second) ? -missing : missing) || compare(a.row.name, b.row.name);
    });
  }

  arrange() {
    const wanted = this.shown();
    this.window.set(wanted);
    this.table.setAttribute("aria-rowcount", wanted.length + 1);
    TABLE_COLUMNS.forEach((column, i) => {
      const { order } = this.kept, sorted = order.column === column;
      this.heads[i].setAttribute("aria-sort", sorted ? (order.down ? "descending" : "ascending") : "none");
      setText(this.heads[i].firstChild, column.name + (sorted ? (order.down ? " \u25be" : " \u25b4") : ""));
    });
    const all = this.lines.size + (this.lines.size === 1 ? " run" : " runs");
    setText(this.count, wanted.length === this.lines.size ? all : wanted.length + " of " + all);
  }

  saveTable() {
    const rows = this.shown().map((line) => [line.row.folder, ...TABLE_COLUMNS.map((column) => column.value(line.row))]);
    save("runs.csv", csvOf(["Folder", ...TABLE_COLUMNS.map((column) => column.name)], rows), "text/csv");
  }

  end() {
    this.window.end();
  }
}
