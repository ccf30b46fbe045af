// A chart of several curves: drawn as SVG, read by pointer and by keyboard, zoomed along its axis.

import { el, svg, replace } from "./dom.js";
import { exact, short, isNumber, ticks, tickTexts, duration, whole } from "./format.js";

const EDGE_LEFT = 58, EDGE_RIGHT = 12, EDGE_TOP = 8, EDGE_BOTTOM = 26, CHART_HEIGHT = 240;
const PEN_DASHES = ["", "7 3", "2 3", "9 3 2 3"];
const PEN_COLORS = 7;
const MOST_CHANGES = 200;

// Colours first, then the same colours dashed: readers never have to tell more than seven apart.
export function penOf(number) {
  return { color: "var(--c" + (number % PEN_COLORS) + ")", dash: PEN_DASHES[Math.floor(number / PEN_COLORS) % PEN_DASHES.length] };
}

export function keyOf(pen) {
  const key = el("span", { class: "key", "aria-hidden": "true" });
  key.style.borderTopColor = pen.color;
  if (pen.dash) key.style.borderTopStyle = pen.dash === "2 3" ? "dotted" : "dashed";
  return key;
}

// A mean in which what is older weighs less; its begin is not pulled towards 0.
export function smoothed(values, weight) {
  if (!weight) return values;
  let sum = 0, share = 0;
  return values.map((value) => {
    if (!isNumber(value)) return null;
    sum = sum * weight + value * (1 - weight);
    share = share * weight + (1 - weight);
    return sum / share;
  });
}

// The place of the value in an ascending list that is nearest.
export function nearest(list, value) {
  let low = 0, high = list.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low > 0 && value - list[low - 1] < list[low] - value ? low - 1 : low;
}

// The place of the only number in a list, which no line would show; -1: there are more or none.
function onlyNumber(list) {
  const places = list.flatMap((value, i) => (isNumber(value) ? [i] : []));
  return places.length === 1 ? places[0] : -1;
}

