// The curves of one run, or of several over each other.

import { el, note, replace, setText } from "./dom.js";
import { ask, isExport } from "./api.js";
import { Chart, keyOf, penOf } from "./chart.js";
import { csvOf, fileName, save, savePng, svgText } from "./download.js";
import { duration, lossText, percent, short, whole, isNumber } from "./format.js";

const RUN_POINTS = 800, CSV_POINTS = 20000;
const RUN_PAUSE = 700; // milliseconds between two looks at a run that trains
const FIRST_COLUMNS = ["loss", "accuracy", "top_k_accuracy", "box_ap", "box_ap50", "mask_ap", "mask_ap50", "learning_rate", "speed"];
const COLUMN_TITLES = { loss: "Loss", accuracy: "Accuracy", top_k_accuracy: "Top-k accuracy", speed: "Samples a second", learning_rate: "Learning rate", gradient_norm: "Gradient norm",
  box_ap: "Average precision of boxes", box_ap50: "Average precision of boxes at overlap 0.50", mask_ap: "Average precision of masks", mask_ap50: "Average precision of masks at overlap 0.50" };
const RUN_TABS = [["run", "Curves"], ["job", "Job"], ["logs", "Logs"], ["model", "Model"], ["data", "Data"], ["evaluation", "Evaluation"]];

// The accuracy among the best k guesses has the k that the run asked for in its name.
const TOP_COLUMN = /^top_(\d+)_accuracy$/;

export function titleOf(column) {
  return COLUMN_TITLES[column] || column.replace(TOP_COLUMN, "Top-$1 accuracy").replace(/_/g, " ");
}

// The name of the run, its tabs, and what the table says of it.
export class RunHead {
  constructor(id, current) {
    this.id = id;
    this.name = el("h1");
    this.state = el("span", { class: "state" });
    this.facts = el("dl", { class: "facts" });
    const tabs = isExport ? RUN_TABS.filter(([tab]) => tab !== "logs") : RUN_TABS;
    this.node = el("div", {}, this.name,
      el("nav", { "aria-label": "Parts of the run", class: "tools" },
        tabs.map(([tab, text]) => el("a", { href: "#/" + tab + "/" + id, "aria-current": tab === current ? "page" : null }, text)), this.state),
      this.facts);
  }

  update(row) {
    if (!row) {
      setText(this.state, "gone: its folder is not there any more");
      this.state.className = "bad";
      return;
    }
    setText(this.name, row.name);
    this.name.title = row.folder;
    setText(this.state, row.state + (row.reason ? ": " + row.reason : ""));
    this.state.className = "state " + row.state;
    const fact = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));
    replace(this.facts,
      fact("Epochs", short(Number(row.epochs.toFixed(2))) + (isNumber(row.epochs_total) ? " / " + short(row.epochs_total) : "")),
      fact("Step", whole(row.steps)), fact("Loss", lossText(row)), fact("Validation", percent(row.validation_accuracy)),
      fact("Best", percent(row.best_accuracy)), fact("Samples/s", short(row.speed)), fact("Workers", whole(row.workers)),
      fact("Training time", duration(row.seconds)));
  }
}

function control(text, node) {
  return el("label", {}, text, node);
}

