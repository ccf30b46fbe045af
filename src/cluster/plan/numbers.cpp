// Names of workers and numbers of launches.
#include <algorithm>
#include <functional>
#include <tuple>

#include <dtrain/base/text.hpp>
#include <dtrain/cluster/plan.hpp>
#include <dtrain/cluster/wish.hpp>

namespace dtrain::cluster {
namespace {

int number_in(const Tags& tags, const char* key) {
  const auto found = tags.find(key);
  return found == tags.end() ? 0 : static_cast<int>(parse_integer(found->second).value_or(0));
}

// "3.0f3a..." was made by launch 3.
int launch_of(const Node& node) {
  const std::string number = node.launch.substr(0, node.launch.find('.'));
  return static_cast<int>(parse_integer(number).value_or(-1));
}

std::vector<const Node*> all_of(const Fleet& fleet) {
  std::vector<const Node*> all;
  for (const Node& node : fleet.nodes) all.push_back(&node);
  for (const Node& node : fleet.ending) all.push_back(&node);
  return all;
}

// Base workers first, then by age. A node that AWS does not show yet is the youngest.
std::vector<const Node*> workers_in_order(const Fleet& fleet) {
  std::vector<const Node*> workers = fleet.workers();
  const auto key = [](const Node* node) {
    return std::tuple(!node->base, node->launch_time.empty(), node->launch_time, node->instance_id);
  };
  std::ranges::sort(workers, {}, key);
  return workers;
}

bool is_staying_base(const Node& node) {
  const bool goes = leaves_on_purpose(node) || node.tags.contains(tag::kReplaced) || node.tags.contains(tag::kLeft);
  return node.role == Role::worker && node.base && !goes;
}

}  // namespace

std::set<std::string> duplicates(const Fleet& fleet) {
  std::set<std::string> names, later;
  for (const Node* node : workers_in_order(fleet)) {
    if (!names.insert(node->name).second) later.insert(node->instance_id);
  }
  return later;
}

std::map<std::string, std::string> names_for(const Fleet& fleet, const std::set<std::string>& ours, bool alone) {
  std::set<std::string> theirs;
  for (const Node* node : fleet.workers()) {
    if (!ours.contains(node->instance_id)) theirs.insert(node->name);
  }
  const std::set<std::string> later = duplicates(fleet);
  std::map<std::string, std::string> names;
  int number = last_node(fleet);
  for (const Node* node : workers_in_order(fleet)) {
    const bool is_ours = ours.contains(node->instance_id);
    // Workers without a launch were tagged by hand, and unnamed base workers of others get theirs from `up`.
    const bool is_unnamed = !node->named() && (is_ours || (!node->launch.empty() && !node->base));
    const bool gives_way = later.contains(node->instance_id) || (alone && is_ours && theirs.contains(node->name));
    if (!is_unnamed && !gives_way) continue;
    ++number;
    if (is_ours) names[node->instance_id] = worker_name(number);
  }
  return names;
}

Fleet with_names(Fleet fleet, const std::map<std::string, std::string>& names) {
  for (Node& node : fleet.nodes) {
    if (const auto name = names.find(node.instance_id); name != names.end()) node.name = name->second;
  }
  return fleet;
}

int last_node(const Fleet& fleet) {
  int last = fleet.group ? number_in(fleet.group->tags, tag::kLastNode) : 0;
  for (const Node* node : all_of(fleet)) last = std::max(last, worker_number(node->name).value_or(0));
  return last;
}

std::vector<std::string> missing_base_workers(const Spec& spec, const Fleet& fleet) {
  std::ptrdiff_t unnamed = 0,
                 others = 0;  // names that workers will take; and those that machines count for beside theirs
  for (const Node* node : fleet.workers()) {
    if (!node->base) continue;
    if (!node->named()) ++unnamed;
    if (!node->named() || worker_number(node->name).value_or(0) <= spec.workers) others += node->weight - 1;
  }
  std::vector<std::string> missing;
  for (int number = 1; number <= spec.workers; ++number) {
    if (!fleet.find(worker_name(number))) missing.push_back(worker_name(number));
  }
  missing.erase(missing.begin(), missing.begin() + std::min(unnamed, std::ssize(missing)));
  missing.erase(missing.end() - std::min(others, std::ssize(missing)), missing.end());
  return missing;
}

int counted_base(const Fleet& fleet, const std::string& without) {
  int count = 0;
  for (const Node& node : fleet.nodes) {
    if (is_staying_base(node) && node.instance_id != without) count += node.weight;
  }
  return count;
}

// Those of the highest numbers go first. One whose name the next `up` would give to a new machine stays.
std::vector<const Node*> surplus_base_workers(const Fleet& fleet, int wanted) {
  Spec spec;
  spec.workers = wanted;
  std::vector<const Node*> candidates, surplus;
  for (const Node& node : fleet.nodes) {
    if (is_staying_base(node)) candidates.push_back(&node);
  }
  const auto key = [](const Node* node) {
    return std::tuple(worker_number(node->name).value_or(0), node->instance_id);
  };
  std::ranges::sort(candidates, std::greater(), key);
  int over = counted_base(fleet) - wanted;
  Fleet rest = fleet;
  for (const Node* node : candidates) {
    if (over < node->weight) continue;
    Fleet without = rest;
    std::erase_if(without.nodes, [&](const Node& one) { return one.instance_id == node->instance_id; });
    if (missing_base_workers(spec, without).size() > missing_base_workers(spec, rest).size()) continue;
    rest = std::move(without);
    over -= node->weight;
    surplus.push_back(node);
  }
  std::ranges::reverse(surplus);
  return surplus;
}

std::vector<std::string> next_workers(const Fleet& fleet, int more) {
  std::vector<std::string> names;
  for (int number = last_node(fleet) + 1; more > 0; ++number, --more) names.push_back(worker_name(number));
  return names;
}

// The head's launch counts also before `up` has written that down, so that two of them give workers the same number.
int launch_number(const Fleet& fleet, const std::vector<std::string>& names) {
  int number = fleet.group ? number_in(fleet.group->tags, tag::kLaunches) : 0;
  if (const Node* head = fleet.head()) number = std::max(number, launch_of(*head) + 1);
  for (const Node* node : all_of(fleet)) {
    if (std::ranges::find(names, node->name) != names.end()) number = std::max(number, launch_of(*node) + 1);
  }
  return number;
}

}  // namespace dtrain::cluster
