#include "cluster_replace.hpp"

#include <fmt/format.h>

#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/cluster/agents.hpp>
#include <dtrain/cluster/cluster_head.hpp>

#include "job/tag_sync/sync.hpp"

namespace dtrain::cli {
namespace {

using namespace std::chrono_literals;
constexpr auto kPause = 1s;
// An impaired one may not be able to leave by itself.
constexpr std::chrono::seconds kToLeave{60};

class Replacement {
 public:
  Replacement(ClusterCloud& cloud, const cluster::ClusterRequest& request, Reporter& reporter)
      : cloud_(cloud), request_(request), context_(cloud.context(true)), reporter_(reporter) {}

  Replaced run(const cluster::Account& account, const cluster::Node& bad, bool no_head) {
    const cluster::Node fresh = start_replacement(context_, request_, account, fleet(), bad);
    reporter_.note(fmt::format("{} ({}) will replace {}", fresh.name, fresh.instance_id, bad.name));
    if (!no_head) change_places(bad, fresh);
    const std::string name = replace_node(context_, fleet(), bad, fresh);
    return {bad.name, bad.instance_id, name, fresh.instance_id};
  }

 private:
  cluster::Fleet fleet() { return cluster::read_fleet(cloud_.aws(), request_.name); }

  void change_places(const cluster::Node& bad, const cluster::Node& fresh) {
    cluster::ClusterHead head(fleet(), context_.patience);
    wait_until_registered(head, fresh);
    const auto job = job::make_remote_job(head, {});
    const cluster::Fleet now = fleet();
    const cluster::TagSyncView view = job->look(now);
    if (!view.job_runs || !view.listed.contains(bad.private_ip)) return;
    if (!view.listed.contains(fresh.private_ip)) job->add(fresh.private_ip);
    if (!job::drain_node(cloud_.aws(), now, bad, *job, kToLeave)) {
      reporter_.warn(fmt::format("{} has not left the job and is ended anyway", bad.name));
    }
  }

  void wait_until_registered(cluster::ClusterHead& head, const cluster::Node& fresh) {
    using State = cluster::AgentWord::State;
    const auto until = std::chrono::steady_clock::now() + context_.patience;
    for (;;) {
      const cluster::Fleet now = fleet();
      head.announce(now);
      const cluster::AgentWord agent = agent_of(fresh, now, head.ask(Json::object({{"ask", "list"}})));
      if (agent.state == State::registered) return;
      if (agent.state == State::failed || std::chrono::steady_clock::now() > until) {
        throw Error(fmt::format("{} has not joined the cluster: {}", fresh.name, agent.text()),
                    fmt::format("dtrain cluster logs {} {} shows its boot log; the node to be replaced is still there",
                                request_.name, fresh.name));
      }
      if (stop_signal() != 0) throw Stopped("stopped by a signal");
      std::this_thread::sleep_for(kPause);
    }
  }

  ClusterCloud& cloud_;
  const cluster::ClusterRequest& request_;
  const cluster::AwsContext context_;
  Reporter& reporter_;
};

}  // namespace

std::vector<Replaced> replace_workers(ClusterCloud& cloud, const cluster::ClusterRequest& request,
                                      const std::vector<cluster::Node>& bad, bool no_head, Reporter& reporter) {
  const cluster::Account account = cluster::read_account(cloud.aws(), request.spec, request.name);
  Replacement replacement(cloud, request, reporter);
  std::vector<Replaced> all;
  for (const cluster::Node& node : bad) all.push_back(replacement.run(account, node, no_head));
  return all;
}

}  // namespace dtrain::cli