export class RunPage {
  constructor(store, ids) {
    this.store = store;
    this.ids = ids;
    // Axis, smoothing and scale stay for the next run that is looked at; the part of the axis does not.
    store.view = { axis: "steps", log: false, smoothing: 0, ...store.view, from: undefined, to: undefined };
    this.view = store.view;
    this.answers = new Map();
    this.charts = new Map();
    this.pending = 0;
    this.last = 0;
    this.head = ids.length === 1 ? new RunHead(ids[0], "run") : null;
    this.legend = el("ul", { class: "legend" });
    this.grid = el("div", { class: "grid" });
    this.words = el("p", { class: "quiet", role: "status" });
    this.axis = el("select", { onchange: () => this.turn({ axis: this.axis.value, from: undefined, to: undefined }) },
      el("option", { value: "steps" }, "steps"), el("option", { value: "epochs" }, "epochs"), el("option", { value: "time" }, "time of training"));
    this.axis.value = this.view.axis;
    this.smoothing = el("input", { type: "range", min: 0, max: 0.99, step: 0.01, value: this.view.smoothing, oninput: () => this.smooth() });
    this.smoothText = el("output", {}, String(this.view.smoothing));
    this.log = el("input", { type: "checkbox", checked: this.view.log, onchange: () => this.turn({ log: this.log.checked }) });
    this.all = el("button", { type: "button", disabled: true, onclick: () => this.zoom() }, "Show all");
    this.node = el("div", {}, this.head ? this.head.node : el("h1", {}, ids.length + " runs"),
      el("div", { class: "tools" }, control("Axis", this.axis),
        control("Smoothing", el("span", {}, this.smoothing, " ", this.smoothText)), control("Log scale", this.log), this.all,
        el("button", { type: "button", onclick: () => this.saveCsv() }, "CSV"),
        this.head && !isExport ? el("a", { href: "/api/plot?format=png&run=" + ids[0], download: "run.png" }, "Picture of dtrain plot") : null),
      this.legend, this.words, this.grid,
      note("Drag over a chart to look closer, double-click for all of it. With the keyboard: arrows move, + and \u2212 zoom, 0 shows all, Escape leaves."));
    this.update();
  }

  title() {
    return this.ids.map((id) => (this.store.rows.get(id) || { name: "run" }).name).join(", ");
  }

  smooth() {
    setText(this.smoothText, this.smoothing.value);
    this.view.smoothing = Number(this.smoothing.value);
    this.draw();
  }

  turn(change) {
    Object.assign(this.view, change);
    this.all.disabled = this.view.from === undefined;
    if ("axis" in change || "from" in change) this.load();
    else this.draw();
  }

  zoom(from, to) {
    this.turn({ from, to });
  }

  update(changed) {
    if (this.head) this.head.update(this.store.rows.get(this.ids[0]));
    if (!changed || this.ids.some((id) => changed.has(id))) this.soon();
  }

  soon() {
    if (this.pending) return;
    const wait = Math.max(0, this.last + RUN_PAUSE - performance.now());
    this.pending = setTimeout(() => {
      this.pending = 0;
      this.load();
    }, wait);
  }

  async load() {
    this.last = performance.now();
    const number = (this.number = (this.number || 0) + 1), { axis, from, to } = this.view;
    // A little more than the window, so that a curve leaves it and does not end in it.
    const answers = await Promise.all(this.ids.map((id) => ask("/api/series", { run: id, axis, from, to, points: RUN_POINTS }).catch((error) => ({ error: error.message }))));
    if (number !== this.number || this.over) return;
    this.ids.forEach((id, i) => this.answers.set(id, answers[i]));
    this.draw();
  }

  nameOf(id) {
    const row = this.store.rows.get(id);
    return row ? row.name : id;
  }

