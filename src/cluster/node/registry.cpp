#include <dtrain/cluster/registry.hpp>

#include <algorithm>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/checkup.hpp>
#include <dtrain/cluster/compat_files.hpp>

namespace dtrain::cluster {
namespace {

constexpr std::size_t kMostFailures = 100, kLongestLog = 4 << 10;
constexpr std::int64_t kMostGpus = 1024;

}  // namespace

Json to_json(const NodeFacts& facts) {
  const Identity& id = facts.identity;
  return Json::object({{"account", id.account},
                       {"region", id.region},
                       {"instance_id", id.instance_id},
                       {"address", id.address},
                       {"zone", id.zone},
                       {"type", id.type},
                       {"name", facts.name},
                       {"launch_template", facts.launch_template},
                       {"gpus", facts.gpus}});
}

NodeFacts node_facts_from_json(const Json& json) {
  NodeFacts facts{.identity = {.account = json.at("account").as_string(),
                               .region = json.at("region").as_string(),
                               .instance_id = json.at("instance_id").as_string(),
                               .address = json.at("address").as_string(),
                               .zone = json.at("zone").as_string(),
                               .type = json.at("type").as_string()},
                  .name = json.at("name").as_string(),
                  .launch_template = json.at("launch_template").as_string()};
  std::string wrong = why_implausible(facts.identity);
  if (facts.name.empty() || !is_plain_word(facts.name)) wrong = "its name is not valid";
  if (!is_plain_word(facts.launch_template)) wrong = "its launch template is not valid";
  const std::int64_t gpus = json.at("gpus").as_integer();
  if (gpus < 0 || gpus > kMostGpus) wrong = "its number of GPUs is not valid";
  if (!wrong.empty()) throw DataError("a node that registers says what no node can: " + wrong);
  facts.gpus = static_cast<int>(gpus);
  return facts;
}

std::optional<NodeFailure> parse_failure(std::string_view text, const std::string& proof) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const std::vector<std::string> words = split(line, ' ');
  if (words.size() != 4 || !equal_secrets(words[0], proof)) return std::nullopt;
  const auto code = parse_integer(words[3]);
  if (!code || !is_ipv4(words[1]) || !is_plain_word(words[2])) return std::nullopt;
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return NodeFailure{.address = words[1],
                     .stage = words[2],
                     .log = std::string(text.substr(0, kLongestLog)),
                     .exit_code = static_cast<int>(*code)};
}

void Registry::join(NodeFacts facts, WallTime now) {
  const auto same = [&](const NodeEntry& node) { return node.facts.identity.address == facts.identity.address; };
  std::erase_if(failures_, [&](const NodeFailure& failure) { return failure.address == facts.identity.address; });
  const auto known = std::ranges::find_if(nodes_, same);
  if (known == nodes_.end()) {
    nodes_.push_back({std::move(facts), true, now});
  } else {
    *known = {std::move(facts), true, now};
  }
}

void Registry::lose(const std::string& address, WallTime now) {
  for (NodeEntry& node : nodes_) {
    if (node.facts.identity.address != address) continue;
    node.connected = false, node.since = now;
    node.report = Json();
  }
}

void Registry::report(const std::string& address, const Json& checkup, WallTime now) {
  Json checked = to_json(checkup_from_json(checkup));
  for (NodeEntry& node : nodes_) {
    if (node.facts.identity.address == address) node.report = checked, node.reported = now;
  }
}

void Registry::rename(const std::string& instance_id, const std::string& name) {
  for (NodeEntry& node : nodes_) {
    if (node.facts.identity.instance_id == instance_id) node.facts.name = name;
  }
}

void Registry::forget(const std::string& address) {
  std::erase_if(nodes_, [&](const NodeEntry& node) { return node.facts.identity.address == address; });
}

void Registry::fail(NodeFailure failure) {
  std::erase_if(failures_, [&](const NodeFailure& old) { return old.address == failure.address; });
  if (failures_.size() >= kMostFailures) failures_.erase(failures_.begin());
  failures_.push_back(std::move(failure));
}

const NodeEntry* Registry::find(const std::string& word) const {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const NodeFacts& facts = nodes_[i].facts;
    if (word == facts.identity.address || word == facts.name || word == facts.identity.instance_id ||
        word == worker_alias(i + 1)) {
      return &nodes_[i];
    }
  }
  return nullptr;
}

std::vector<std::string> Registry::addresses() const {
  std::vector<std::string> found;
  for (const NodeEntry& node : nodes_) found.push_back(node.facts.identity.address);
  return found;
}

}  // namespace dtrain::cluster
