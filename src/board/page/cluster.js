// The machines of all jobs: where they are, what the admission check found, and the time that they have worked.

import { ask } from "./api.js";
import { el, note, replace, table } from "./dom.js";
import { bytes, dateAndClock, duration, short, whole, isNumber, NONE } from "./format.js";

export class ClusterPage {
  constructor() {
    this.content = el("div", {}, note("Reading the events of all jobs\u2026"));
    this.node = el("div", {}, el("h1", {}, "Machines"), this.content);
    this.load();
  }

  title() {
    return "Machines";
  }

  update() {
    if (performance.now() > (this.last || 0) + 3000) this.load();
  }

  async load() {
    this.last = performance.now();
    try {
      const { hosts, worker_seconds: seconds } = await ask("/api/machines");
      if (this.over) return;
      if (!hosts.length) return replace(this.content, note("No job with machines of its own is below these folders."));
      return replace(this.content, el("p", {}, "All workers together: " + duration(seconds) + " of training."),
        table("Machines, as the jobs met them last", ["Host", "Job", "State", "Address", "Since", "Memory free", "Disk free", "Network", "Clock off by", "Failures"],
          hosts.map((host) => [host.host, el("a", { href: "#/job/" + host.run }, host.job), host.state, host.address || NONE, dateAndClock(host.at), bytes(host.memory_free_bytes), bytes(host.disk_free_bytes),
            isNumber(host.bandwidth) ? short((host.bandwidth * 8) / 1e6) + " Mbit/s" : NONE, duration(host.clock_offset), whole(host.failures)])));
    } catch (error) {
      return replace(this.content, note(error.message));
    }
  }

  end() {
    this.over = true;
  }
}
