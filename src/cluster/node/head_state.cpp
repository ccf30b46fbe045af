#include "head_state.hpp"

#include <utility>
#include <vector>

#include <dtrain/cluster/checkup.hpp>
#include <dtrain/cluster/fleet.hpp>

namespace dtrain::cluster {
namespace {

// Instances that wait for their announcement. More than a cluster may have are not written down.
constexpr std::size_t kMostWaiting = 1000;

std::int64_t seconds_of(Registry::WallTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

Json json_of(const NodeFailure& failure) {
  return Json::object({{"address", failure.address},
                       {"stage", failure.stage},
                       {"exit_code", failure.exit_code},
                       {"log", failure.log},
                       {"at", seconds_of(failure.at)}});
}

}  // namespace

HeadState::Answer HeadState::admit(const Identity& node, const std::string& peer_address) {
  Answer answer{.admission = cluster::admit(node, peer_address, own_, announced_)};
  if (answer.admission.admitted) {
    waiting_.erase(node.instance_id);
  } else if (waiting_.size() < kMostWaiting || waiting_.contains(node.instance_id)) {
    answer.is_news = std::exchange(waiting_[node.instance_id], answer.admission.reason) != answer.admission.reason;
  }
  return answer;
}

Admission HeadState::may_register(const Identity& node, const std::string& peer_address) const {
  return cluster::admit(node, peer_address, own_, announced_);
}

bool HeadState::register_node(NodeFacts facts, Registry::WallTime now) {
  const bool is_new = !registry_.find(facts.identity.address);
  if (launch_template_.empty()) launch_template_ = facts.launch_template;
  registry_.join(std::move(facts), now);
  return is_new;
}

void HeadState::announce(const Json& message) {
  announced_.clear();
  for (const auto& [id, instance] : message.at("instances").as_object()) {
    announced_[id] = instance.at("address").as_string();
    registry_.rename(id, instance.at("name").as_string());
  }
  if (const Json* id = message.find("launch_template")) launch_template_ = id->as_string();
  const Json* hold = message.find("hold");
  hold_ = hold ? hold->as_string() : std::string();
  const std::vector<NodeEntry> known = registry_.nodes();
  for (const NodeEntry& node : known) {
    const Identity& identity = node.facts.identity;
    if (identity.instance_id != own_.instance_id && !announced_.contains(identity.instance_id) && !node.connected) {
      registry_.forget(identity.address);
    }
  }
}

Json HeadState::announced() const {
  Json instances = Json::object();
  for (const auto& [id, address] : announced_) {
    const NodeEntry* node = registry_.find(id);
    instances[id] = Json::object({{"address", address}, {"name", node ? node->facts.name : ""}});
  }
  return Json::object({{"instances", std::move(instances)}, {"launch_template", launch_template_}});
}

std::optional<std::string> HeadState::remove(const std::string& host) {
  const NodeEntry* node = registry_.find(host);
  if (!node) return std::nullopt;
  const std::string address = node->facts.identity.address;
  announced_.erase(node->facts.identity.instance_id);
  registry_.forget(address);
  return address;
}

std::vector<std::string> HeadState::still_there() const {
  std::set<std::string> there;
  for (const auto& [id, address] : announced_) {
    if (!sent_away_.contains(address)) there.insert(address);
  }
  for (const NodeEntry& node : registry_.nodes()) {
    const std::string& address = node.facts.identity.address;
    if (node.connected || !sent_away_.contains(address)) there.insert(address);
  }
  there.erase(own_.address);
  return {there.begin(), there.end()};
}

ClusterFacts HeadState::facts() const {
  return {.cluster = order_.cluster,
          .region = order_.region,
          .head = own_.address,
          .workers = registry_.addresses(),
          .shared_folder = order_.shared_folder,
          .launch_template = launch_template_,
          .elastic_tag = elastic_tag(order_.cluster)};
}

Json HeadState::list() const {
  Json nodes = Json::array(), failures = Json::array(), waiting = Json::array();
  for (const NodeEntry& entry : registry_.nodes()) {
    Json node = to_json(entry.facts);
    node["connected"] = entry.connected;
    node["since"] = seconds_of(entry.since);
    if (!entry.report.is_null()) {
      node["report"] = entry.report;
      node["reported"] = seconds_of(entry.reported);
    }
    nodes.push_back(std::move(node));
  }
  for (const NodeFailure& failure : registry_.failures()) failures.push_back(json_of(failure));
  for (const auto& [id, reason] : waiting_) {
    waiting.push_back(Json::object({{"instance_id", id}, {"reason", reason}}));
  }
  return Json::object({{"schema", "dtrain.cluster-nodes/1"},
                       {"facts", to_json(facts())},
                       {"nodes", std::move(nodes)},
                       {"hold", hold_},
                       {"failures", std::move(failures)},
                       {"waiting", std::move(waiting)}});
}

std::int64_t ForwardedStarts::add(Start start) {
  starts_.emplace(++last_, std::move(start));
  return last_;
}

std::optional<ForwardedStarts::Start> ForwardedStarts::take(std::int64_t number) {
  auto found = starts_.extract(number);
  return found.empty() ? std::nullopt : std::optional(std::move(found.mapped()));
}

std::vector<ForwardedStarts::Start> ForwardedStarts::take_all_of(const net::Channel* node) {
  std::vector<Start> taken;
  std::erase_if(starts_, [&](auto& one) {
    const bool is_of_node = one.second.node == node;
    if (is_of_node) taken.push_back(std::move(one.second));
    return is_of_node;
  });
  return taken;
}

void CheckRound::hear(const std::string& instance_id, const Json& message, std::int64_t now) {
  const auto asked = waiting_.find(instance_id);
  if (asked == waiting_.end()) return;
  const ClockOffset offset =
      clock_offset(asked->second, now, message.at("time_ns").as_integer(), message.at("took_ns").as_integer());
  reports_[instance_id] = Json::object({{"report", message.at("report")},
                                        {"clock_offset_seconds", offset.seconds},
                                        {"clock_within_seconds", offset.within}});
  waiting_.erase(asked);
}

}  // namespace dtrain::cluster
