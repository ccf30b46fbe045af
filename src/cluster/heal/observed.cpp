#include <algorithm>

#include <dtrain/cluster/cost.hpp>
#include <dtrain/cluster/power.hpp>
#include <dtrain/cluster/reconcile.hpp>

#include "left.hpp"
#include "plan/ended.hpp"

namespace dtrain::cluster {
namespace {

WorkerSeen::State state_of(const Node& node) {
  if (!node.there()) return WorkerSeen::State::ended;
  if (node.state == "pending") return WorkerSeen::State::starting;
  return node.state == "running" ? WorkerSeen::State::running : WorkerSeen::State::stopped;
}

// EC2's codes of an interrupted spot instance are Server.SpotInstanceTermination and Server.SpotInstanceShutdown.
bool is_reclaimed(const Node& node) { return node.end_reason.starts_with("Server.SpotInstance"); }

std::string tag_of(const Node& node, const char* key) {
  const auto found = node.tags.find(key);
  return found == node.tags.end() ? std::string() : found->second;
}

Part part_of(const std::string& host, const TagSyncView& job) {
  if (!job.unknown.empty()) return Part::unknown;
  if (!job.job_runs) return Part::no_job;
  if (!job.elastic) return Part::fixed;
  const auto found = job.states.find(host);
  if (found == job.states.end()) return Part::outside;
  const std::string& state = found->second;
  if (state == "member" || state == "leaving") return Part::trains;
  if (state == "spare") return Part::spare;
  return state == "starting" || state == "preparing" || state == "ready" ? Part::joining : Part::outside;
}

}  // namespace

Sick sick_in(const std::vector<NodeHealth>& nodes) {
  Sick sick;
  for (const NodeHealth& one : nodes) {
    if (one.node.role != Role::worker || one.well()) continue;
    sick[one.node.instance_id] = {one.why(), one.notice() != nullptr};
  }
  return sick;
}

Observed observed_in(const Fleet& fleet, const Sick& sick, const std::optional<TagSyncView>& job,
                     std::vector<Pool> pools) {
  Observed observed{
      .complete = fleet.group && fleet.launch_template, .stopped = is_stopped(fleet), .pools = std::move(pools)};
  const Node* head = fleet.head();
  observed.head = !head ? Observed::Head::gone : head->alive() ? Observed::Head::alive : Observed::Head::stopped;
  observed.has_time_limit = has_time_limit(fleet);
  if (const Node* ended = latest_ended_head(fleet)) {
    observed.ended_head = ended->instance_id;
    observed.head_end = ended_text(*ended);
    observed.head_left = shut_itself_down(*ended);
  }
  const auto see = [&](const Node& node) {
    // A machine that only carries the cluster's tag was put there by hand: it is not the cluster's to count.
    if (node.role != Role::worker || (node.launch.empty() && !node.base && !node.elastic)) return;
    WorkerSeen& seen = observed.workers.emplace_back();
    seen.id = node.instance_id;
    seen.name = node.name;
    seen.base = node.base;
    seen.adopted = is_adopted(node);
    seen.weight = node.weight;
    seen.state = state_of(node);
    seen.pool = {node.market, node.type, node.zone, node.subnet_id};
    seen.host = node.private_ip;
    seen.replaced_by = tag_of(node, tag::kReplaced);
    seen.left_itself = observed.has_time_limit && shut_itself_down(node);
    seen.reclaimed = is_reclaimed(node);
    if (seen.state == WorkerSeen::State::ended) seen.end = ended_text(node);
    seen.leaves = leaves_on_purpose(node);
    seen.left = !tag_of(node, tag::kLeft).empty();
    seen.healed = !tag_of(node, tag::kHealed).empty();
    seen.launched = node.launch_time;
    seen.began = UnixTime(launched_at(node).value_or(0));
    if (const auto why = sick.find(node.instance_id); why != sick.end()) {
      seen.sick = why->second.why;
      seen.announced = why->second.announced;
    }
    if (job) {
      seen.part = part_of(seen.host, *job);
      seen.listed = job->listed.contains(seen.host);
      seen.was_listed = job->log.contains(seen.host);
      seen.ready = job->ready.contains(seen.host);
    }
  };
  for (const Node& node : fleet.nodes) see(node);
  for (const Node& node : fleet.ending) see(node);
  return observed;
}

}  // namespace dtrain::cluster