  // The columns that any of the runs has, in the order in which people look.
  columns() {
    const names = new Set();
    for (const answer of this.answers.values()) for (const name of Object.keys(answer.columns || {})) names.add(name);
    for (const answer of this.answers.values()) {
      for (const each of answer.validations || [])
        for (const [name, value] of Object.entries(each))
          if (name !== "x" && isNumber(value)) names.add(name);
    }
    const rank = (name) => {
      const at = FIRST_COLUMNS.indexOf(name.replace(TOP_COLUMN, "top_k_accuracy"));
      return at < 0 ? FIRST_COLUMNS.length : at;
    };
    return [...names].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b, undefined, { numeric: true }));
  }

  seriesOf(column) {
    const list = [];
    this.ids.forEach((id, i) => {
      const answer = this.answers.get(id);
      if (!answer || answer.error) return;
      const values = (answer.columns || {})[column];
      const points = (answer.validations || []).filter((each) => isNumber(each[column])).map((each) => ({ x: each.x, y: each[column] }));
      if (!values && !points.length) return;
      const pen = penOf(i), single = this.ids.length === 1;
      const found = values || { mean: [] };
      if (values || !single) list.push({ name: single ? titleOf(column) : this.nameOf(id), pen, x: values ? answer.x : [], count: values ? answer.count : [], mean: found.mean, low: found.low, high: found.high, points: single ? [] : points });
      if (single && points.length) list.push({ name: "Validation", pen: penOf(1), x: points.map((each) => each.x), count: points.map(() => 1), mean: points.map((each) => each.y), points });
    });
    return list;
  }

  draw() {
    const columns = this.columns();
    for (const name of columns) if (!this.charts.has(name)) this.charts.set(name, this.makeChart(name));
    const wanted = columns.map((name) => this.charts.get(name).panel);
    if (wanted.length !== this.grid.children.length || wanted.some((node, i) => this.grid.children[i] !== node)) replace(this.grid, wanted);
    const span = this.span();
    for (const name of columns) {
      this.charts.get(name).chart.show({ ...this.view, span, series: this.seriesOf(name), resumed: this.allOf("resumed"), changes: this.ids.length === 1 ? this.allOf("changes") : [] });
    }
    const errors = [...this.answers.values()].map((answer) => answer.error).filter(Boolean);
    setText(this.words, errors.length ? errors[0] : columns.length ? "" : "No step is recorded yet; the curves appear by themselves.");
    const validated = [...this.answers.values()].some((answer) => (answer.validations || []).length);
    const keys = this.ids.length === 1 ?
        [
          ["training", penOf(0)], ...(validated ? [["validation", penOf(1)]] : []),
          ...(this.allOf("changes").length ? [["change of members", { color: "var(--c3)", dash: "7 3" }]] : [])
        ] :
        this.ids.map((id, i) => [this.nameOf(id), penOf(i)]);
    replace(this.legend, keys.map(([name, pen]) => el("li", {}, keyOf(pen), name)));
  }

  // The ends of the axis, which all charts share.
  span() {
    const ends = [...this.answers.values()].flatMap(
        (answer) => (answer.x && answer.x.length ? [answer.x[0], answer.x[answer.x.length - 1]] : []));
    return ends.length ? [Math.min(...ends), Math.max(...ends)] : null;
  }

  allOf(member) {
    return [...this.answers.values()].flatMap((answer) => answer[member] || []);
  }

  makeChart(name) {
    const chart = new Chart(titleOf(name), (from, to) => this.zoom(from, to));
    const file = () => fileName(this.title() + "_" + name);
    const words = () => titleOf(name) + ", " + this.title();
    const panel = el("section", { class: "panel" },
      el("div", { class: "tools" }, el("h2", {}, titleOf(name)), el("span", { class: "fill" }),
        el("button", { type: "button", "aria-label": "SVG of " + titleOf(name), onclick: () => save(file() + ".svg", svgText(chart.picture, words()), "image/svg+xml") }, "SVG"),
        el("button", { type: "button", "aria-label": "PNG of " + titleOf(name), onclick: () => savePng(file() + ".png", svgText(chart.picture, words())) }, "PNG")),
      chart.node);
    return { chart, panel };
  }

  // Each line of the file, as far as they are not too many; then a row stands for several, and says for how many.
  async saveCsv() {
    const { axis, from, to } = this.view, rows = [];
    const columns = this.columns().filter((name) => [...this.answers.values()].some((answer) => answer.columns && answer.columns[name]));
    for (const id of this.ids) {
      const answer = await ask("/api/series", { run: id, axis, from, to, points: CSV_POINTS }).catch(() => this.answers.get(id));
      if (!answer || !answer.x) continue;
      answer.x.forEach((x, i) => rows.push([this.nameOf(id), x, answer.count[i], ...columns.map((name) => (answer.columns[name] || { mean: [] }).mean[i])]));
    }
    save(fileName(this.title()) + ".csv", csvOf(["run", axis, "lines", ...columns], rows), "text/csv");
  }

  end() {
    this.over = true;
    clearTimeout(this.pending);
    for (const { chart } of this.charts.values()) chart.end();
  }
}
