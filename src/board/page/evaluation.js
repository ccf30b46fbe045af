// What `dtrain eval --report` found: which classes are taken for which, the worst mistakes, the score of each class.

import { address, ask, isExport } from "./api.js";
import { el, note, panel, replace, table } from "./dom.js";
import { percent, short, whole } from "./format.js";
import { RunHead } from "./run.js";

function confusion(matrix) {
  const most = Math.max(1, ...matrix.rows.map((row, i) => Math.max(...row.map((count, j) => (i === j ? 0 : count)))));
  const cell = (count, i, j) => {
    const node = el("td", { title: matrix.names[i] + " taken for " + matrix.names[j] + ": " + count }, count || "");
    if (count) node.style.background = i === j ? "var(--bar)" : "color-mix(in srgb, var(--c1) " + Math.round(10 + (35 * count) / most) + "%, var(--paper))";
    return node;
  };
  return el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Confusion matrix" }, el("table", { class: "matrix" },
    el("caption", {}, "Rows: what it is. Columns: what the network says."),
    el("thead", {}, el("tr", {}, el("th", { scope: "col", class: "text" }, "class"), matrix.names.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, matrix.rows.map((row, i) => el("tr", {}, el("th", { scope: "row", class: "text" }, matrix.names[i]), row.map((count, j) => cell(count, i, j)))))));
}

export class EvaluationPage {
  constructor(store, ids) {
    this.store = store;
    this.id = ids[0];
    this.head = new RunHead(this.id, "evaluation");
    this.content = el("div", {}, note("Looking for reports\u2026"));
    this.node = el("div", {}, this.head.node, this.content);
    this.head.update(store.rows.get(this.id));
    this.load();
  }

  title() {
    return "Evaluation of " + (this.store.rows.get(this.id) || { name: "a run" }).name;
  }

  update() {
    this.head.update(this.store.rows.get(this.id));
  }

  async load(report) {
    try {
      const found = await ask("/api/evaluation", { run: this.id, report });
      if (!this.over) this.draw(found);
    } catch (error) {
      replace(this.content, note(error.message + (error.hint ? ". " + error.hint : "")));
    }
  }

  draw(found) {
    const curve = found.validations.length ? panel("Validations", table("Each validation of the training", ["Epoch", "Loss", "Accuracy", "Top-k accuracy"],
      found.validations.slice().reverse().slice(0, 300).map((each) => [whole(each.epoch), short(each.loss), percent(each.accuracy), percent(each.top_k_accuracy)]))) : null;
    if (!found.report) {
      replace(this.content, note("No report stands beside this run. " + found.hint), curve);
      return;
    }
    const choice = el("select", { onchange: () => this.load(choice.value) }, found.reports.map((name) => el("option", { value: name, selected: name === found.report }, name)));
    replace(this.content, el("div", { class: "tools" }, el("label", {}, "Report", choice)),
      found.matrix ? panel("Confusion", confusion(found.matrix)) : null,
      found.scores ? panel("Classes", table("Score of each class", found.scores.names, found.scores.rows)) : null,
      isExport ? null : found.pictures.map((name) => panel(name, el("img", { class: "sheet", alt: name.replace(/_/g, " "), src: address("/api/report", { run: this.id, report: found.report, name }) }))),
      curve);
  }

  end() {
    this.over = true;
  }
}
