// What the verbs of `cluster` have in common: which cluster, whose account, and what it is to be.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <dtrain/base/reporter.hpp>
#include <dtrain/cluster/change.hpp>
#include <dtrain/cluster/fleet.hpp>
#include <dtrain/cluster/spec.hpp>

#include "option_set.hpp"

namespace dtrain::cli {

// Which cluster, in whose account.
struct ClusterPlace {
  std::string name;
  std::string region, profile;  // empty: of the environment and ~/.aws
  int timeout_seconds = 900;
  bool timing = false;
};
void bind_cluster(OptionSet& set, ClusterPlace& place);
void bind_account(OptionSet& set, ClusterPlace& place);  // all of it but the name
void bind_yes(OptionSet& set, bool& yes, const std::string& help);
void bind(OptionSet& set, cluster::Spec& spec);

// The account's calls, counted and timed.
class ClusterCloud {
 public:
  // The reporter must outlive this.
  ClusterCloud(const ClusterPlace& place, Reporter& reporter);
  ~ClusterCloud();  // says how many calls there were and how long they took, with --timing
  net::AwsCalls& aws() { return aws_; }
  cluster::Work work(bool wait);

 private:
  void note(const net::CallRecord& call);

  const ClusterPlace& place_;
  Reporter& reporter_;
  std::chrono::steady_clock::time_point begin_;
  std::map<std::string, std::pair<int, std::chrono::duration<double>>> calls_;  // by action
  net::AwsCalls aws_;
};

// Throws UsageError: nothing of such a cluster is there.
void require_there(const cluster::Fleet& fleet, const net::AwsCalls& aws);

// What was asked for: what the person says now, and what `up` was told when the cluster was made.
cluster::Wish wish_of(const std::string& name, const cluster::Spec& spec, const OptionSet& set,
                      const cluster::Fleet& fleet);

// Goes on only when the person agrees: by --yes, or at the terminal. Throws UsageError.
void require_consent(bool yes, const std::string& question, Reporter& reporter);

Json node_json(const cluster::Node& node);
Json plan_json(const cluster::Wish& wish, const cluster::Account& account, const cluster::Plan& plan,
               const cluster::Fleet& fleet);
Json attempts_json(const cluster::Launched& launched);
void answer_plan(const cluster::Wish& wish, const cluster::Account& account, const cluster::Plan& plan,
                 Reporter& reporter);

// Does `change`, and says how it can be gone on with when it is interrupted or fails half-way.
ExitCode change_cluster(const ClusterPlace& place, const std::function<ExitCode()>& change);

}  // namespace dtrain::cli
