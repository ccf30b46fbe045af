// A job: its members, what its changes cost, who holds the others up, and what happened.

import { act, ask, isExport } from "./api.js";
import { el, note, panel, redraw, replace, setText, table } from "./dom.js";
import { bytes, clock, dateAndClock, duration, isNumber, percent, short, whole, NONE } from "./format.js";
import { RunHead } from "./run.js";
import { MARKS, STATES, Timeline } from "./timeline.js";

const JOB_PAUSE = 600, JOB_LIVE = 2000; // milliseconds between two looks
const MOST_EVENTS = 400;

function meter(part) {
  const bar = el("span", { class: "meter", "aria-hidden": "true" });
  bar.style.width = Math.round(90 * part) + "px";
  return [bar, " " + percent(part)];
}

function swatch(state) {
  const node = el("span", { class: "swatch", "aria-hidden": "true" });
  node.style.background = "var(--" + state + ")";
  return node;
}

// The words of `dtrain hosts list`; empty while the job trains. A coordinator of an older version does not say.
function standingWords(live) {
  const { state, state_reason: reason, stops_in_seconds: left } = live;
  if (!state || (state === "training" && !reason)) return "";
  const what = ["training", "starting", "ending", "stalled"].includes(state) ? state : state === "waiting" ? "paused: waits for workers" : "paused";
  return "The job: " + what + (reason ? ": " + reason : "") + (isNumber(left) ? "; it stops in " + duration(left) + " unless that changes" : "");
}

// The reasons and advice of `dtrain hosts list`.
function hostReasons(hosts) {
  const told = hosts.filter((host) => host.reason || host.next);
  return told.length ? table("Hosts that do not train, or not now", ["Host", "State", "Reason", "What to do next"],
    told.map((host) => [host.name, host.state, host.reason || NONE, host.next || NONE])) : null;
}

export class JobPage {
  constructor(store, ids) {
    this.store = store;
    this.id = ids[0];
    this.head = new RunHead(this.id, "job");
    this.timeline = new Timeline();
    this.facts = el("dl", { class: "facts" });
    this.generations = el("div");
    this.waiting = el("div");
    this.standing = el("p", { hidden: true }); // what the job waits for
    this.ledger = el("div", {}, isExport ? note("An exported page cannot check the ledger.") :
      el("button", { type: "button", onclick: () => this.checkLedger() }, "Check that every sample counted once"));
    this.list = el("ol", { class: "events", tabindex: 0, "aria-label": "Events, the newest first" });
    this.weight = el("select", { onchange: () => this.drawEvents() }, el("option", { value: "change" }, "changes and trouble"),
      el("option", { value: "trouble" }, "trouble alone"), el("option", { value: "detail" }, "everything"));
    this.search = el("input", { type: "search", oninput: () => this.drawEvents() });
    this.events = [];
    this.lines = new Map(); // by the number of the event
    this.actions = el("div");
    this.hosts = el("div"); // the part of the actions that changes
    this.legend = el("ul", { class: "legend" }, STATES.map(([state, words]) => el("li", {}, swatch(state), words)),
      el("li", {}, swatch("pause"), "pause"), Object.values(MARKS).map(({ sign, words }) => el("li", {}, sign + " " + words)));
    this.panels = [panel("Waiting", this.waiting), panel("Generations", this.generations), panel("Ledger", this.ledger)];
    this.node = el("div", {}, this.head.node, this.standing,
      panel("Members", this.legend, this.timeline.node, this.timeline.tools, this.facts),
      this.panels[0], this.actions, this.panels.slice(1),
      panel("Events", el("div", { class: "tools" }, el("label", {}, "Show", this.weight), el("label", {}, "Search", this.search)), this.list));
    this.update();
    this.loadBytes();
    if (!isExport) {
      this.timer = setInterval(() => this.look(), JOB_LIVE);
      this.look();
    }
  }

  title() {
    return (this.store.rows.get(this.id) || { name: "job" }).name;
  }

  update(changed) {
    this.head.update(this.store.rows.get(this.id));
    if ((changed && !changed.has(this.id)) || this.pending) return;
    this.pending = setTimeout(() => {
      this.pending = 0;
      this.load();
    }, Math.max(0, (this.last || -JOB_PAUSE) + JOB_PAUSE - performance.now()));
  }

