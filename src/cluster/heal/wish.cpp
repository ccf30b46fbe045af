#include <dtrain/cluster/wish.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/plan.hpp>

#include "aws/ec2_fields.hpp"
#include "aws/resources.hpp"

namespace dtrain::cluster {
namespace {

constexpr std::string_view kSchemaName = "dtrain.cluster-wish/";
constexpr int kNewestWish = 1;
constexpr int kMostWorkers = 10'000;
constexpr std::size_t kLongestEvent = 230;  // bytes; a tag has room for 256 characters

std::string value_of(const Fleet& fleet, const std::string& key) {
  if (!fleet.group) return {};
  const auto found = fleet.group->tags.find(key);
  return found == fleet.group->tags.end() ? std::string() : found->second;
}

bool has(const Node& node, const char* key) { return node.tags.contains(key); }

int count_in(const Json& value, const std::string& key) {
  if (!value.is_integer() || value.as_integer() < 0 || value.as_integer() > kMostWorkers) {
    throw DataError(fmt::format("'{}' is no number of workers", key));
  }
  return static_cast<int>(value.as_integer());
}

double budget_in(const Json& value) {
  const double dollars = value.as_number();
  if (!(dollars > 0)) throw DataError("'budget' is not above 0");
  return dollars;
}

void check_schema(const std::string& schema) {
  const auto number = schema.starts_with(kSchemaName) ? parse_integer(schema.substr(kSchemaName.size())) : std::nullopt;
  if (!number) throw DataError(fmt::format("its schema '{}' is not {}N", schema, kSchemaName));
  if (*number > kNewestWish) throw DataError(fmt::format("its schema {} is of a newer dtrain", schema));
}

std::string text_that_fits(const HealEvent& event) {
  std::string text = event.text.substr(0, kLongestEvent);
  while (!text.empty() && text.size() < event.text.size() && (static_cast<unsigned char>(text.back()) & 0x80) != 0) {
    text.pop_back();  // a cut must not leave half of a character
  }
  return text;
}

std::string event_text(const HealEvent& event) { return fmt::format("{} {}", event.at.count(), text_that_fits(event)); }

std::optional<HealEvent> event_from(const std::string& text) {
  const auto blank = text.find(' ');
  const auto at = parse_integer(text.substr(0, blank));
  if (blank == text.npos || !at) return std::nullopt;
  return HealEvent{UnixTime(*at), text.substr(blank + 1)};
}

std::string event_key(int slot) { return fmt::format("{}{:02}", tag::kEvent, slot); }

}  // namespace

std::string wish_text(const Wish& wish) {
  Json document = Json::object(
      {{"schema", fmt::format("{}{}", kSchemaName, kNewestWish)}, {"base", wish.base}, {"elastic", wish.elastic}});
  if (wish.budget) document["budget"] = *wish.budget;
  return document.dump();
}

Wish wish_from(const std::string& text) {
  Wish wish;
  try {
    const Json document = Json::parse(text, "wish");
    check_schema(document.at("schema").as_string());
    document.at("base");
    document.at("elastic");
    for (const auto& [key, value] : document.as_object()) {
      if (key == "base") {
        wish.base = count_in(value, key);
      } else if (key == "elastic") {
        wish.elastic = count_in(value, key);
      } else if (key == "budget") {
        wish.budget = budget_in(value);
      } else if (key != "schema") {
        throw DataError(fmt::format("it has an unknown key '{}'", key));
      }
    }
  } catch (const DataError& problem) {
    throw DataError(
        fmt::format("tag {} of the security group is not what dtrain writes: {}", tag::kWish, problem.what()),
        "delete this tag; the same `dtrain cluster up` then writes it again");
  }
  return wish;
}

std::optional<Wish> tagged_wish(const Fleet& fleet) {
  const std::string text = value_of(fleet, tag::kWish);
  if (text.empty()) return std::nullopt;
  return wish_from(text);
}

std::optional<Wish> change_wish(net::AwsCalls& aws, const Fleet& fleet, const std::optional<Wish>& first,
                                const std::function<void(Wish&)>& change) {
  if (!fleet.group) return std::nullopt;
  Fleet now{.name = fleet.name, .group = fleet.group};
  const auto found =
      aws.query_all(net::kEc2, "DescribeSecurityGroups", filtered({{"group-id", now.group->id}}), "securityGroupInfo");
  if (!found.empty()) now.group = group_of(found.front());  // AWS may not show a new one yet
  const std::optional<Wish> there = tagged_wish(now);
  std::optional<Wish> wish = there ? there : first;
  if (!wish) return wish;
  change(*wish);
  if (wish != there) set_tags(aws, {now.group->id}, {{tag::kWish, wish_text(*wish)}});
  return wish;
}

Wish wish_without_tag(const Fleet& fleet, int workers) {
  Wish wish{.base = workers};
  for (const Node* node : fleet.workers()) {
    if (!node->base && !node->launch.empty() && !leaves_on_purpose(*node)) wish.elastic += node->weight;
  }
  return wish;
}

std::string lease_text(const Lease& lease) {
  return fmt::format("{} {}", lease.holder.empty() ? "-" : lease.holder, lease.at.count());
}

Lease lease_from(const std::string& text) {
  const std::vector<std::string> words = split(text, ' ');
  if (words.size() != 2) return {};
  const auto at = parse_integer(words[1]);
  if (!at) return {};
  return {words[0] == "-" ? "" : words[0], UnixTime(*at)};
}

Lease tagged_lease(const Fleet& fleet) { return lease_from(value_of(fleet, tag::kHealer)); }

UnixTime aws_time(const net::AwsCalls& aws) {
  return std::chrono::duration_cast<UnixTime>(aws.now().time_since_epoch());
}

LeaseState lease_state(const Lease& lease, const std::string& me, UnixTime now) {
  if (lease.holder == me) return LeaseState::mine;
  // One of a time to come was written by a wrong clock, and would hold for as long as that is off.
  const bool holds = now - lease.at < kLeaseTime && lease.at - now <= kLeaseTime;
  return !lease.holder.empty() && holds ? LeaseState::taken : LeaseState::free;
}

std::vector<HealEvent> tagged_events(const Fleet& fleet) {
  std::vector<HealEvent> events;
  for (int slot = 0; slot < kKeptEvents; ++slot) {
    if (auto event = event_from(value_of(fleet, event_key(slot)))) events.push_back(std::move(*event));
  }
  std::ranges::stable_sort(events, {}, &HealEvent::at);
  return events;
}

// Empty slots first, then those of the oldest events. Several actions of one look may fail at each look, so as many of
// the latest events are compared as there are fresh ones.
Tags event_tags(const Fleet& fleet, std::vector<HealEvent> fresh) {
  std::vector<HealEvent> latest = tagged_events(fleet);
  if (latest.size() > fresh.size()) latest.erase(latest.begin(), latest.end() - std::ssize(fresh));
  std::erase_if(fresh, [&](const HealEvent& one) {
    return std::ranges::find(latest, text_that_fits(one), &HealEvent::text) != latest.end();
  });
  std::vector<std::pair<UnixTime, int>> slots;
  for (int slot = 0; slot < kKeptEvents; ++slot) {
    const auto event = event_from(value_of(fleet, event_key(slot)));
    slots.emplace_back(event ? event->at : UnixTime(-1), slot);
  }
  std::ranges::stable_sort(slots);
  Tags tags;
  const std::size_t most = std::min(fresh.size(), slots.size());
  for (std::size_t at = 0; at < most; ++at) {
    tags[event_key(slots[at].second)] = event_text(fresh[fresh.size() - most + at]);
  }
  return tags;
}

bool leaves_on_purpose(const Node& node) {
  const bool is_removed = node.elastic_status == "REMOVED" || node.elastic_status == "REMOVAL_QUEUED";
  return node.role == Role::worker && is_removed && !has(node, tag::kReplaced);
}

bool left_on_purpose(const Node& node) { return leaves_on_purpose(node) && !has(node, tag::kLeft); }

}  // namespace dtrain::cluster
