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
    this.waiting = 0;
    // Several events of one frame are one look.
    holder.addEventListener("scroll", () => {
      this.waiting = this.waiting || requestAnimationFrame(() => {
        this.waiting = 0;
        this.show();
      });
    }, { passive: true });
    this.watcher = new ResizeObserver(() => this.show());
    this.watcher.observe(holder);
  }

  set(items) {
    this.items = items;
    this.first = -1;
    this.shown = new Map();
    this.show();
  }

  show() {
    const top = this.holder.scrollTop, height = Math.min(this.holder.clientHeight || 800, innerHeight);
    const first = Math.max(0, Math.floor(top / ROW_HEIGHT) - ROWS_BEYOND);
    const last = Math.min(this.items.length, Math.ceil((top + height) / ROW_HEIGHT) + ROWS_BEYOND);
    if (first === this.first && last === this.last) return;
    this.first = first;
    this.last = last;
    const wanted = new Map();
    for (let i = first; i < last; i += 1) {
      const item = this.items[i], node = this.shown.get(item) || this.draw(item);
      node.setAttribute("aria-rowindex", i + 2);
      wanted.set(item, node);
    }
    this.shown = wanted;
    this.before.style.height = first * ROW_HEIGHT + "px";
    this.after.style.height = (this.items.length - last) * ROW_HEIGHT + "px";
    this.place([...(first > 0 ? [this.before] : []), ...wanted.values(), ...(last < this.items.length ? [this.after] : [])]);
  }

  // Moves no row that stays: the browser would lay out all of them again. A row that is moved keeps the keyboard's focus.
  place(nodes) {
    const stays = new Set(nodes), focused = document.activeElement;
    for (const node of [...this.body.children]) if (!stays.has(node)) node.remove();
    let next = this.body.firstChild;
    for (const node of nodes) {
      if (node === next) next = next.nextSibling;
      else this.body.insertBefore(node, next);
    }
    if (focused !== document.activeElement && this.body.contains(focused)) focused.focus({ preventScroll: true });
  }

  end() {
    cancelAnimationFrame(this.waiting);
    this.watcher.disconnect();
  }
}
