// The page as a whole: which part is shown, and the news that keep it up to date.

import { ask, isExport, listen } from "./api.js";
import { ClusterPage } from "./cluster.js";
import { DataPage } from "./data.js";
import { el, note, replace, setText } from "./dom.js";
import { EvaluationPage } from "./evaluation.js";
import { setBoardTime } from "./format.js";
import { JobPage } from "./job.js";
import { LogsPage } from "./logs.js";
import { ModelPage } from "./model.js";
import { RunPage } from "./run.js";
import { RunsPage } from "./runs.js";

const PAGES = { run: RunPage, job: JobPage, logs: LogsPage, model: ModelPage, data: DataPage, evaluation: EvaluationPage, cluster: ClusterPage };
const THEMES = ["auto", "light", "dark"];
const store = { rows: new Map(), mayAct: false };
const main = document.getElementById("main");
let page = null, known = false, waiting = 0, changed = new Set();

function takeRows(rows) {
  for (const row of rows) {
    store.rows.set(row.id, row);
    changed.add(row.id);
  }
}

// News are shown at most once a frame, however many come.
function refresh() {
  if (waiting) return;
  waiting = requestAnimationFrame(() => {
    waiting = 0;
    const news = changed;
    changed = new Set();
    if (page) page.update(news);
  });
}

async function readAll() {
  try {
    const board = await ask("/api/board");
    store.mayAct = board.may_act;
    if (!isExport) setBoardTime(board.now);
    const there = new Set(board.rows.map((row) => row.id));
    for (const id of store.rows.keys()) if (!there.has(id)) store.rows.delete(id);
    takeRows(board.rows);
    setText(document.getElementById("machine"), board.machine + " \u00b7 " + board.folders.join(", "));
    if (known && (!page || page.node.isConnected)) refresh();
    else show(); // for the first time, or after an error that took the page's place
    known = true;
  } catch (error) {
    replace(main, el("h1", {}, "The board does not answer"), note(error.message + (error.hint ? ". " + error.hint : "")));
  }
}

function show() {
  const [kind, ids] = location.hash.replace(/^#\/?/, "").split("/");
  const Page = PAGES[kind] || RunsPage;
  const list = (ids || "").split(",").filter(Boolean);
  if (page) page.end();
  page = null;
  try {
    page = Page !== RunsPage && Page !== ClusterPage && !list.length ? new RunsPage(store) : new Page(store, list);
    replace(main, page.node);
    document.title = page.title() + " \u2013 dtrain board";
  } catch (error) {
    replace(main, el("h1", {}, "This part of the page failed"), note(String(error)));
    throw error;
  }
  const current = kind === "cluster" ? "#/cluster" : PAGES[kind] ? "" : "#/";
  replace(document.getElementById("nav"), [["#/", "Runs"], ["#/cluster", "Machines"]].map(([href, text]) => el("a", { href, "aria-current": href === current ? "page" : null }, text)));
}

function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  setText(document.getElementById("chosen-theme"), theme);
  try {
    localStorage.setItem("theme", theme);
  } catch (error) {
    // A browser that keeps nothing: the choice lasts as long as the page.
  }
}

function savedTheme() {
  try {
    return THEMES.includes(localStorage.getItem("theme")) ? localStorage.getItem("theme") : "auto";
  } catch (error) {
    return "auto";
  }
}

setTheme(savedTheme());
document.getElementById("theme").addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf(savedTheme()) + 1) % THEMES.length]));
addEventListener("hashchange", () => {
  show();
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
});
setInterval(() => !document.hidden && page instanceof RunsPage && page.update(new Set()), 10000);

listen((rows, gone) => {
  takeRows(rows);
  for (const id of gone) {
    store.rows.delete(id);
    changed.add(id);
  }
  refresh();
}, (words, kind) => {
  const live = document.getElementById("live");
  setText(live, words);
  live.className = kind;
}, readAll);
readAll();
