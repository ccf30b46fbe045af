// What a run is trained on: pictures as the network sees them, and how many there are of each class.

import { ask, picture } from "./api.js";
import { el, missingNote, note, panel, replace, table } from "./dom.js";
import { bytes, percent, whole } from "./format.js";
import { RunHead } from "./run.js";

export class DataPage {
  constructor(store, ids) {
    this.store = store;
    this.id = ids[0];
    this.head = new RunHead(this.id, "data");
    this.content = el("div", {}, note("Reading the records\u2026"));
    this.node = el("div", {}, this.head.node, this.content);
    this.head.update(store.rows.get(this.id));
    this.load();
  }

  title() {
    return "Data of " + (this.store.rows.get(this.id) || { name: "a run" }).name;
  }

  update() {
    this.head.update(this.store.rows.get(this.id));
  }

  async load() {
    try {
      const data = await ask("/api/data", { run: this.id });
      if (this.over) return;
      if (data.missing) {
        replace(this.content, missingNote(data));
        return;
      }
      const most = Math.max(1, ...data.classes.map((each) => each.records));
      const sheet = el("img", {
        class: "sheet",
        alt: "The first training images after augmentation, as the network sees them",
        src: picture("/api/sheet", { run: this.id })
      });
      sheet.addEventListener("error", () => sheet.replaceWith(note("These images could not be drawn.")));
      replace(this.content,
        panel("As the network sees it", sheet),
        panel("Classes", el("p", {}, whole(data.records) + " records, " + bytes(data.bytes) + ", in " + data.files.join(", ")),
          data.warning ? note(data.warning) : null,
          table("Records of each class", ["Label", "Class", "Records", "Share"], data.classes.map((each) => {
            const bar = el("span", { class: "meter", "aria-hidden": "true" });
            bar.style.width = Math.round((140 * each.records) / most) + "px";
            return [each.label, each.name, whole(each.records), el("span", {}, bar, " " + percent(each.records / Math.max(1, data.records)))];
          }))));
    } catch (error) {
      replace(this.content, note(error.message + (error.hint ? ". " + error.hint : "")));
    }
  }

  end() {
    this.over = true;
  }
}
