#include "sync.hpp"

#include <fmt/format.h>

#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/cluster/change.hpp>

namespace dtrain::job {
namespace {

constexpr std::chrono::seconds kTagLook{1};

void set_status(net::AwsCalls& aws, const std::string& instance_id, const std::string& status) {
  aws.query(net::kEc2, "CreateTags",
            {{"ResourceId.1", instance_id}, {"Tag.1.Key", cluster::tag::kStatus}, {"Tag.1.Value", status}});
}

void do_step(net::AwsCalls& aws, const cluster::TagSyncStep& step, TagSyncJob& job) {
  using Kind = cluster::TagSyncStep::Kind;
  switch (step.kind) {
    case Kind::add_host:
      return job.add(step.host);
    case Kind::remove_host:
      return job.remove(step.host);
    case Kind::set_status:
      return set_status(aws, step.instance_id, step.status);
    case Kind::end_instance:
      return cluster::end_instances({.aws = aws, .wait = false}, {step.instance_id});
  }
}

std::string step_words(const cluster::TagSyncStep& step) {
  using Kind = cluster::TagSyncStep::Kind;
  switch (step.kind) {
    case Kind::add_host:
      return fmt::format("{} ({}) joins the job", step.host, step.instance_id);
    case Kind::remove_host:
      return fmt::format("{} ({}) leaves the job", step.host, step.instance_id);
    case Kind::set_status:
      return fmt::format("{} ({}): {}", step.host, step.instance_id, step.status);
    case Kind::end_instance:
      return fmt::format("{} ({}) is ended", step.host, step.instance_id);
  }
  return {};
}

}  // namespace

int sync_tags(net::AwsCalls& aws, const std::string& cluster, TagSyncJob& job, const cluster::ClusterHead::Note& note) {
  const cluster::Fleet fleet = cluster::read_fleet(aws, cluster);
  int done = 0;
  for (const cluster::TagSyncStep& step : cluster::decide_tag_sync(fleet, job.look(fleet))) {
    try {
      do_step(aws, step, job);
      note(step_words(step));
      ++done;
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      note(fmt::format("not done: {}: {}", step_words(step), error.what()));
    }
  }
  return done;
}

bool drain_node(net::AwsCalls& aws, const cluster::Fleet& fleet, const cluster::Node& node, TagSyncJob& job,
                std::chrono::seconds patience) {
  const std::string& host = node.private_ip;
  cluster::TagSyncView view = job.look(fleet);
  if (!view.job_runs || !view.listed.contains(host)) return true;
  set_status(aws, node.instance_id, "REMOVAL_QUEUED");
  job.remove(host);
  const auto until = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < until) {
    view = job.look(fleet);
    const auto word = view.log.find(host);
    if (!view.job_runs || word == view.log.end() || word->second == "REMOVED") return true;
    if (stop_signal() != 0) throw Stopped("stopped by a signal");
    std::this_thread::sleep_for(kTagLook);
  }
  return false;
}

}  // namespace dtrain::job
