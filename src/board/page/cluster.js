// The machines of all jobs: where they are, what the admission check found, and the time that they have worked. With
// --show-cluster also those of clusters, their health and their cost. A cluster in an AWS account has nodes, one of
// registered machines has hosts.

import { ask } from "./api.js";
import { el, note, panel, redraw, replace, table } from "./dom.js";
import { bytes, clock, dateAndClock, duration, money, short, whole, isNumber, NONE } from "./format.js";

const HOURS_OF_A_MONTH = 730;

const machinesOf = (answer) => (answer && (answer.nodes || answer.hosts)) || [];

function healthOf(name, health) {
  const node = machinesOf(health).find((each) => each.name === name);
  if (!node) return NONE;
  return el("span", { class: node.well ? "good" : "bad" }, node.well ? "\u2713 well" : "\u2717 " + (node.why || "impaired"));
}

function nodesTable(status, cost, health) {
  const prices = new Map(((cost && cost.nodes) || []).map((node) => [node.name, node]));
  const clocks = new Map(((health && health.nodes) || []).map((node) => [node.name, node.clock_offset_seconds]));
  return table("Machines of the cluster", ["Machine", "State", "Health", "Type", "Zone", "Market", "Address", "Agent", "Clock off by", "Hours", "An hour"],
    status.nodes.map((node) => {
      const price = prices.get(node.name) || {}, hourly = isNumber(price.spot_dollars_per_hour) ? price.spot_dollars_per_hour : price.dollars_per_hour;
      return [node.name, node.state, healthOf(node.name, health), node.type, node.zone || NONE, node.market || NONE, node.private_ip || NONE, node.agent || NONE,
        duration(clocks.get(node.name)), isNumber(price.hours) ? short(Number(price.hours.toFixed(1))) : NONE, money(hourly)];
    }));
}

function hostsTable(status, health) {
  const clocks = new Map(machinesOf(health).map((host) => [host.name, host.clock_offset_seconds]));
  return table("Hosts of the cluster", ["Host", "Role", "State", "Health", "Slots", "CPUs", "GPUs", "Disk free", "Clock off by", "An hour"],
    status.hosts.map((host) => [host.name, host.role, host.answers ? "ready" : "away", healthOf(host.name, health), whole(host.slots), whole(host.cpus),
      host.gpus ? whole(host.gpus.gpus.length) : NONE, bytes(host.disk_free_bytes), duration(clocks.get(host.name)), money(host.dollars_per_hour)]));
}

function clusterPanel(cluster) {
  const answerOf = (question) => (cluster[question] && cluster[question].answer) || null;
  const status = answerOf("status"), cost = answerOf("cost"), health = answerOf("health"), known = cost || status || {};
  const kept = ((cost && cost.storage) || []).reduce((sum, one) => sum + one.dollars_per_month, 0);
  const hourly = known.dollars_per_hour, month = isNumber(hourly) ? hourly * HOURS_OF_A_MONTH + kept : null;
  const fact = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));
  const troubles = ["status", "cost", "health"].filter((question) => cluster[question] && cluster[question].error);
  const asked = cluster.asked_at ? "Asked at " + clock(cluster.asked_at) + (cluster.asking ? "; asking again\u2026" : ".") : "Asking the cluster\u2026";
  const ill = health ? machinesOf(health).filter((node) => !node.well).length : null;
  return panel("Cluster " + cluster.name,
    status && status.exists === false ? note("There is no such cluster in " + status.region + ".") :
      el("dl", { class: "facts" }, fact("Cost until now", money(known.dollars_so_far)), fact("An hour", money(hourly)),
        fact("The next day", money(isNumber(hourly) ? hourly * 24 : null)), fact("The next month", money(month)),
        fact("Machines", status ? whole(machinesOf(status).length) : NONE), fact("Health", ill === null ? NONE : ill ? ill + " impaired" : "all well")),
    status && status.hosts ? hostsTable(status, health) : machinesOf(status).length ? nodesTable(status, cost, health) : null,
    kept ? note("Shared files stay when the machines end: " + money(kept) + " a month.") : null,
    status && status.exists !== false ? note(status.hosts ? "Prices are those that `dtrain cluster register` was given." :
      "Prices are those on demand of us-east-1, or of the spot market where a machine comes from it; disks and traffic cost extra.") : null,
    [...new Set(troubles.map((question) => cluster[question].error))].map((error) => el("p", { class: "bad" },
      "dtrain cluster " + troubles.filter((question) => cluster[question].error === error).join(", ") + ": " + error)), note(asked));
}

export class ClusterPage {
  constructor() {
    this.clusters = el("div");
    this.content = el("div", {}, note("Reading the events of all jobs\u2026"));
    this.node = el("div", {}, el("h1", {}, "Machines"), this.clusters, this.content);
    this.load();
    this.timer = setInterval(() => !document.hidden && this.load(), 3000);
  }

  title() {
    return "Machines";
  }

  update() {
    if (performance.now() > (this.last || 0) + 3000) this.load();
  }

  load() {
    this.last = performance.now();
    this.loadClusters();
    this.loadHosts();
  }

  show(node, answer, parts) {
    if (!this.over) redraw(node, answer, parts);
  }

  async loadClusters() {
    try {
      const answer = await ask("/api/clusters");
      this.show(this.clusters, answer, () => answer.clusters.map(clusterPanel));
    } catch (error) {
      replace(this.clusters); // an exported page holds none
    }
  }

  async loadHosts() {
    try {
      const answer = await ask("/api/machines"), { hosts, worker_seconds: seconds } = answer;
      this.show(this.content, answer, () => (!hosts.length ? [note("No job with machines of its own is below these folders.")] : [
        el("p", {}, "All workers together: " + duration(seconds) + " of training."),
        table("Machines, as the jobs met them last", ["Host", "Job", "State", "Address", "Since", "Memory free", "Disk free", "Network", "Clock off by", "Failures"],
          hosts.map((host) => [host.host, el("a", { href: "#/job/" + host.run }, host.job), host.state, host.address || NONE, dateAndClock(host.at), bytes(host.memory_free_bytes), bytes(host.disk_free_bytes),
            isNumber(host.bandwidth) ? short((host.bandwidth * 8) / 1e6) + " Mbit/s" : NONE, duration(host.clock_offset), whole(host.failures)]))]));
    } catch (error) {
      replace(this.content, note(error.message));
    }
  }

  end() {
    this.over = true;
    clearInterval(this.timer);
  }
}
