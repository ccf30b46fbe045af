// Who was a member when: a lane for each worker, over the time of the job.

import { tickLabel } from "./chart.js";
import { el, replace, svg } from "./dom.js";
import { clock, duration, ticks, tickTexts } from "./format.js";

const LANE_HEIGHT = 22, LANE_LEFT = 110, LANE_RIGHT = 12, LANE_AXIS = 24;

export const STATES = [["preparing", "preparing"], ["joined", "ready, not a member yet"], ["training", "training"]];

// What ends a bar, by its kind: its sign and words in the legend, and its picture around a point.
export const MARKS = {
  lost: { sign: "\u00d7", words: "lost", draw: (x, y) => "M" + (x - 5) + " " + (y - 5) + "l10 10m0 -10l-10 10" },
  left: { sign: "\u2212", words: "left", draw: (x, y) => "M" + (x - 6) + " " + y + "h12" },
  refused: { sign: "\u25cb", words: "not admitted", draw: (x, y) => "M" + (x - 5) + " " + y + "a5 5 0 1 0 10 0a5 5 0 1 0 -10 0" },
};

function laneName(lane) {
  return lane.slot > 0 ? lane.host + " slot " + lane.slot : lane.host;
}

export class Timeline {
  constructor() {
    this.picture = svg("svg", { role: "img", tabindex: 0 });
    this.tip = el("div", { class: "tip", hidden: true });
    this.node = el("div", { class: "timeline chart" }, this.picture, this.tip);
    this.window = null;
    const button = (words, act) => el("button", { type: "button", onclick: act }, words);
    this.tools = el("div", { class: "tools" }, button("Closer", () => this.scaled(0.5)), button("Farther", () => this.scaled(2)),
      button("Earlier", () => this.moved(-0.5)), button("Later", () => this.moved(0.5)), button("Whole job", () => this.zoom(null)),
      el("span", { class: "quiet" }, "Drag over a part to look closer; point at a bar for its times."));
    this.watcher = new ResizeObserver(() => this.draw());
    this.watcher.observe(this.node);
    this.listen();
  }

  show(view) {
    this.view = view;
    this.draw();
  }

  end() {
    this.watcher.disconnect();
  }

  draw() {
    const { view } = this;
    if (!view || !this.node.isConnected) return;
    const width = Math.max(320, this.node.clientWidth), height = view.lanes.length * LANE_HEIGHT + LANE_AXIS + 6;
    const [from, to] = this.window || [view.begin, Math.max(view.end, view.begin + 1)];
    const x = (time) => LANE_LEFT + ((Math.min(to, Math.max(from, time)) - from) / (to - from)) * (width - LANE_LEFT - LANE_RIGHT);
    this.scale = { from, to, width, back: (pixel) => from + ((pixel - LANE_LEFT) / (width - LANE_LEFT - LANE_RIGHT)) * (to - from) };
    const seen = (begin, end) => end >= from && begin <= to;
    const parts = [];
    const places = ticks(0, to - from, Math.max(2, width / 130)), texts = tickTexts(places.map((at) => from - view.begin + at), "time");
    places.forEach((at, i) => parts.push(
        svg("line", { class: "rule", x1: x(from + at), x2: x(from + at), y1: 0, y2: height - LANE_AXIS }),
        tickLabel(x(from + at), height - 8, "+" + texts[i], width)));
    view.lanes.forEach((lane, i) => {
      const y = i * LANE_HEIGHT + 4, name = laneName(lane);
      parts.push(svg("text", { class: "lane", x: 0, y: y + 12 }, name.length > 15 ? name.slice(0, 14) + "\u2026" : name, svg("title", {}, name)));
      for (const span of lane.spans) {
        if (!seen(span.from, span.to)) continue;
        const words = name + ": " + span.state + (span.worker ? ", worker " + span.worker : "") + (span.rank === null ? "" : ", rank " + span.rank) +
          "\n" + clock(span.from) + " to " + clock(span.to) + " (" + duration(span.to - span.from) + ")";
        const high = span.state === "training" ? 14 : span.state === "joined" ? 10 : 6;
        parts.push(svg("rect", { class: span.state, x: x(span.from), y: y + 7 - high / 2 + 1, width: Math.max(1, x(span.to) - x(span.from)), height: high, "data-tip": words }));
      }
      for (const mark of lane.marks) {
        if (!seen(mark.at, mark.at)) continue;
        const kind = MARKS[mark.kind];
        parts.push(svg("path", { class: mark.kind, d: kind.draw(x(mark.at), y + 8), "data-tip": name + " " + kind.words + " at " + clock(mark.at) + (mark.note ? ": " + mark.note : "") }));
      }
    });
    for (const pause of view.pauses) {
      if (!seen(pause.from, pause.to)) continue;
      const causes = Object.entries(pause.parts || {}).filter(([, seconds]) => seconds >= 5e-4).map(([part, seconds]) => part + " " + duration(seconds)).join(", ");
      parts.push(svg("rect", { class: "pause", x: x(pause.from), y: 0, width: Math.max(2, x(pause.to) - x(pause.from)), height: height - LANE_AXIS,
        "data-tip": "pause of " + duration(pause.to - pause.from) + ": " + pause.reason + (causes ? "\n" + causes : "") }));
    }
    this.picture.setAttribute("viewBox", "0 0 " + width + " " + height);
    this.picture.style.height = height + "px";
    this.picture.setAttribute("aria-label", "Members over time: " + view.lanes.length + " places, " + view.generations.length + " generations, " +
      view.pauses.length + " pauses. The tables below say the same in words.");
    replace(this.picture, parts);
  }

