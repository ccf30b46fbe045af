// What is still to be done for a cluster to be as it was asked for: pure functions of what was asked and what is there.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/cluster/account.hpp>
#include <dtrain/cluster/cost.hpp>
#include <dtrain/cluster/fleet.hpp>
#include <dtrain/cluster/spec.hpp>

namespace dtrain::cluster {

// In the order in which they are done.
enum class Step {
  security_group,
  ssh_rule,
  own_rules,
  key_pair,
  placement_group,
  file_system,
  role,
  head,
  mount_target,
  launch_template,
  workers,
  names,
  options,
  emr,
};
std::string_view name_of(Step step);

struct Action {
  Step step;
  std::string what;  // for people: "start 2 workers: c5.large, on demand"
};

// Where machines may be had: each is asked once.
struct Pool {
  std::string market{}, type{}, zone{}, subnet_id{};  // market: "on-demand" or "spot"
  std::string text() const;                           // "on-demand c5.large in us-east-1a"
};

struct QuotaNeed {
  std::string quota;
  int vcpus = 0;                  // that the whole cluster takes
  std::optional<double> limit{};  // nullopt: it could not be read
  bool enough() const { return !limit || vcpus <= *limit; }
};

struct Plan {
  std::vector<Action> actions{};                 // none: it is as it should be
  std::vector<std::string> to_start{};           // names of the workers that are missing
  std::map<std::string, std::string> to_name{};  // instance id -> name
  std::vector<std::string> notes{};              // what a person should know
  std::vector<QuotaNeed> quotas{};
  Cost cost{};
  bool has(Step step) const;
};

// Throws UsageError: the cluster is there with other options, of which only some can change.
Plan plan_up(const Spec& spec, const std::map<std::string, std::string>& options, const Account& account,
             const Fleet& fleet);

// In the order in which they are tried: zones, then types, then markets. `zone` first, where it is not empty.
std::vector<Pool> worker_pools(const Spec& spec, const Account& account, const std::string& zone);
std::vector<Pool> head_pools(const Spec& spec, const Account& account);

// Names for workers that have none, and for `more` further ones: the lowest that `taken` leaves, up to `base`, then
// those above every number so far.
std::vector<std::string> missing_base_workers(const Spec& spec, const Fleet& fleet);
std::vector<std::string> next_workers(const Fleet& fleet, int more);
// The number of the launch that would start these: the same for the same machines until one launch is over.
int launch_number(const Fleet& fleet, const std::vector<std::string>& names);
int last_node(const Fleet& fleet);

}  // namespace dtrain::cluster
