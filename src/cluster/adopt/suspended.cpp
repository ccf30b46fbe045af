#include "suspended.hpp"

#include <fmt/format.h>

#include <string_view>

#include <dtrain/base/text.hpp>

namespace dtrain::cluster {

std::map<std::string, std::string> suspended_by_us(const Fleet& fleet) {
  std::map<std::string, std::string> suspended;
  if (!fleet.group) return suspended;
  const Tags& tags = fleet.group->tags;
  const std::string_view lead = tag::kScaling;
  for (const auto& [key, name] : tags) {
    if (!key.starts_with(lead)) continue;
    const auto processes = tags.find(tag::kSuspended + key.substr(lead.size()));
    suspended[name] = processes == tags.end() ? std::string() : processes->second;
  }
  return suspended;
}

std::string suspended_before(const Fleet& fleet, const std::string& group) {
  const auto all = suspended_by_us(fleet);
  const auto found = all.find(group);
  return found == all.end() ? std::string() : found->second;
}

// A tag's key has no room for the name of a group, so the two tags of a group have a number.
Tags scaling_tags(const std::map<std::string, std::string>& suspended) {
  Tags tags;
  int number = 0;
  for (const auto& [name, processes] : suspended) {
    ++number;
    tags[fmt::format("{}{}", tag::kScaling, number)] = name;
    tags[fmt::format("{}{}", tag::kSuspended, number)] = processes;
  }
  return tags;
}

std::vector<std::string> split_list(const std::string& text) {
  return text.empty() ? std::vector<std::string>() : split(text, ',');
}

}  // namespace dtrain::cluster
