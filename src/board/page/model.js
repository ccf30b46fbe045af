// The network of a run: its layers with their shapes, and how the numbers of each tensor are spread.

import { ask, isExport } from "./api.js";
import { el, missingNote, note, panel, redraw, replace, svg, table } from "./dom.js";
import { short, whole, NONE } from "./format.js";
import { graphPicture } from "./graph.js";
import { RunHead } from "./run.js";

const MODEL_PAUSE = 3000; // milliseconds between two looks for a checkpoint

function shapeText(shape) {
  return shape && shape.length ? shape.join(" \u00d7 ") : NONE;
}

// What a layer is set to, without what other columns say.
function settingsText(node) {
  return Object.entries(node).filter(([name]) => !["name", "layer", "inputs", "shape", "parameters", "tensors"].includes(name))
    .map(([name, value]) => name + "=" + (typeof value === "object" ? JSON.stringify(value) : value)).join(" ");
}

function histogram(spread) {
  const most = Math.max(1, ...spread.bins), wide = 220 / spread.bins.length;
  return svg("svg", { class: "histogram", viewBox: "0 0 220 42", role: "img", "aria-label": "from " + short(spread.low) + " to " + short(spread.high) },
    spread.bins.map((count, i) => svg("rect", { x: i * wide, width: Math.max(0.5, wide - 1), y: 42 - 40 * (count / most), height: 40 * (count / most) })));
}

// The picture with its ends below it.
function spreadCell(spread) {
  return el("div", { class: "spread" }, histogram(spread), el("span", {}, short(spread.low)), el("span", {}, short(spread.high)));
}

export class ModelPage {
  constructor(store, ids) {
    this.store = store;
    this.id = ids[0];
    this.head = new RunHead(this.id, "model");
    this.content = el("div", {}, note("Reading the newest checkpoint\u2026"));
    this.node = el("div", {}, this.head.node, this.content);
    this.head.update(store.rows.get(this.id));
    this.load();
    if (!isExport) this.timer = setInterval(() => !document.hidden && !this.busy && this.load(), MODEL_PAUSE);
  }

  title() {
    return "Model of " + (this.store.rows.get(this.id) || { name: "a run" }).name;
  }

  update() {
    this.head.update(this.store.rows.get(this.id));
  }

  // The newest checkpoint, until the reader chooses one or opens its tensors; others are offered as they are saved.
  async load() {
    this.busy = true;
    const { chosen } = this;
    try {
      const model = await ask("/api/model", { run: this.id, checkpoint: chosen });
      if (this.over || chosen !== this.chosen) return;
      if (model.missing) return redraw(this.content, model, () => [missingNote(model)]);
      const { checkpoints, ...shown } = model;
      redraw(this.content, shown, () => this.parts(model));
      this.offer(model);
      return undefined;
    } catch (error) {
      redraw(this.content, error.message, () => [note(error.message + (error.hint ? ". " + error.hint : ""))]);
      return undefined;
    } finally {
      this.busy = false;
    }
  }

  choose(checkpoint) {
    this.chosen = checkpoint;
    return this.load();
  }

  offer(model) {
    const names = model.checkpoints.join("\n");
    if (this.choice.offered === names) return;
    this.choice.offered = names;
    replace(this.choice, model.checkpoints.map((name) => el("option", { value: name, selected: name === model.checkpoint }, name)));
  }

  parts(model) {
    const fact = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));
    this.choice = el("select", { onchange: () => this.choose(this.choice.value) });
    this.spreads = el("div", {}, isExport ? note("An exported page holds no weights.") :
      el("button", { type: "button", onclick: () => this.loadSpreads(model.checkpoint) }, "Show how weights and the optimizer's state are spread"));
    return [
      el("div", { class: "tools" }, el("label", {}, "Checkpoint", this.choice)),
      el("dl", { class: "facts" }, fact("Network", model.network), fact("Parameters", whole(model.parameters)), fact("Optimizer", model.optimizer), fact("Data type", model.dtype),
        fact("Weights", el("code", { title: "SHA-256 of the weights: equal runs have equal ones" }, model.weights_sha256.slice(0, 16)))),
      panel("Weights and optimizer state", this.spreads),
      panel("Graph", graphPicture(model.nodes)),
      panel("Layers", table("All layers in the order in which they compute", ["Layer", "Kind", "Inputs", "Output", "Parameters", "Settings"],
        model.nodes.map((node) => [node.name, node.layer, (node.inputs || []).join(", "), shapeText(node.shape), whole(node.parameters || 0), settingsText(node)])))];
  }

  async loadSpreads(checkpoint) {
    this.chosen = checkpoint;
    replace(this.spreads, note("Reading the tensors\u2026"));
    try {
      const { tensors, state } = await ask("/api/spread", { run: this.id, checkpoint });
      replace(this.spreads, table("Each tensor of the checkpoint. " + state.name + ": " + state.meaning,
        ["Tensor", "Shape", "Mean", "Deviation", "Weights", state.name],
        tensors.map((one) => [one.name, shapeText(one.shape), short(one.weights.mean), short(one.weights.deviation), spreadCell(one.weights), one.state ? spreadCell(one.state) : NONE])));
    } catch (error) {
      replace(this.spreads, note(error.message));
    }
  }

  end() {
    this.over = true;
    clearInterval(this.timer);
  }
}
