// Elements from values. Text is only ever text: names of runs and hosts cannot become markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "text") node.textContent = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
}

export function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function replace(node, ...children) {
  node.shown = undefined; // what redraw() drew is gone
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
  return node;
}

// Sets the text of a node only where it differs, so that nothing is laid out again in vain.
export function setText(node, text) {
  const wanted = String(text);
  if (node.textContent !== wanted) node.textContent = wanted;
}

// Draws parts anew only where these facts differ from those that were drawn last. A table in which a reader has scrolled,
// or that has the keyboard's focus, keeps both.
export function redraw(node, facts, parts) {
  const text = JSON.stringify(facts);
  if (node.shown === text) return;
  const before = [...node.querySelectorAll(".wide")].map((one) => ({ left: one.scrollLeft, focused: one === document.activeElement }));
  replace(node, parts());
  node.shown = text;
  [...node.querySelectorAll(".wide")].slice(0, before.length).forEach((one, i) => {
    one.scrollLeft = before[i].left;
    if (before[i].focused) one.focus({ preventScroll: true });
  });
}

const LONG_WORDS = 24;

function isWords(cell) {
  const text = cell instanceof Node ? cell.textContent : cell;
  return typeof text === "string" && /^[^\s\d\u2013+$-]/.test(text);
}

function isMeter(cell) {
  return cell instanceof Node && cell.querySelector(".meter") !== null;
}

// A table from a list of headings and rows of cells. Numbers stand at the right, words and bars at the left.
export function table(caption, headings, rows, attributes) {
  const words = headings.map((heading, i) => rows.some((cells) => isWords(cells[i])));
  const long = headings.map((heading, i) => rows.some((cells) => isWords(cells[i]) && (cells[i].textContent || cells[i]).length > LONG_WORDS));
  const meters = headings.map((heading, i) => rows.some((cells) => isMeter(cells[i])));
  const side = (i) => (meters[i] ? "text" : words[i] ? (long[i] ? "text long" : "text") : null);
  return el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": caption },
    el("table", attributes,
      el("caption", {}, caption),
      el("thead", {}, el("tr", {}, headings.map((heading, i) => el("th", { scope: "col", class: side(i) }, heading)))),
      el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell, i) => el("td", { class: side(i) }, cell)))))));
}

export function panel(title, ...children) {
  return el("section", { class: "panel" }, el("h2", {}, title), ...children);
}

// What a run does not have, or not yet.
export function missingNote({ missing, hint }) {
  return note(missing + (hint ? ". " + hint : ""));
}

export function note(text) {
  return el("p", { class: "quiet" }, text);
}
