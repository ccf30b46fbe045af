// Names of workers and numbers of launches.
#include <algorithm>

#include <dtrain/base/text.hpp>
#include <dtrain/cluster/plan.hpp>

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

}  // namespace

int last_node(const Fleet& fleet) {
  int last = fleet.group ? number_in(fleet.group->tags, tag::kLastNode) : 0;
  for (const Node* node : all_of(fleet)) last = std::max(last, worker_number(node->name).value_or(0));
  return last;
}

std::vector<std::string> missing_base_workers(const Spec& spec, const Fleet& fleet) {
  const auto unnamed = std::ranges::count_if(
      fleet.nodes, [](const Node& node) { return node.role == Role::worker && node.base && !node.named(); });
  std::vector<std::string> missing;
  for (int number = 1; number <= spec.workers; ++number) {
    if (!fleet.find(worker_name(number))) missing.push_back(worker_name(number));
  }
  missing.erase(missing.begin(), missing.begin() + std::min<std::ptrdiff_t>(unnamed, std::ssize(missing)));
  return missing;
}

std::vector<std::string> next_workers(const Fleet& fleet, int more) {
  std::vector<std::string> names;
  for (int number = last_node(fleet) + 1; more > 0; ++number, --more) names.push_back(worker_name(number));
  return names;
}

int launch_number(const Fleet& fleet, const std::vector<std::string>& names) {
  int number = fleet.group ? number_in(fleet.group->tags, tag::kLaunches) : 0;
  for (const Node* node : all_of(fleet)) {
    if (std::ranges::find(names, node->name) != names.end()) number = std::max(number, launch_of(*node) + 1);
  }
  return number;
}

}  // namespace dtrain::cluster
