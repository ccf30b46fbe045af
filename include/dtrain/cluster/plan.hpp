// The actions that turn what exists into what was requested: pure functions.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <dtrain/base/enum_names.hpp>
#include <dtrain/cluster/account.hpp>
#include <dtrain/cluster/cost.hpp>
#include <dtrain/cluster/fleet.hpp>
#include <dtrain/cluster/spec.hpp>

namespace dtrain::cluster {

// In the order in which they are carried out.
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
constexpr EnumName<Step> kStepNames[] = {{Step::security_group, "security-group"},
                                         {Step::ssh_rule, "ssh-rule"},
                                         {Step::own_rules, "own-rules"},
                                         {Step::key_pair, "key-pair"},
                                         {Step::placement_group, "placement-group"},
                                         {Step::file_system, "file-system"},
                                         {Step::role, "role"},
                                         {Step::head, "head"},
                                         {Step::mount_target, "mount-target"},
                                         {Step::launch_template, "launch-template"},
                                         {Step::workers, "workers"},
                                         {Step::names, "names"},
                                         {Step::options, "options"},
                                         {Step::emr, "emr"}};

struct Action {
  Step step;
  std::string what;  // for the user: "start 2 workers: c5.large, on demand"
};

// A source of machines: each is requested once.
struct Pool {
  Market market = Market::on_demand;
  std::string type{}, zone{}, subnet_id{};
  double max_price = 0;       // of a spot instance, as in Spec
  std::string reservation{};  // the capacity reservation that it is; empty: none
  int weight = 1;             // as how many workers each of its machines counts
  std::string text() const;   // "on-demand c5.large in us-east-1a", and its reservation
  std::string place() const;  // the same without that
};

struct QuotaNeed {
  std::string quota;
  int vcpus = 0;                  // needed by the whole cluster
  std::optional<double> limit{};  // nullopt: unknown
  bool enough() const { return !limit || vcpus <= *limit; }
};

struct Plan {
  std::vector<Action> actions{};                 // empty: the cluster is as requested
  std::vector<std::string> to_start{};           // names of missing workers
  std::map<std::string, std::string> to_name{};  // instance id -> name
  std::vector<std::string> notes{};              // advice for the user
  std::vector<QuotaNeed> quotas{};
  Cost cost{};
  bool has(Step step) const;
};

// Throws UsageError if the cluster exists with other options, of which only some can change, and for machines to be
// started whose GPU does not train.
Plan plan_up(const Spec& spec, const std::map<std::string, std::string>& options, const Account& account,
             const Fleet& fleet);

// Throws UsageError for a type whose GPU dtrain cannot train on, and names one that it can. A head that takes no part
// in training may be of any type.
void refuse_gpus_that_do_not_train(const Spec& spec, const Account& account);

// What the reservation has, for the user; nullopt: nothing is to be started in one. Throws UsageError where the further
// machines do not fit into it: EC2 starts all of them there or none.
[[nodiscard]] std::optional<std::string> reservation_note(const Account& account, int wanted);

// Which nodes are stopped or stopping, and how they start again; nullopt: none is.
[[nodiscard]] std::optional<std::string> stopped_note(const Fleet& fleet);

// Which base workers are beyond the wanted ones, and how they end; nullopt: none is.
[[nodiscard]] std::optional<std::string> surplus_note(const Fleet& fleet, int wanted);

// The markets of the workers, in order of preference. The head is of one of them.
std::vector<Market> markets_of(const Spec& spec);

// Pools in the order in which they are tried: by market, then by type, then by zone; `zone` first if it is not empty.
std::vector<Pool> worker_pools(const Spec& spec, const Account& account, const std::string& zone);
std::vector<Pool> head_pools(const Spec& spec, const Account& account);

// Names for unnamed workers, and for `more` further ones: the lowest that `taken` leaves, up to `base`, then those
// above every number so far.
std::vector<std::string> missing_base_workers(const Spec& spec, const Fleet& fleet);
std::vector<std::string> next_workers(const Fleet& fleet, int more);
// As how many workers the base workers count, without those that are about to leave or to be replaced, and without the
// instance of that id.
int counted_base(const Fleet& fleet, const std::string& without = {});
// The base workers beyond `wanted`, by name: `up` starts none in their place.
std::vector<const Node*> surplus_base_workers(const Fleet& fleet, int wanted);
// The number of the launch that would start these. It stays the same for the same machines until a launch is complete.
int launch_number(const Fleet& fleet, const std::vector<std::string>& names);
int last_node(const Fleet& fleet);
// The names that workers of `ours` are to take, by instance id: those without a name, and those whose name belongs to a
// worker that comes before them. Base workers come first, then the older. `alone`: where a name conflicts with that of
// a worker of another command, ours gives way whatever the order. Commands that see the same fleet choose different
// names.
std::map<std::string, std::string> names_for(const Fleet& fleet, const std::set<std::string>& ours, bool alone);
// The fleet as it will be with these names.
Fleet with_names(Fleet fleet, const std::map<std::string, std::string>& names);
// Ids of workers whose name belongs to a worker that comes before them.
std::set<std::string> duplicates(const Fleet& fleet);

}  // namespace dtrain::cluster
