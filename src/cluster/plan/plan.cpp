#include <dtrain/cluster/plan.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <dtrain/base/error.hpp>
#include <dtrain/base/gpu_models.hpp>
#include <dtrain/base/text.hpp>

#include "notes.hpp"
#include "ssh_rule.hpp"

namespace dtrain::cluster {
namespace {

constexpr std::size_t kMostNodesNamed = 8;
// Options that can change on an existing cluster; the others are in the user data of its nodes.
constexpr std::array<std::string_view, 6> kChangeable{"workers", "min-workers",   "ssh-from",
                                                      "spot",    "instance-type", "max-price"};

struct Family {
  std::string_view begin, quota, spot_quota;
};
// The order matters: the first prefix that fits counts. EC2 counts spot machines of P2 to P4 and of P5 apart.
constexpr Family kFamilies[] = {{"g", "gpu-g", "spot-gpu-g"},
                                {"vt", "gpu-g", "spot-gpu-g"},
                                {"p2", "gpu-p", "spot-gpu-p"},
                                {"p3", "gpu-p", "spot-gpu-p"},
                                {"p4", "gpu-p", "spot-gpu-p"},
                                {"p5", "gpu-p", "spot-gpu-p5"},
                                {"p", "gpu-p", ""},
                                {"trn", "", ""},
                                {"inf", "", ""},
                                {"dl", "", ""},
                                {"hpc", "", ""},
                                {"u-", "", ""},
                                {"x", "", ""},
                                {"f", "", ""},
                                {"", "standard", "spot-standard"}};

Market market_of_head(const Spec& spec) { return spec.spot == SpotUse::only ? Market::spot : Market::on_demand; }

std::vector<Pool> pools(const std::vector<Market>& markets, const std::vector<std::string>& types,
                        const Account& account, const std::string& first_zone) {
  std::vector<Subnet> subnets = account.subnets;
  std::ranges::stable_partition(subnets, [&](const Subnet& one) { return one.zone == first_zone; });
  std::vector<Pool> found;
  for (const Market market : markets) {
    for (const std::string& type : types) {
      const auto known = account.types.find(type);
      for (const Subnet& subnet : subnets) {
        if (known != account.types.end() && !known->second.zones.contains(subnet.zone)) continue;
        found.push_back({market, type, subnet.zone, subnet.id});
      }
    }
  }
  return found;
}

// Machines of the reservation's type come from it alone, others from where they would come anyway, its zone first.
std::vector<Pool> with_reservation(std::vector<Pool> pools, const Account& account) {
  if (!account.reservation) return pools;
  const CapacityReservation& reserved = *account.reservation;
  const auto fits = [&](const Pool& pool) {
    return pool.market == Market::on_demand && pool.type == reserved.type && pool.zone == reserved.zone;
  };
  const auto found = std::ranges::find_if(pools, fits);
  if (found == pools.end()) {
    std::ranges::stable_partition(pools, [&](const Pool& pool) { return pool.zone == reserved.zone; });
    return pools;
  }
  Pool pool = *found;
  pool.reservation = reserved.id;
  return {pool};
}

std::vector<Pool> with_max_price(std::vector<Pool> pools, const Spec& spec) {
  for (Pool& pool : pools) {
    if (pool.market == Market::spot) pool.max_price = spec.max_price;
  }
  return pools;
}

void refuse_changes(const std::map<std::string, std::string>& options, const Fleet& fleet) {
  std::vector<std::string> changed;
  const auto differs = [&](const std::string& name) {
    const auto now = options.find(name), then = fleet.options.find(name);
    const bool both = now != options.end() && then != fleet.options.end();
    if (both ? now->second == then->second : (now == options.end()) == (then == fleet.options.end())) return;
    if (std::ranges::find(kChangeable, name) != kChangeable.end()) return;
    changed.push_back(fmt::format("setting '{}'", name));
  };
  for (const auto& [name, text] : options) differs(name);
  for (const auto& [name, text] : fleet.options) {
    if (!options.contains(name)) differs(name);
  }
  if (changed.empty()) return;
  throw UsageError(
      fmt::format("cluster {} exists with another {}", fleet.name, join(changed, ", ")),
      fmt::format("dtrain cluster down {} first, or leave {} out", fleet.name, changed.size() > 1 ? "them" : "it"));
}

// The machines of the preferred type for so many workers.
std::size_t machines_of_choice(const Spec& spec, std::size_t workers) {
  const int weight = weight_of(spec, spec.instance_types.front());
  return static_cast<std::size_t>(machines_for(static_cast<int>(workers), weight));
}

std::string what_of_workers(const std::vector<std::string>& names, const std::vector<Pool>& pools) {
  const std::string kind =
      pools.empty() ? "" : fmt::format(", {} {}", enum_name(kMarketNames, pools.front().market), pools.front().type);
  const int weight = pools.empty() ? 1 : pools.front().weight;
  if (weight > 1) {
    const int machines = machines_for(static_cast<int>(names.size()), weight);
    return fmt::format("start {}, from {} on, which count as {} workers{}", count_text(machines, "machine"),
                       names.front(), machines * weight, kind);
  }
  if (names.size() == 1) return fmt::format("start worker {}{}", names.front(), kind);
  return fmt::format("start {} workers, {} to {}{}", names.size(), names.front(), names.back(), kind);
}

// Makes the text where it stays: GCC 12 warns of the buffer of a short text (-Warray-bounds) when a long one is moved.
void add_action(Plan& plan, Step step, std::string_view what) {
  plan.actions.push_back({step, {}});
  plan.actions.back().what = what;
}

// What head_rights() allows.
const char* rights_text_of_head(const Spec& spec) {
  if (spec.heal) {
    return "to read what there is, to start workers of the cluster and give them their role, to tag and to end its "
           "workers, and to write what it did in the tags of its security group";
  }
  return "to read what instances there are, to tag the status of the cluster's and to end its workers";
}

void plan_surroundings(const Spec& spec, const Account& account, const Fleet& fleet, Plan& plan) {
  const auto add = [&](Step step, std::string_view what) { add_action(plan, step, what); };
  if (!fleet.group)
    add(Step::security_group, fmt::format("make security group dtrain-{} in {}", fleet.name, account.vpc_id));
  const SshChange ssh = ssh_change(fleet.group.value_or(SecurityGroup()), account.ssh_source);
  if (ssh.any()) add(Step::ssh_rule, ssh_change_text(ssh, account.ssh_source));
  if (!fleet.group || !fleet.group->lets_own_in || (spec.efa && !fleet.group->lets_own_out)) {
    add(Step::own_rules, "let the cluster's nodes reach each other");
  }
  if (!account.public_key.empty()) add(Step::key_pair, fmt::format("bring your public key as {}", account.key));
  if (spec.placement && !fleet.group)
    add(Step::placement_group, fmt::format("make placement group dtrain-{}", fleet.name));
  if (shared_kind(spec) == SharedKind::new_efs && !account.file_system) {
    add(Step::file_system, fmt::format("make an elastic file system, encrypted{}",
                                       account.kms_key.empty() ? "" : " with " + account.kms_key));
  }
  if (shared_kind(spec) == SharedKind::new_lustre && !account.file_system) {
    add(Step::file_system, fmt::format("make an FSx for Lustre file system of {} GB, encrypted{}: ${:.2f} a month",
                                       lustre_gb(spec), account.kms_key.empty() ? "" : " with " + account.kms_key,
                                       monthly_price_of_lustre(lustre_gb(spec))));
  }
  if (wants_own_role(spec) && !account.has_role) {
    add(Step::role, fmt::format("make an IAM role for the head: {}", rights_text_of_head(spec)));
    if (workers_replace_head(spec)) {
      add(Step::role, "make an IAM role for the workers: to start the head again where EC2 has ended it");
    }
  }
}

bool has_mount_targets(const Account& account, const Fleet& fleet) {
  if (!account.file_system || fleet.nodes.empty()) return false;
  return std::ranges::all_of(fleet.nodes, [&](const Node& node) {
    return std::ranges::any_of(account.file_system->mount_targets,
                               [&](const auto& target) { return target.zone == node.zone; });
  });
}

void plan_nodes(const Spec& spec, const Account& account, const Fleet& fleet, Plan& plan) {
  const auto add = [&](Step step, std::string_view what) { add_action(plan, step, what); };
  const Node* head = fleet.head();
  if (!head) {
    const auto choices = head_pools(spec, account);
    add(Step::head, "start the head, " + (choices.empty() ? "nowhere" : choices.front().text()));
  }
  if (shared_of(spec.shared).on_efs() && !(head && has_mount_targets(account, fleet))) {
    add(Step::mount_target, "give the file system an address in each zone in use");
  }
  if (!fleet.launch_template) add(Step::launch_template, fmt::format("make launch template dtrain-{}", fleet.name));
  if (head && fleet.launch_template && fleet.tagged_head() != head->private_ip) {
    add(Step::launch_template, "update the address of the head in the launch template");
  }
  if (workers_replace_head(spec) && (!fleet.head_template || !head || fleet.tagged_head() != head->private_ip)) {
    add(Step::launch_template,
        fmt::format("{} launch template dtrain-{}-head, by which workers start a lost head again",
                    fleet.head_template ? "update" : "make", fleet.name));
  }
  plan.to_start = missing_base_workers(spec, fleet);
  if (!plan.to_start.empty()) {
    add(Step::workers, what_of_workers(plan.to_start, worker_pools(spec, account, head ? head->zone : "")));
  }
}

// Base workers that an interrupted launch left without names get the lowest free ones, in the order of their ids. Where
// two workers have the same name, the younger gets another. An instance that only carries the cluster's tag gets none.
void plan_names(const Spec& spec, const Fleet& fleet, Plan& plan) {
  int number = 1, next = last_node(fleet);
  for (const Node* node : fleet.workers()) {
    const bool by_hand = !node->base && !node->elastic && node->launch.empty();
    if (node->named() || by_hand) continue;
    if (node->base) {
      while (number <= spec.workers && fleet.find(worker_name(number))) ++number;
    }
    const int chosen = node->base && number <= spec.workers ? number++ : ++next;
    plan.to_name[node->instance_id] = worker_name(chosen);
  }
  for (const std::string& id : duplicates(fleet)) plan.to_name[id] = worker_name(++next);
  if (!plan.to_name.empty()) add_action(plan, Step::names, fmt::format("name {} workers", plan.to_name.size()));
}

void plan_emr(const Spec& spec, const std::map<std::string, std::string>& options, const Fleet& fleet, Plan& plan) {
  if (!fleet.emr) {
    add_action(
        plan, Step::emr,
        fmt::format("run an EMR cluster, {}: {} {}", spec.release, spec.workers + 1, spec.instance_types.front()));
    plan.notes.emplace_back("EMR takes a price of its own on top of that of the instances");
    return;
  }
  const auto text = [](const auto& texts, const char* name) {
    const auto found = texts.find(name);
    return found == texts.end() ? std::string() : found->second;
  };
  for (const char* name : {"workers", "instance-type"}) {
    if (text(options, name) == text(fleet.options, name)) continue;
    throw UsageError(fmt::format("EMR cluster {} exists with another setting '{}'", fleet.emr->id, name),
                     fmt::format("dtrain cluster add {0} and remove {0} change how many workers it has", fleet.name));
  }
}

void plan_quotas(const Spec& spec, const Account& account, const Fleet& fleet, Plan& plan) {
  std::map<std::string, int> vcpus;
  const auto count = [&](Market market, const std::string& type, int machines) {
    const auto known = account.types.find(type);
    const std::string quota = quota_of(type, market);
    if (known != account.types.end() && !quota.empty()) vcpus[quota] += machines * known->second.vcpus;
  };
  const Node* head = fleet.head();
  count(head ? head->market : market_of_head(spec), head ? head->type : types_of(spec).front(), 1);
  count(markets_of(spec).front(), spec.instance_types.front(),
        static_cast<int>(machines_of_choice(spec, static_cast<std::size_t>(spec.workers))));
  for (const auto& [quota, needed] : vcpus) {
    QuotaNeed need{quota, needed};
    if (const auto limit = account.quotas.find(quota); limit != account.quotas.end()) need.limit = limit->second;
    if (!need.enough()) {
      plan.notes.push_back(
          fmt::format("the account may run {:.0f} vCPUs of kind {}, the cluster takes {}: ask for more in "
                      "Service Quotas",
                      *need.limit, quota, needed));
    }
    plan.quotas.push_back(std::move(need));
  }
}

// The machines that the plan starts in the reservation.
void plan_reservation(const Spec& spec, const Account& account, Plan& plan) {
  const auto heads = head_pools(spec, account);
  const bool with_head = plan.has(Step::head) && !heads.empty() && !heads.front().reservation.empty();
  const int weight = account.reservation ? weight_of(spec, account.reservation->type) : 1;
  const int wanted = machines_for(static_cast<int>(plan.to_start.size()), weight) + (with_head ? 1 : 0);
  if (auto note = reservation_note(account, wanted)) plan.notes.push_back(std::move(*note));
}

}  // namespace

void refuse_gpus_that_do_not_train(const Spec& spec, const Account& account) {
  for (const std::string& name : spec.head_only ? spec.instance_types : types_of(spec)) {
    const auto type = account.types.find(name);
    const GpuModel* const gpu = type == account.types.end() ? nullptr : gpu_model(type->second.gpu_name);
    if (!gpu || gpu->trains()) continue;
    const GpuOffer offer = cheapest_with_gpus(std::max(1, type->second.gpus));
    throw UsageError(
        fmt::format("dtrain cannot train on the GPU of {}, a {}: it needs compute capability {} or newer", name,
                    gpu->name, text_of(kLeastCapability)),
        fmt::format("the cheapest type that will do is {}: {} x {}, ${:.2f} an hour. A type without a GPU, such as "
                    "c6i.4xlarge, trains on its CPU",
                    offer.type, offer.gpus, gpu_model_of_instance(offer.type)->name, offer.hourly));
  }
}

std::optional<std::string> reservation_note(const Account& account, int wanted) {
  if (!account.reservation || wanted == 0) return std::nullopt;
  const CapacityReservation& reserved = *account.reservation;
  std::string has = fmt::format("capacity reservation {} ({} in {}) has {} of {} machines free", reserved.id,
                                reserved.type, reserved.zone, reserved.available, reserved.total);
  if (reserved.available >= wanted) return has;
  throw UsageError(fmt::format("{}, and {} are to be started in it", has, wanted),
                   "start fewer, raise the reservation, or leave setting 'capacity-reservation' out");
}

std::optional<std::string> stopped_note(const Fleet& fleet) {
  std::vector<std::string> names;
  for (const Node& node : fleet.nodes) {
    if (node.state != "stopped" && node.state != "stopping") continue;
    names.push_back(fmt::format("{} ({})", node.role == Role::head ? "the head" : node.name, node.instance_id));
  }
  if (names.empty()) return std::nullopt;
  return fmt::format("{} {} stopped: dtrain cluster start {} starts {} again", join_first(names, kMostNodesNamed, ", "),
                     names.size() == 1 ? "is" : "are", fleet.name, names.size() == 1 ? "it" : "them");
}

std::optional<std::string> surplus_note(const Fleet& fleet, int wanted) {
  std::vector<std::string> names;
  for (const Node* node : surplus_base_workers(fleet, wanted)) names.push_back(node->name);
  if (names.empty()) return std::nullopt;
  const bool is_one = names.size() == 1;
  return fmt::format("{} {} more than the {} wanted; {} on and {} money; dtrain cluster remove {} {} ends {}",
                     join_first(names, kMostNodesNamed, ", "), is_one ? "is" : "are", count_text(wanted, "worker"),
                     is_one ? "it runs" : "they run", is_one ? "costs" : "cost", fleet.name, names.back(),
                     is_one ? "it" : "the last of them");
}

std::string quota_of(const std::string& type, Market market) {
  const auto family = std::ranges::find_if(kFamilies, [&](const Family& one) { return type.starts_with(one.begin); });
  return std::string(market == Market::spot ? family->spot_quota : family->quota);
}

std::vector<Market> markets_of(const Spec& spec) {
  if (spec.spot == SpotUse::only) return {Market::spot};
  if (spec.spot == SpotUse::prefer) return {Market::spot, Market::on_demand};
  return {Market::on_demand};
}

std::string Pool::text() const { return place() + (reservation.empty() ? "" : ", reservation " + reservation); }

std::string Pool::place() const { return fmt::format("{} {} in {}", enum_name(kMarketNames, market), type, zone); }

bool Plan::has(Step step) const {
  return std::ranges::any_of(actions, [&](const Action& action) { return action.step == step; });
}

std::vector<Pool> worker_pools(const Spec& spec, const Account& account, const std::string& zone) {
  std::vector<Pool> all = pools(markets_of(spec), spec.instance_types, account, zone);
  for (Pool& pool : all) pool.weight = weight_of(spec, pool.type);
  return with_reservation(with_max_price(std::move(all), spec), account);
}

// The head holds the cluster together, so it is a spot instance only if the user allows nothing else.
std::vector<Pool> head_pools(const Spec& spec, const Account& account) {
  const auto types = spec.head_type.empty() ? spec.instance_types : std::vector{spec.head_type};
  return with_reservation(with_max_price(pools({market_of_head(spec)}, types, account, {}), spec), account);
}

Plan plan_up(const Spec& spec, const std::map<std::string, std::string>& options, const Account& account,
             const Fleet& fleet) {
  check_spec(spec);
  if (fleet.group) refuse_changes(options, fleet);
  Plan plan;
  plan_surroundings(spec, account, fleet, plan);
  if (spec.on == Service::emr) {
    plan_emr(spec, options, fleet, plan);
  } else {
    plan_nodes(spec, account, fleet, plan);
    plan_names(spec, fleet, plan);
    if (auto note = surplus_note(fleet, spec.workers)) plan.notes.push_back(std::move(*note));
  }
  if (plan.has(Step::head) || plan.has(Step::workers) || plan.has(Step::emr)) {
    refuse_gpus_that_do_not_train(spec, account);
  }
  if (fleet.group && fleet.options != options) add_action(plan, Step::options, "write down the new options");
  std::vector<std::string> types{fleet.head() ? fleet.head()->type : types_of(spec).front()};
  for (const Node* node : fleet.workers()) types.push_back(node->type);
  const std::size_t ordered =
      plan.has(Step::emr) ? static_cast<std::size_t>(spec.workers) : machines_of_choice(spec, plan.to_start.size());
  types.insert(types.end(), ordered, spec.instance_types.front());
  plan.cost = cost_of(types, account.prices);
  plan_quotas(spec, account, fleet, plan);
  plan_reservation(spec, account, plan);
  if (auto note = stopped_note(fleet)) plan.notes.push_back(std::move(*note));
  add_notes(spec, account, fleet, plan);
  return plan;
}

}  // namespace dtrain::cluster
