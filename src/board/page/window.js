// The rows of a long table that can be seen, and room where the others would be: a thousand rows cost what forty do.

import { el } from "./dom.js";

const ROW_HEIGHT = 29, ROWS_BEYOND = 12;

export class RowWindow {
  // draw(item) gives the row of an item; `holder` scrolls, `body` is the tbody inside it.
  constructor(holder, body, draw) {
    this.holder = holder;
    this.body = body;
    this.draw = draw;
    this.items = [];
    this.before = el("tr", { class: "room", "aria-hidden": "true" });
    this.after = el("tr", { class: "room", "aria-hidden": "true" });
    this.first = this.last = -1;
    holder.addEventListener("scroll", () => this.show());
    this.watcher = new ResizeObserver(() => this.show());
    this.watcher.observe(holder);
  }

  set(items) {
    this.items = items;
    this.first = -1;
    this.show();
  }

  show() {
    const top = this.holder.scrollTop, height = Math.min(this.holder.clientHeight || 800, innerHeight);
    const first = Math.max(0, Math.floor(top / ROW_HEIGHT) - ROWS_BEYOND);
    const last = Math.min(this.items.length, Math.ceil((top + height) / ROW_HEIGHT) + ROWS_BEYOND);
    if (first === this.first && last === this.last) return;
    this.first = first;
    this.last = last;
    const nodes = [];
    for (let i = first; i < last; i += 1) {
      const node = this.draw(this.items[i]);
      node.setAttribute("aria-rowindex", i + 2);
      nodes.push(node);
    }
    this.before.style.height = first * ROW_HEIGHT + "px";
    this.after.style.height = (this.items.length - last) * ROW_HEIGHT + "px";
    const wanted = [...(first > 0 ? [this.before] : []), ...nodes, ...(last < this.items.length ? [this.after] : [])];
    const present = [...this.body.children];
    if (wanted.length !== present.length || wanted.some((node, i) => node !== present[i])) this.body.replaceChildren(...wanted);
  }

  end() {
    this.watcher.disconnect();
  }
}