function extent(lists, positive) {
  let low = Infinity, high = -Infinity;
  for (const list of lists) {
    for (const value of list) {
      if (!isNumber(value) || (positive && value <= 0)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low <= high ? [low, high] : null;
}

function logTicks(low, high) {
  const list = [];
  for (let power = Math.floor(low); power <= Math.ceil(high); power += 1) {
    for (const factor of high - low > 3 ? [1] : [1, 2, 5]) {
      const at = Math.log10(factor) + power;
      if (at >= low && at <= high) list.push(at);
    }
  }
  return list;
}

const LETTER_WIDTH = 6.5; // of labels, about

// A word below an axis, inside the picture.
export function tickLabel(x, y, text, width) {
  const beyond = x + (text.length * LETTER_WIDTH) / 2 > width;
  return svg("text", { x: beyond ? width : x, y, "text-anchor": beyond ? "end" : "middle" }, text);
}

function tickText(axis, value) {
  return axis === "time" ? duration(value) : short(value);
}

export class Chart {
  // onZoom(from, to) is called with the part of the axis that the user chose, or with nothing for all of it.
  constructor(title, onZoom) {
    this.title = title;
    this.onZoom = onZoom;
    this.data = null;
    this.cursor = null;
    this.picture = svg("svg", { role: "img", tabindex: 0, "aria-label": title });
    this.tip = el("div", { class: "tip", hidden: true });
    this.voice = el("span", { class: "skip", role: "status" });
    this.node = el("div", { class: "chart" }, this.picture, this.tip, this.voice);
    this.listen();
    this.watcher = new ResizeObserver(() => this.draw());
    this.watcher.observe(this.node);
  }

  // data: { axis, log, smoothing, from, to, series: [{ name, pen, x, mean, low, high, count, points }], resumed }
  show(data) {
    this.data = data;
    this.draw();
  }

  end() {
    this.watcher.disconnect();
  }

  scales() {
    const { data } = this;
    const width = Math.max(160, this.node.clientWidth || 460), height = this.picture.clientHeight || CHART_HEIGHT;
    const all = extent(data.series.map((one) => one.x).concat(data.series.map((one) => one.points.map((point) => point.x))));
    let [from, to] = extent([all || [], data.span || []]) || [0, 1];
    if (isNumber(data.from)) from = data.from;
    if (isNumber(data.to)) to = data.to;
    if (!(to > from)) to = from + 1;
    const lists = [];
    for (const one of data.series) {
      const inside = (list) => list.filter((value, i) => one.x[i] >= from && one.x[i] <= to);
      lists.push(inside(data.smoothing ? one.smooth : one.mean));
      if (!data.smoothing && one.low) lists.push(inside(one.low), inside(one.high));
      lists.push(one.points.filter((point) => point.x >= from && point.x <= to).map((point) => point.y));
    }
    const seen = extent(lists, data.log);
    let [low, high] = seen || [0, 1];
    const turn = data.log ? (value) => (value > 0 ? Math.log10(value) : NaN) : (value) => value;
    low = turn(low);
    high = turn(high);
    if (!data.log && low === 0 && high === 0) {
      high = 1; // nothing but 0 stands on the axis: what is counted or measured here is not negative
    } else {
      const room = (high - low) * 0.05 || Math.abs(high) * 0.05 || 0.5;
      low -= room;
      high += room;
    }
    return {
      width, height, from, to, low, high, turn, empty: seen === null,
      x: (value) => EDGE_LEFT + ((value - from) / (to - from)) * (width - EDGE_LEFT - EDGE_RIGHT),
      y: (value) => EDGE_TOP + ((high - turn(value)) / (high - low)) * (height - EDGE_TOP - EDGE_BOTTOM),
      back: (pixel) => from + ((pixel - EDGE_LEFT) / (width - EDGE_LEFT - EDGE_RIGHT)) * (to - from),
    };
  }

  draw() {
    const { data } = this;
    if (!data || !this.node.isConnected) return;
    for (const one of data.series) one.smooth = smoothed(one.mean, data.smoothing);
    const scale = (this.scale = this.scales());
    const { width, height } = scale, bottom = height - EDGE_BOTTOM;
    this.picture.setAttribute("viewBox", "0 0 " + width + " " + height);
    const parts = [];
    const rows = data.log ? logTicks(scale.low, scale.high) : ticks(scale.low, scale.high, 4);
    const values = data.log ? rows.map((row) => Math.pow(10, row)) : rows, texts = tickTexts(values);
    for (const [i, value] of values.entries()) {
      const y = scale.y(value);
      parts.push(svg("line", { class: "rule", x1: EDGE_LEFT, x2: width - EDGE_RIGHT, y1: y, y2: y }),
        svg("text", { x: EDGE_LEFT - 6, y: y + 4, "text-anchor": "end" }, texts[i]));
    }
    const columns = ticks(scale.from, scale.to, Math.max(2, width / 110)), below = tickTexts(columns, data.axis);
    columns.forEach((column, i) => parts.push(tickLabel(scale.x(column), height - 8, below[i], width)));
    if (scale.empty)
      parts.push(svg("text", { class: "empty", x: (EDGE_LEFT + width - EDGE_RIGHT) / 2, y: height / 2, "text-anchor": "middle" }, data.log ? "no value above 0 here" : "no finite value here"));
    parts.push(svg("line", { class: "axis", x1: EDGE_LEFT, x2: width - EDGE_RIGHT, y1: bottom, y2: bottom }));
    const clip = "clip" + (this.number = this.number || (Chart.count = (Chart.count || 0) + 1));
    parts.push(svg("clipPath", { id: clip }, svg("rect", { x: EDGE_LEFT - 5, y: 0, width: width - EDGE_LEFT - EDGE_RIGHT + 10, height: bottom + 5 })));
    const curves = svg("g", { "clip-path": "url(#" + clip + ")" });
    if (data.axis === "time") {
      for (const { x } of (data.changes || []).slice(-MOST_CHANGES))
        curves.append(svg("line", { class: "change", x1: scale.x(x), x2: scale.x(x), y1: EDGE_TOP, y2: bottom }));
      for (const at of data.resumed || []) curves.append(svg("line", { class: "resumed", x1: scale.x(at), x2: scale.x(at), y1: EDGE_TOP, y2: bottom }));
    }
    for (const one of data.series) curves.append(...this.curve(one));
    this.marks = svg("g", {});
    replace(this.picture, parts, curves, this.marks);
    this.picture.setAttribute("aria-label", this.title + ": " + this.summary());
    if (this.cursor !== null) this.point(this.cursor);
  }

  curve(one) {
    const { scale, data } = this, parts = [];
    const path = (list) => {
      let text = "", pen = "M";
      for (let i = 0; i < one.x.length; i += 1) {
        const y = isNumber(list[i]) ? scale.y(list[i]) : NaN;
        if (!Number.isFinite(y)) continue; // this line lacks the value, or it has no logarithm
        text += pen + scale.x(one.x[i]).toFixed(1) + " " + y.toFixed(1);
        pen = "L";
      }
      return text;
    };
    const line = (list, more) => {
      const node = svg("path", { d: path(list), fill: "none", "stroke-width": 1.8, "stroke-linejoin": "round", "stroke-dasharray": one.pen.dash || null, ...more });
      node.style.stroke = one.pen.color;
      return node;
    };
    if (one.low && !data.smoothing) {
      let there = "", back = "";
      for (let i = 0; i < one.x.length; i += 1) {
        const top = scale.y(one.high[i]), bottom = scale.y(one.low[i]);
        if (!isNumber(one.low[i]) || !Number.isFinite(top) || !Number.isFinite(bottom)) continue;
        const x = scale.x(one.x[i]).toFixed(1);
        there += (there ? "L" : "M") + x + " " + top.toFixed(1);
        back = "L" + x + " " + bottom.toFixed(1) + back;
      }
      const band = svg("path", { d: there ? there + back + "Z" : "", "fill-opacity": 0.18 });
      band.style.fill = one.pen.color;
      parts.push(band);
    }
    if (data.smoothing) parts.push(line(one.mean, { "stroke-opacity": 0.25, "stroke-width": 1 }));
    parts.push(line(data.smoothing ? one.smooth : one.mean));
    const alone = onlyNumber(one.mean);
    if (alone >= 0 && !one.points.length && Number.isFinite(scale.y(one.mean[alone]))) {
      const dot = svg("circle", { cx: scale.x(one.x[alone]).toFixed(1), cy: scale.y(one.mean[alone]).toFixed(1), r: 2.5 });
      dot.style.fill = one.pen.color;
      parts.push(dot);
    }
    for (const point of one.points) {
      const y = isNumber(point.y) ? scale.y(point.y) : NaN;
      if (!Number.isFinite(y)) continue;
      const dot = svg("circle", { cx: scale.x(point.x).toFixed(1), cy: y.toFixed(1), r: one.points.length > 60 ? 2 : 3.5, "stroke-width": 1.5 });
      dot.style.fill = "var(--paper)";
      dot.style.stroke = one.pen.color;
      parts.push(dot);
    }
    return parts;
  }

  summary() {
    return this.data.series.map((one) => {
      for (let i = one.mean.length - 1; i >= 0; i -= 1) if (isNumber(one.mean[i])) return one.name + " last " + short(one.mean[i]);
      return one.name + " has no value";
    }).join("; ");
  }

  // What stands at this place of the axis.
  words(x) {
    const { data } = this, lines = [];
    let place = null;
    for (const one of data.series) {
      if (one.x.length) {
        const i = nearest(one.x, x), count = one.count[i];
        if (place === null) place = one.x[i];
        let text = one.name + ": " + exact(one.mean[i]) + (one.x[i] === place ? "" : " at " + tickText(data.axis, one.x[i]));
        if (count > 1) text += " (mean of " + whole(count) + " lines, " + short(one.low ? one.low[i] : null) + " to " + short(one.high ? one.high[i] : null) + ")";
        if (data.smoothing) text += ", smoothed " + short(one.smooth[i]);
        lines.push(text);
      }
      if (one.points.length && one.points.length !== one.x.length) {
        const point = one.points[nearest(one.points.map((each) => each.x), x)];
        lines.push(one.name + ", validation: " + exact(point.y) + " at " + tickText(data.axis, point.x));
        if (place === null) place = point.x;
      }
    }
    if (place !== null && data.axis === "time") lines.push(...this.members(place));
    return { place: place === null ? x : place, text: (place === null ? "" : this.placeText(place) + "\n") + lines.join("\n") };
  }

  // Who trained at this time, where members of a job changed.
  members(place) {
    const change = (this.data.changes || []).filter(({ x }) => x <= place).pop();
    return change ?
        [whole(change.workers) + (change.workers === 1 ? " worker" : " workers") + " since " + duration(change.x) +
         (change.reason ? ": " + change.reason : "")] :
        [];
  }

  placeText(place) {
    if (this.data.axis === "time") return "after " + duration(place);
    return (this.data.axis === "steps" ? "step " : "epoch ") + (this.data.axis === "steps" ? whole(place) : exact(Number(place.toFixed(6))));
  }

  point(x, speak) {
    const { scale } = this;
    if (!scale) return;
    const found = this.words(x), at = scale.x(found.place);
    this.cursor = x;
    replace(this.marks, svg("line", { class: "cursor", x1: at, x2: at, y1: EDGE_TOP, y2: scale.height - EDGE_BOTTOM }));
    this.tip.hidden = false;
    this.tip.textContent = found.text;
    this.tip.style.top = "4px";
    const right = at < scale.width / 2;
    this.tip.style.left = right ? at + 12 + "px" : "";
    this.tip.style.right = right ? "" : scale.width - at + 12 + "px";
    if (speak) this.voice.textContent = found.text;
  }

  leave() {
    this.cursor = null;
    this.tip.hidden = true;
    if (this.marks) replace(this.marks);
  }

  place(event) {
    const box = this.picture.getBoundingClientRect();
    return ((event.clientX - box.left) / box.width) * this.scale.width;
  }

  listen() {
    let from = null;
    this.picture.addEventListener("pointerdown", (event) => {
      if (!this.scale || event.button !== 0) return;
      from = this.place(event);
      this.picture.setPointerCapture(event.pointerId);
    });
    this.picture.addEventListener("pointermove", (event) => {
      if (!this.scale) return;
      const at = this.place(event);
      if (from === null) return this.point(this.scale.back(at));
      replace(this.marks, svg("rect", { class: "choice", x: Math.min(from, at), width: Math.abs(at - from), y: EDGE_TOP, height: this.scale.height - EDGE_TOP - EDGE_BOTTOM }));
    });
    this.picture.addEventListener("pointerup", (event) => {
      if (from === null) return;
      const ends = [this.scale.back(from), this.scale.back(this.place(event))].sort((a, b) => a - b);
      const far = Math.abs(this.place(event) - from) > 6;
      from = null;
      replace(this.marks);
      if (far) this.zoom(ends[0], ends[1]);
    });
    this.picture.addEventListener("pointercancel", () => {
      from = null;
    });
    this.picture.addEventListener("pointerleave", () => from === null && this.leave());
    this.picture.addEventListener("dblclick", () => this.onZoom());
    this.picture.addEventListener("blur", () => this.leave());
    this.picture.addEventListener("keydown", (event) => this.key(event));
  }

  // Ends that numbers can hardly tell apart show nothing more.
  zoom(from, to) {
    if (to - from > 1e-9 * Math.max(Math.abs(from), Math.abs(to))) this.onZoom(from, to);
  }

  key(event) {
    if (!this.scale) return;
    const { from, to } = this.scale, wide = to - from;
    const at = this.cursor === null ? (event.key === "ArrowLeft" ? to : from) : this.cursor;
    const zoom = (factor) => this.zoom(at - (at - from) * factor, at + (to - at) * factor);
    const moves = {
      ArrowRight: () => this.point(Math.min(to, at + wide / 100), true),
      ArrowLeft: () => this.point(Math.max(from, at - wide / 100), true),
      Home: () => this.point(from, true),
      End: () => this.point(to, true),
      "+": () => zoom(0.5),
      "-": () => zoom(2),
      0: () => this.onZoom(),
      Escape: () => this.leave(),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }
}
