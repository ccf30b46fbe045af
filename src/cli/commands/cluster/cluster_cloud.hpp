// What the verbs of `cluster` share besides their options: the account's calls, consent, and how a plan is shown.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <dtrain/base/reporter.hpp>
#include <dtrain/cluster/change.hpp>
#include <dtrain/cluster/fleet.hpp>
#include <dtrain/cluster/power.hpp>
#include <dtrain/cluster/wish.hpp>

#include "config/cluster_options.hpp"

namespace dtrain::cli {

// The account's calls, counted and timed.
class ClusterCloud {
 public:
  // The reporter must outlive this. one_cluster: in the region that has the cluster, where several are named, or one is
  // remembered beside the usual one; they are asked for it. made_cluster: the same for a command that may make it;
  // where no region has anything of it, it is made in the usual one. region: the named one, or the usual one.
  enum class Scope { one_cluster, made_cluster, region };
  ClusterCloud(const config::ClusterPlace& place, Reporter& reporter, Scope scope = Scope::one_cluster);
  ~ClusterCloud();  // says how many calls there were and how long they took, with --timing
  net::AwsCalls& aws() { return aws_; }
  // For commands without an end: the time for AWS begins anew, if half of it is over. No call may be under way.
  void begin_again();
  cluster::AwsContext context(bool wait);
  net::AwsSettings settings() const;
  // Of the region, as far as dtrain knows them; read once.
  const cluster::PriceList& prices();
  // Says once that these prices are those of another region, where they are: before they count for a consent or budget.
  void warn_of_prices();

 private:
  void note(const net::CallRecord& call);

  const config::ClusterPlace place_;
  Reporter& reporter_;
  std::chrono::steady_clock::time_point limited_since_;
  std::chrono::steady_clock::time_point begin_;
  std::map<std::string, std::pair<int, std::chrono::duration<double>>> calls_;  // by action
  net::AwsCalls aws_;
  std::optional<cluster::PriceList> prices_;
  bool warned_of_prices_ = false;
};

// The specification of an `up`: a cluster that is made without a terminal ends its idle nodes, unless the person says
// otherwise. The reporter says so.
cluster::Spec spec_of_up(const cluster::Spec& spec, const config::OptionSet& set, const cluster::Fleet& fleet,
                         Reporter& reporter);

// What was asked for: what the person says now, and what `up` was told when the cluster was made.
cluster::ClusterRequest cluster_request(const std::string& name, const cluster::Spec& spec,
                                        const config::OptionSet& set, const cluster::Fleet& fleet);

// Goes on only when the person agrees: by --yes, or at the terminal. Throws UsageError.
void require_consent(bool yes, const std::string& question, Reporter& reporter);

// Says that the prices are those of another region, where they are.
void warn_of_other_region(const cluster::PriceList& prices, const net::AwsCalls& aws, Reporter& reporter);
// The dollars an hour; null where no price is known.
Json hourly_json(const cluster::Cost& cost);
Json unpriced_json(const cluster::Cost& cost);
// The dollars since the launches; null where no price is known.
Json so_far_json(const cluster::Fleet& fleet, const cluster::PriceList& prices);

// The machines that are stopped, and their disks; null: none is.
Json stopped_json(const cluster::StoppedDisks& disks);

Json node_json(const cluster::Node& node);
Json plan_json(const cluster::ClusterRequest& request, const cluster::Account& account, const cluster::Plan& plan,
               const cluster::Fleet& fleet);
Json attempts_json(const cluster::Launched& launched);
void answer_plan(const cluster::ClusterRequest& request, const cluster::Account& account, const cluster::Plan& plan,
                 Reporter& reporter);

// Does `change`. Where a signal interrupts it, `hint` says how it is gone on with; it is read then, so that `change`
// may set it.
ExitCode change_cluster(const config::ClusterPlace& place, const std::string& hint,
                        const std::function<ExitCode()>& change);

}  // namespace dtrain::cli
