// What `dtrain eval --report` found: which classes are taken for which, the worst mistakes, the score of each class.

import { ask, isExport, picture } from "./api.js";
import { el, note, panel, redraw, replace, svg, table } from "./dom.js";
import { isNumber, percent, short, whole } from "./format.js";
import { RunHead, titleOf } from "./run.js";

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

// Scores are written with more digits than a reader compares.
function scoreText(text) {
  return /^-?\d+\.\d{5,}$/.test(text) ? Number(text).toFixed(4) : text;
}

const TITLES = { "objects.png": "Boxes and masks as annotated, left, and as found, right", "mistakes.png": "Worst mistakes", "reliability.png": "Reliability", "confusion.png": "Confusion" };
const SMALL_WIDTH = 168, SMALL_HEIGHT = 110, SMALL_EDGE = 18, MOST_SMALL = 100, MOST_VALIDATIONS = 300;
const EVALUATION_PAUSE = 3000; // milliseconds between two looks for a report

// Precision over recall of one class, both from 0 to 1.
function smallChart(curve) {
  const x = (value) => SMALL_EDGE + value * (SMALL_WIDTH - SMALL_EDGE - 6), y = (value) => 6 + (1 - value) * (SMALL_HEIGHT - SMALL_EDGE - 6);
  const d = curve.recall.map((recall, i) => (i ? "L" : "M") + x(recall).toFixed(1) + " " + y(curve.precision[i]).toFixed(1)).join("");
  const words = curve.name + ": F1 " + percent(curve.f1) + " of " + whole(curve.samples) + " samples";
  return el("li", {}, el("div", {}, el("b", {}, curve.name), " ", percent(curve.f1)),
    svg("svg", { viewBox: "0 0 " + SMALL_WIDTH + " " + SMALL_HEIGHT, role: "img", "aria-label": words },
      svg("rect", { class: "frame", x: x(0), y: y(1), width: x(1) - x(0), height: y(0) - y(1) }),
      svg("text", { x: SMALL_EDGE - 4, y: y(1) + 8, "text-anchor": "end" }, "1"), svg("text", { x: SMALL_EDGE - 4, y: y(0), "text-anchor": "end" }, "0"),
      svg("text", { x: x(1), y: SMALL_HEIGHT - 6, "text-anchor": "end" }, "recall 1"),
      svg("path", { class: "line", d })));
}

// Of a classifier loss and accuracy, of a detector the average precision of what it finds: name and cell of each column.
function validationColumns(validations) {
  const columns = [["Epoch", (each) => whole(each.epoch)]];
  const share = (figures, key) => (figures && figures[key] >= 0 ? percent(figures[key]) : percent(null)); // -1: nothing to measure
  for (const [what, name] of [["boxes", "Box AP"], ["masks", "Mask AP"]]) {
    if (!validations.some((each) => each[what])) continue;
    columns.push([name, (each) => share(each[what], "ap")], [name + "50", (each) => share(each[what], "ap50")]);
  }
  if (columns.length > 1) return columns;
  columns.push(["Loss", (each) => short(each.loss)], ["Accuracy", (each) => percent(each.accuracy)]);
  const tops = new Set(validations.flatMap((each) => Object.keys(each).filter((name) => /^top_.*_accuracy$/.test(name) && isNumber(each[name]))));
  for (const name of tops) columns.push([titleOf(name), (each) => percent(each[name])]);
  return columns;
}

function validationsPanel(validations) {
  const columns = validationColumns(validations), newest = validations.slice(-MOST_VALIDATIONS).reverse();
  return panel("Validations", table("Each validation of the training", columns.map(([name]) => name), newest.map((each) => columns.map(([, cellOf]) => cellOf(each)))));
}

export class EvaluationPage {
  constructor(store, ids) {
    this.store = store;
    this.id = ids[0];
    this.head = new RunHead(this.id, "evaluation");
    this.report = el("div", {}, note("Looking for reports\u2026"));
    this.course = el("div");
    this.node = el("div", {}, this.head.node, this.report, this.course);
    this.head.update(store.rows.get(this.id));
    this.load();
    if (!isExport) this.timer = setInterval(() => !document.hidden && !this.busy && this.load(), EVALUATION_PAUSE);
  }

  title() {
    return "Evaluation of " + (this.store.rows.get(this.id) || { name: "a run" }).name;
  }

  update() {
    this.head.update(this.store.rows.get(this.id));
  }

  // Validations come with the training, and a report when a command writes one.
  async load() {
    this.busy = true;
    const { chosen } = this;
    try {
      const found = await ask("/api/evaluation", { run: this.id, report: chosen });
      if (!this.over && chosen === this.chosen) this.draw(found);
    } catch (error) {
      redraw(this.report, error.message, () => [note(error.message + (error.hint ? ". " + error.hint : ""))]);
    } finally {
      this.busy = false;
    }
  }

  choose(report) {
    this.chosen = report;
    return this.load();
  }

  draw(found) {
    const { validations, ...report } = found;
    redraw(this.report, report, () => this.reportParts(found));
    redraw(this.course, validations, () => [validations.length ? validationsPanel(validations) : note("No validation is recorded: the first one comes at the end of an epoch, where the training has validation data.")]);
  }

  reportParts(found) {
    const choice = el("select", { onchange: () => choice.value && this.choose(choice.value) }, found.report ? null : el("option", { value: "" }, "of another run\u2026"),
      found.reports.map((name) => el("option", { value: name, selected: name === found.report }, name)));
    const chooser = found.reports.length && !isExport ? el("div", { class: "tools" }, el("label", {}, "Report", choice)) : null;
    if (!found.report) return [note("No report of this run stands beside it. " + found.hint), chooser];
    // The matrix stands above as a table; the mistakes say most.
    const pictures = found.pictures.filter((name) => name !== "confusion.png" || !found.matrix).sort((a, b) => (b === "mistakes.png") - (a === "mistakes.png"));
    const drawn = (name) => el("img", { class: name === "reliability.png" ? "sheet drawn" : "sheet", alt: name.replace(/_/g, " "), src: picture("/api/report", { run: this.id, report: found.report, name }) });
    this.curves = el("div");
    if (found.curves) this.loadCurves(found.report);
    return [chooser,
      found.matrix ? panel("Confusion", confusion(found.matrix)) : null,
      found.scores ? panel("Classes", table("Score of each class", found.scores.names, found.scores.rows.map((row) => row.map(scoreText)))) : null,
      this.curves, pictures.map((name) => panel(TITLES[name] || name, drawn(name)))];
  }

  async loadCurves(report) {
    try {
      const { curves } = await ask("/api/curves", { run: this.id, report });
      if (this.over || !curves.length) return;
      replace(this.curves, panel("Precision over recall, class by class",
        note("Precision upwards and recall to the right, as less and less sure predictions count too. Of each class only the images count that the network names so: a line ends at the recall of the class. The percentage is F1 of all of them; the lowest comes first." + (curves.length > MOST_SMALL ? " The lowest " + MOST_SMALL + " of " + curves.length + "." : "")),
        el("ul", { class: "small-charts" }, curves.slice(0, MOST_SMALL).map(smallChart))));
    } catch (error) {
      replace(this.curves, note(error.message));
    }
  }

  end() {
    this.over = true;
    clearInterval(this.timer);
  }
}