  // The number of the last event that is known.
  newest() {
    return this.events.length ? this.events[this.events.length - 1].number : undefined;
  }

  async load() {
    this.last = performance.now();
    const newest = this.newest(), turn = (this.turn = (this.turn || 0) + 1);
    try {
      const [view, news] = await Promise.all([ask("/api/job", { run: this.id }), ask("/api/events", { run: this.id, after: newest })]);
      if (this.over || turn < this.drawn) return; // answers may overtake each other
      this.drawn = turn;
      if (newest !== undefined && news.total <= newest) {
        this.events = [];
        this.lines.clear();
      }
      const known = this.newest();
      this.events.push(...news.events.filter((event) => known === undefined || event.number > known));
      this.drawView(view);
      this.drawEvents();
    } catch (error) {
      replace(this.generations, note(error.message));
    }
  }

  drawView(view) {
    // A training in one process has nothing to show here but its events.
    const alone = !view.lanes.length && !view.generations.length;
    for (const node of [this.timeline.tools, this.legend, this.facts, ...this.panels]) node.hidden = alone;
    if (!alone) this.timeline.show(view);
    else replace(this.timeline.node, note("This training runs in one process: it has no members that join and leave."));
    const fact = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));
    // The coordinator knows its own start alone.
    const live = this.live && view.starts <= 1 ? this.live.goodput_percent : undefined, goodput = isNumber(live) ? live : view.goodput_percent;
    replace(this.facts,
      fact(view.estimated && !view.over ? "Goodput until now" : "Goodput", isNumber(goodput) ? goodput.toFixed(1) + " %" : NONE),
      fact("Pauses in all", duration(view.pause_seconds)), fact("Generations", whole(view.generations.length)),
      this.byteFacts(view), fact("Time of all workers", duration(view.worker_seconds)), fact("Began", dateAndClock(view.begin)));
    const part = (row, name) => (isNumber(row.parts[name]) ? duration(row.parts[name]) : NONE);
    redraw(this.generations, view.generations, () => [view.generations.length ? table("Each change of members and the pause that it cost",
      ["No.", "At", "Workers", "Pause", "Detect", "Decide", "Prepare", "Commit", "Sync", "First step", "Cause"],
      view.generations.slice().reverse().slice(0, MOST_EVENTS).map((row) => [whole(row.generation), clock(row.at), whole(row.workers), duration(row.pause_seconds),
        ...["detect", "decide", "prepare", "commit", "sync", "first_step"].map((name) => part(row, name)), row.reason])) : note("No change of members is recorded.")]);
    this.stragglers = view.stragglers;
    if (!this.isLive) this.drawWaiting(null);
  }

  // What the workers counted at their connections, and what a step needs at least, which follows from the network that
  // the first checkpoint names.
  byteFacts(view) {
    const fact = (name, size, title, before = "") => el("div", {}, el("dt", {}, name), el("dd", { title }, before + bytes(size)));
    const partly = view.sent_at_least || (!view.over && !this.live); // a start was killed before it said its bytes
    const sent = view.sent_bytes + (this.live && !view.over ? this.live.sent_bytes || 0 : 0);
    return [sent > 0 ? fact("Sent between workers", sent, "counted by the workers at their connections, since the job began", partly ? "at least " : "") : null,
      isNumber(this.stepBytes) ? fact("Bytes of a step's sum (computed)", this.stepBytes, "gradients and statistics, which a worker sends once and gets back once as the sum") : null];
  }

  async loadBytes() {
    try {
      this.stepBytes = (await ask("/api/bytes", { run: this.id })).step;
    } catch (error) {
      this.stepBytes = null; // the run is gone
    }
  }

  // Bytes a second between two looks.
  takeRate(live) {
    const now = performance.now(), before = this.sight;
    this.sight = { now, sent: live.sent_bytes };
    if (before && now > before.now && live.sent_bytes >= before.sent)
      this.rate = ((live.sent_bytes - before.sent) * 1000) / (now - before.now);
  }

  async look() {
    const row = this.store.rows.get(this.id);
    if (!row || !["training", "preparing", "waiting"].includes(row.state) || row.kind !== "job" || document.hidden) {
      if (this.isLive) this.drawWaiting(null);
      this.isLive = false;
      this.live = null;
      this.drawStanding({});
      return;
    }
    if (this.asking) return; // a coordinator may answer more slowly than the page asks
    this.asking = true;
    try {
      const live = await ask("/api/live", { run: this.id });
      if (this.over) return;
      this.isLive = live.running;
      this.live = live.running ? live : null;
      if (this.live) this.takeRate(live);
      this.drawStanding(live);
      this.drawWaiting(this.live);
    } catch (error) {
      this.isLive = false;
    } finally {
      this.asking = false;
    }
  }

  // What a job does that does not train, as the coordinator says it, or why no coordinator answers.
  drawStanding(live) {
    const words = live.running ? standingWords(live) : live.reason ? "The coordinator does not answer: " + live.reason : "";
    this.standing.hidden = !words;
    this.standing.className = live.running ? "" : "quiet";
    setText(this.standing, words);
  }

  drawWaiting(live) {
    const slow = (this.stragglers || []).slice().reverse().slice(0, 20);
    const history = slow.length ? table("Workers that held the others up", ["At", "Host", "Worker", "Computes a step", "The others"],
      slow.map((row) => [clock(row.at), row.host, String(row.worker), duration(row.compute_seconds), duration(row.median_seconds)])) : null;
    if (!live) {
      redraw(this.waiting, slow, () => history || note("The share of waiting is asked of the coordinator while the job runs; no worker held the others up for long."));
      replace(this.actions);
      return;
    }
    const workers = live.hosts.flatMap((host) => host.workers.filter((worker) => worker.rank !== null).map((worker) => ({ host, worker })));
    workers.sort((a, b) => a.worker.rank - b.worker.rank);
    const slowest = workers.reduce((most, each) => (each.worker.compute_seconds > (most ? most.worker.compute_seconds : 0) ? each : most), null);
    const counted = workers.some(({ worker }) => worker.sent_bytes > 0);
    const rate = counted && isNumber(this.rate) ? ", " + bytes(this.rate) + " a second between them" : "";
    redraw(this.waiting, [live, slow], () => [
      table("Each rank of the last step; together " + short(live.samples_per_second) + " samples a second" + rate,
        ["Rank", "Host", "Phase", "Step", "Computes", "Waits for others", "Straggler score", ...(counted ? ["Sent", "Received"] : [])],
        workers.map(({ host, worker }) => [whole(worker.rank), host.name + (worker === (slowest && slowest.worker) && workers.length > 1 ? " (slowest)" : ""), worker.phase, duration(worker.step_seconds),
          duration(worker.compute_seconds), isNumber(worker.waiting) ? el("span", {}, meter(worker.waiting)) : NONE, short(worker.straggler), ...(counted ? [bytes(worker.sent_bytes), bytes(worker.received_bytes)] : [])])),
      note("The straggler score is how long a rank computes, as a multiple of the median of the others."),
      hostReasons(live.hosts), history]);
    this.drawActions(live);
  }

  drawActions(live) {
    if (!this.store.mayAct) return;
    if (!this.actions.firstChild) {
      const host = el("input", { type: "text", id: "newhost", placeholder: "host" });
      replace(this.actions, panel("Actions",
        el("div", { class: "tools" }, el("button", { type: "button", onclick: () => this.wish({ action: "stop" }, "Stop the job? A training saves a checkpoint. A queue does not start the job again.") }, "Stop the job"),
          el("label", { for: "newhost" }, "Add", host), el("button", { type: "button", onclick: () => host.value.trim() && this.wish({ action: "add", host: host.value.trim() }, "Add " + host.value.trim() + " to the job?") }, "Add")),
        this.hosts));
    }
    redraw(this.hosts, live.hosts.map((each) => [each.name, each.state]), () => [table("Hosts", ["Host", "State", "", ""], live.hosts.map((each) => [each.name, each.state,
      el("button", { type: "button", "aria-label": "Drain " + each.name, onclick: () => this.wish({ action: "drain", host: each.name }, each.name + " leaves at the next step and stays in the list. Drain it?") }, "Drain"),
      el("button", { type: "button", "aria-label": "Remove " + each.name, onclick: () => this.wish({ action: "remove", host: each.name }, "Remove " + each.name + " from the job?") }, "Remove")]))]);
  }

  // Asks once, then acts, and says how it went.
  wish(values, question) {
    const words = el("p", {}, question), answer = el("p", { role: "status" });
    const yes = el("button", { type: "button" }, "Yes"), no = el("button", { type: "button" }, "No");
    const box = el("dialog", { "aria-label": "Confirm" }, words, answer, el("div", { class: "tools" }, no, yes));
    no.onclick = () => box.close();
    box.onclose = () => box.remove();
    yes.onclick = async () => {
      yes.disabled = true;
      try {
        const { problems } = await act(values, this.id);
        setText(answer, ["Done; the events below show what follows."].concat((problems || []).map((problem) => "The file host_worker: " + problem + ".")).join(" "));
        setText(no, "Close");
      } catch (error) {
        setText(answer, error.message + (error.hint ? ". " + error.hint : ""));
      }
    };
    document.body.append(box);
    box.showModal();
    no.focus();
  }

  async checkLedger() {
    replace(this.ledger, note("Reading the ledger\u2026"));
    try {
      const check = await ask("/api/ledger", { run: this.id });
      if (!check.recorded) return replace(this.ledger, note("The job keeps no ledger: train with --sample-ledger."));
      const bad = check.epochs.filter((epoch) => !epoch.complete && !epoch.unfinished), good = check.epochs.filter((epoch) => epoch.complete).length;
      const copies = check.checked === "copies"; // the sampler takes some images several times, and others not at all
      const what = copies ? "copies of images" : "samples";
      return replace(this.ledger, el("p", { class: bad.length ? "bad" : "good" }, bad.length ? (bad.length === 1 ? "1 epoch has" : bad.length + " epochs have") + " " + what + " that are missing or counted twice." :
        copies ? "In each of " + good + " whole epochs the number of samples is right and no copy of an image counted twice." :
          "In each of " + good + " whole epochs every sample counted exactly once."),
      copies ? note("The sampler of this run takes some images several times in an epoch and may leave others out, so that it is not checked whether each image came.") : null,
      el("details", { open: bad.length > 0 }, el("summary", {}, "Each epoch"), table("Samples by epoch", ["Epoch", "Samples", "Expected", "Verdict"], check.epochs.slice(-200).map((epoch) => [whole(epoch.epoch), whole(epoch.samples), whole(epoch.expected),
        epoch.complete ? (copies ? "no copy twice" : "each once") : epoch.unfinished ? "not over" : "wrong"]))));
    } catch (error) {
      return replace(this.ledger, note(error.message));
    }
  }

  drawEvents() {
    const kinds = { trouble: ["trouble"], change: ["trouble", "change"], detail: ["trouble", "change", "detail"] }[this.weight.value];
    const words = this.search.value.trim().toLowerCase();
    const shown = this.events.filter((event) => kinds.includes(event.weight) && (!words || (event.kind + " " + event.text).toLowerCase().includes(words))).slice(-MOST_EVENTS).reverse();
    if (!shown.length) return replace(this.list, el("li", { class: "quiet" }, "no such event"));
    const lines = shown.map((event) => this.lines.get(event.number) || this.makeLine(event)), [newest] = lines;
    if (this.list.firstChild === newest && this.list.children.length === lines.length) return undefined;
    // A reader who has scrolled down stays where she is while events come above.
    const { scrollTop, scrollHeight } = this.list;
    replace(this.list, lines);
    if (scrollTop > 0) this.list.scrollTop = scrollTop + this.list.scrollHeight - scrollHeight;
    return undefined;
  }

  // Stays the same element while the page is open: a reader may have opened it.
  makeLine(event) {
    const more = el("details", {}, el("summary", {}, el("time", { title: dateAndClock(event.at) }, clock(event.at)), el("b", {}, event.kind), event.text));
    more.addEventListener("toggle", () => more.open && more.children.length === 1 && more.append(el("pre", {}, JSON.stringify(event.raw, null, 1))));
    const line = el("li", { class: event.weight }, more);
    this.lines.set(event.number, line);
    return line;
  }

  end() {
    this.over = true;
    clearInterval(this.timer);
    clearTimeout(this.pending);
    this.timeline.end();
  }
}
