// Charts and tables as files, made in the page.

import { el, svg } from "./dom.js";

export function save(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// As in RFC 4180. A text that a spreadsheet would take for a formula is quoted.
export function csvField(value) {
  if (value === null || value === undefined) return "";
  let text = String(value);
  if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = "'" + text;
  return /[",\n\r]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
}

export function csvOf(headings, rows) {
  return [headings, ...rows].map((row) => row.map(csvField).join(",")).join("\r\n") + "\r\n";
}

// A picture that stands alone: the colours that the page's style gives are written into it.
export function svgText(picture, title) {
  const copy = picture.cloneNode(true), width = picture.viewBox.baseVal.width, height = picture.viewBox.baseVal.height;
  const from = picture.querySelectorAll("*"), to = copy.querySelectorAll("*");
  for (let i = 0; i < from.length; i += 1) {
    const style = getComputedStyle(from[i]);
    for (const name of ["fill", "stroke", "stroke-dasharray", "font-size", "opacity"]) to[i].setAttribute(name, style.getPropertyValue(name));
    to[i].removeAttribute("style");
    to[i].removeAttribute("class");
  }
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height + 24);
  copy.setAttribute("viewBox", "0 -24 " + width + " " + (height + 24));
  copy.setAttribute("font-family", "DejaVu Sans, Verdana, sans-serif");
  const style = getComputedStyle(document.documentElement);
  const paper = style.getPropertyValue("--paper").trim(), ink = style.getPropertyValue("--ink").trim();
  copy.prepend(svg("rect", { x: 0, y: -24, width, height: height + 24, fill: paper }),
    svg("text", { x: 8, y: -8, fill: ink, "font-size": 13 }, title));
  return new XMLSerializer().serializeToString(copy);
}

export function savePng(name, text) {
  const image = new Image(), url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  image.onload = () => {
    const canvas = el("canvas", { width: image.width * 2, height: image.height * 2 });
    const pen = canvas.getContext("2d");
    pen.scale(2, 2);
    pen.drawImage(image, 0, 0);
    URL.revokeObjectURL(url);
    canvas.toBlob((blob) => blob && save(name, blob));
  };
  image.src = url;
}

export function fileName(words) {
  return words.replace(/[^\w.-]+/g, "_").replace(/^_+|_+$/g, "").slice(0, 80) || "board";
}
