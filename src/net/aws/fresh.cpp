#include "fresh.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

namespace dtrain::net {
namespace {

// Whether the service says that something which the request names does not exist. A missing permission is a rule of a
// security group, and not the group.
bool says_unknown(const AwsError::Facts& facts) {
  if (facts.code == "InvalidPermission.NotFound") return false;
  return facts.problem == AwsProblem::not_found || facts.code == "InvalidID";
}

// Whether a code without a message may be about the resource.
bool fits(std::string_view code, std::string_view resource) {
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"InvalidGroup", "sg-"}, {"InvalidLaunchTemplate", "lt-"}, {"InvalidInstanceID", "i-"}, {"FileSystem", "fs-"}};
  const bool is_of_kind = std::ranges::any_of(
      kKinds, [&](const auto& kind) { return code.starts_with(kind.first) && resource.starts_with(kind.second); });
  return is_of_kind || code == "InvalidID" || code == "NoSuchEntity";
}

bool is_part_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_'; }

// Whether the value stands in the message as a whole name. Ids and names of resources have a dash; numbers and words
// that stand in a message by chance have none.
bool is_mentioned(const std::string& value, const std::string& message) {
  if (value.find('-') == value.npos) return false;
  for (std::size_t at = message.find(value); at != message.npos; at = message.find(value, at + 1)) {
    const std::size_t end = at + value.size();
    const bool begins = at == 0 || !is_part_of_name(message[at - 1]);
    if (begins && (end == message.size() || !is_part_of_name(message[end]))) return true;
  }
  return false;
}

}  // namespace

void FreshResources::note(const std::string& resource, Clock::time_point now) {
  const MutexLock lock(mutex_);
  made_[resource] = now;
}

bool FreshResources::is_fresh(const std::string& resource, Clock::time_point now) const {
  const MutexLock lock(mutex_);
  const auto found = made_.find(resource);
  return found != made_.end() && now - found->second < kUntilSeen;
}

bool FreshResources::may_appear(const AwsError::Facts& facts, const std::vector<std::string>& named,
                                Clock::time_point now) const {
  if (!says_unknown(facts)) return false;
  std::vector<std::string> meant;
  std::ranges::copy_if(named, std::back_inserter(meant),
                       [&](const std::string& one) { return is_mentioned(one, facts.message); });
  const auto fresh = [&](const std::string& one) { return is_fresh(one, now); };
  if (!meant.empty()) return std::ranges::all_of(meant, fresh);
  return std::ranges::any_of(named, [&](const std::string& one) { return fits(facts.code, one) && fresh(one); });
}

}  // namespace dtrain::net