  listen() {
    let from = null;
    const place = (event) => {
      const box = this.picture.getBoundingClientRect();
      return ((event.clientX - box.left) / box.width) * this.scale.width;
    };
    this.picture.addEventListener("pointermove", (event) => {
      const words = event.target.getAttribute && event.target.getAttribute("data-tip");
      this.tip.hidden = !words;
      if (!words) return;
      const box = this.node.getBoundingClientRect();
      this.tip.textContent = words;
      this.tip.style.left = Math.min(event.clientX - box.left + 12, Math.max(0, box.width - 260)) + "px";
      this.tip.style.top = event.clientY - box.top + 14 + "px";
    });
    this.picture.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
    });
    this.picture.addEventListener("pointerdown", (event) => {
      if (this.scale && event.button === 0) from = place(event);
    });
    this.picture.addEventListener("pointerup", (event) => {
      if (from === null) return;
      const ends = [this.scale.back(from), this.scale.back(place(event))].sort((a, b) => a - b);
      const far = Math.abs(place(event) - from) > 6;
      from = null;
      if (far) this.zoom(ends);
    });
    this.picture.addEventListener("dblclick", () => this.zoom(null));
    this.picture.addEventListener("keydown", (event) => {
      if (!this.scale) return;
      const { from: begin, to } = this.scale, wide = to - begin;
      const moves = { "+": [begin + wide / 4, to - wide / 4], "-": [begin - wide / 2, to + wide / 2], ArrowLeft: [begin - wide / 5, to - wide / 5], ArrowRight: [begin + wide / 5, to + wide / 5], 0: null };
      if (!(event.key in moves)) return;
      event.preventDefault();
      this.zoom(moves[event.key]);
    });
  }

  // Around the middle of what is seen.
  scaled(factor) {
    if (!this.scale) return;
    const { from, to } = this.scale, half = ((to - from) * factor) / 2, middle = (from + to) / 2;
    this.zoom([middle - half, middle + half]);
  }

  moved(part) {
    if (!this.scale) return;
    const { from, to } = this.scale, way = (to - from) * part;
    this.zoom([from + way, to + way]);
  }

  // No farther than the whole job, and not beside it.
  zoom(window) {
    const { begin, end } = this.view;
    if (window && window[1] - window[0] >= end - begin) window = null;
    if (window && window[1] - window[0] < 0.01) return;
    if (window) {
      const shift = Math.max(0, begin - window[0]) - Math.max(0, window[1] - Math.max(end, begin + 1));
      window = [window[0] + shift, window[1] + shift];
    }
    this.window = window;
    this.draw();
  }
}
