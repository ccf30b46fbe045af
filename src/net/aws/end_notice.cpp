#include <fmt/format.h>

#include <dtrain/base/json.hpp>
#include <dtrain/net/instance_metadata.hpp>

namespace dtrain::net {
namespace {

// nullopt: there is no such entry, which is the usual case.
std::optional<Json> notice_at(InstanceMetadata& metadata, const std::string& path, const std::stop_token& cancel) {
  const std::optional<std::string> text = metadata.find("meta-data/" + path, cancel);
  return text ? std::optional(Json::parse(*text, "the instance's metadata")) : std::nullopt;
}

std::string text_or(const Json& json, std::string_view key, const char* otherwise) {
  const Json* value = json.is_object() ? json.find(key) : nullptr;
  return value && value->is_string() ? value->as_string() : otherwise;
}

}  // namespace

std::optional<EndNotice> end_notice(InstanceMetadata& metadata, const std::stop_token& cancel) {
  if (const auto action = notice_at(metadata, "spot/instance-action", cancel)) {
    return EndNotice{true, fmt::format("spot notice: {} at {}", text_or(*action, "action", "end"),
                                       text_or(*action, "time", "an unknown time"))};
  }
  if (const auto rebalance = notice_at(metadata, "events/recommendations/rebalance", cancel)) {
    return EndNotice{false,
                     fmt::format("rebalance recommended at {}", text_or(*rebalance, "noticeTime", "an unknown time"))};
  }
  return std::nullopt;
}

}  // namespace dtrain::net
