// A network as a picture: a box for each layer, from the image down to the loss. What only follows one layer, such as
// its batch norm and its activation, stands in the same box.

import { el, svg } from "./dom.js";
import { short } from "./format.js";

const BOX_WIDTH = 232, BOX_GAP = 18, LINE_HEIGHT = 15, RANK_GAP = 22, LANE_WIDTH = 9, GRAPH_EDGE = 10;
const FOLLOWERS = new Set(["batch_norm", "layer_norm", "activation", "dropout", "scale", "layer_scale", "flatten", "softmax_loss"]);
const FAMILIES = [["convolution", 0, ["convolution"]], ["product", 1, ["dense", "attention"]], ["pooling", 2, ["pooling"]],
  ["several inputs", 3, ["add", "concat", "multiply"]], ["other", 5, []]];
const MOST_BOXES = 1200;

function familyOf(kind) {
  return FAMILIES.find(([, , kinds]) => kinds.includes(kind)) || FAMILIES[FAMILIES.length - 1];
}

function shapeOf(node) {
  return (node.shape || []).join("\u00d7");
}

// Boxes in the order of the layers: { nodes, inputs: [numbers of boxes] }.
export function boxesOf(nodes) {
  const users = new Map(), boxOf = new Map(), boxes = [];
  for (const node of nodes) for (const name of node.inputs || []) users.set(name, (users.get(name) || 0) + 1);
  for (const node of nodes) {
    const inputs = node.inputs || [], before = boxOf.get(inputs[0]);
    const follows = inputs.length === 1 && before !== undefined && FOLLOWERS.has(node.layer) && users.get(inputs[0]) === 1 &&
      boxes[before].nodes[boxes[before].nodes.length - 1].name === inputs[0];
    if (follows) {
      boxes[before].nodes.push(node);
      boxOf.set(node.name, before);
      continue;
    }
    boxOf.set(node.name, boxes.length);
    boxes.push({ nodes: [node], inputs: [...new Set(inputs.map((name) => boxOf.get(name)).filter((at) => at !== undefined))] });
  }
  return boxes;
}

// Gives each box its rank, the longest way from the image, and each edge over more than one rank a lane of its own at
// the right, so that no edge runs through a box.
export function layOut(boxes) {
  const ranks = [];
  for (const box of boxes) {
    box.rank = box.inputs.length ? 1 + Math.max(...box.inputs.map((at) => boxes[at].rank)) : 0;
    (ranks[box.rank] = ranks[box.rank] || []).push(box);
  }
  const widest = Math.max(...ranks.map((row) => row.length));
  let y = GRAPH_EDGE;
  for (const row of ranks) {
    row.forEach((box, i) => {
      box.x = GRAPH_EDGE + ((widest - row.length) / 2 + i) * (BOX_WIDTH + BOX_GAP);
      box.y = y;
      box.height = (1 + box.nodes.length) * LINE_HEIGHT + 8;
    });
    y += Math.max(...row.map((box) => box.height)) + RANK_GAP;
  }
  const lanes = [], edges = [];
  for (const to of boxes) {
    for (const at of to.inputs) {
      const from = boxes[at];
      if (to.rank - from.rank === 1) {
        edges.push({ from, to, lane: -1 });
        continue;
      }
      let lane = lanes.findIndex((end) => end <= from.rank);
      if (lane < 0) lane = lanes.length;
      lanes[lane] = to.rank;
      edges.push({ from, to, lane });
    }
  }
  const right = GRAPH_EDGE + widest * (BOX_WIDTH + BOX_GAP);
  return { edges, right, width: right + lanes.length * LANE_WIDTH + GRAPH_EDGE, height: y };
}

function edgePath(edge, right) {
  const { from, to } = edge, x = from.x + BOX_WIDTH / 2, y = from.y + from.height, end = to.x + BOX_WIDTH / 2;
  if (edge.lane < 0) return "M" + x + " " + y + "C" + x + " " + (y + RANK_GAP / 2) + " " + end + " " + (to.y - RANK_GAP / 2) + " " + end + " " + to.y;
  const lane = right + edge.lane * LANE_WIDTH, low = y + RANK_GAP / 3, high = to.y - RANK_GAP / 3;
  return "M" + (x + 12) + " " + y + "L" + (x + 12) + " " + low + "L" + lane + " " + low + "L" + lane + " " + high + "L" + (end + 12) + " " + high + "L" + (end + 12) + " " + to.y;
}

function boxNode(box) {
  const [first] = box.nodes, last = box.nodes[box.nodes.length - 1], parameters = box.nodes.reduce((sum, node) => sum + (node.parameters || 0), 0);
  const cut = (text) => (text.length > 34 ? text.slice(0, 33) + "\u2026" : text);
  const lines = box.nodes.map((node) => cut(node.name + " \u00b7 " + node.layer.replace(/_/g, " ")));
  lines.push("\u2192 " + shapeOf(last) + (parameters ? ", " + short(parameters) + " parameters" : ""));
  const bar = svg("rect", { x: box.x, y: box.y, width: 5, height: box.height });
  bar.style.fill = "var(--c" + familyOf(first.layer)[1] + ")";
  return [svg("rect", { class: "box", x: box.x, y: box.y, width: BOX_WIDTH, height: box.height, rx: 3 }), bar,
    lines.map((line, i) => svg("text", { x: box.x + 12, y: box.y + 15 + i * LINE_HEIGHT, class: i === 0 ? "first" : i + 1 === lines.length ? "shape" : null }, line,
      svg("title", {}, box.nodes.map((node) => node.name + ": " + node.layer + ", " + shapeOf(node)).join("\n"))))];
}

// The picture with its legend.
export function graphPicture(nodes) {
  const boxes = boxesOf(nodes);
  if (!boxes.length || boxes.length > MOST_BOXES) return el("p", { class: "quiet" }, "This network is too large for a picture; the table below has all of it.");
  const plan = layOut(boxes);
  const picture = svg("svg", { role: "img", width: plan.width, height: plan.height, viewBox: "0 0 " + plan.width + " " + plan.height,
    "aria-label": "The network as a graph of " + boxes.length + " boxes for " + nodes.length + " layers. The table below says the same in words." },
  plan.edges.map((edge) => svg("path", { class: "edge", d: edgePath(edge, plan.right) })), boxes.map(boxNode));
  const legend = el("ul", { class: "legend" }, FAMILIES.map(([name, color]) => {
    const swatch = el("span", { class: "swatch", "aria-hidden": "true" });
    swatch.style.background = "var(--c" + color + ")";
    return el("li", {}, swatch, name);
  }));
  return el("div", {}, legend, el("div", { class: "graph", tabindex: 0, role: "region", "aria-label": "Picture of the network" }, picture));
}
