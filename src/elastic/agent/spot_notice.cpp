#include "spot_notice.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/net/instance_metadata.hpp>

namespace dtrain::elastic {
namespace {

constexpr const char* kVendorFile = "/sys/class/dmi/id/sys_vendor";

bool is_on_ec2() {
  try {
    return read_file(kVendorFile).starts_with("Amazon EC2");
  } catch (const Error&) {
    return false;
  }
}

// nullopt: there is no such entry, which is the usual case.
std::optional<Json> value_at(net::InstanceMetadata& metadata, const std::string& path, const std::stop_token& cancel) {
  const std::optional<std::string> text = metadata.find("meta-data/" + path, cancel);
  return text ? std::optional(Json::parse(*text, "the instance's metadata")) : std::nullopt;
}

std::string text_or(const Json& json, std::string_view key, const char* otherwise) {
  const Json* value = json.is_object() ? json.find(key) : nullptr;
  return value && value->is_string() ? value->as_string() : otherwise;
}

// The new notices. A failure counts as none; the next look repeats the request.
std::optional<SpotNotice> look(net::InstanceMetadata& metadata, bool& recommended, const std::stop_token& cancel) {
  try {
    if (const auto action = value_at(metadata, "spot/instance-action", cancel)) {
      return SpotNotice{true, fmt::format("spot notice: {} at {}", text_or(*action, "action", "end"),
                                          text_or(*action, "time", "an unknown time"))};
    }
    if (recommended) return std::nullopt;
    if (const auto rebalance = value_at(metadata, "events/recommendations/rebalance", cancel)) {
      recommended = true;
      return SpotNotice{
          false, fmt::format("rebalance recommended at {}", text_or(*rebalance, "noticeTime", "an unknown time"))};
    }
  } catch (const Error&) {
  }
  return std::nullopt;
}

void watch(const std::stop_token& stop, net::Loop& loop, const std::string& url,
           const std::function<void(SpotNotice)>& on_notice, std::chrono::milliseconds interval) {
  net::InstanceMetadata metadata({.url = url});
  bool recommended = false;
  while (!stop.stop_requested()) {
    if (const auto notice = look(metadata, recommended, stop)) {
      loop.post([on_notice, notice = *notice] { on_notice(notice); });
      if (notice->leave) return;
    }
    sleep_unless_stopped(stop, interval);
  }
}

}  // namespace

std::string notice_url_of(const std::string& choice, const std::string& host) {
  if (choice == "none" || choice.empty()) return {};
  if (choice == "auto") return is_on_ec2() ? net::kInstanceMetadataUrl : "";
  std::string url = choice;
  constexpr std::string_view kPlace = "{host}";
  if (const auto at = url.find(kPlace); at != url.npos) url.replace(at, kPlace.size(), host);
  while (url.ends_with('/')) url.pop_back();
  return url;
}

SpotWatch::SpotWatch(net::Loop& loop, std::string url, std::function<void(SpotNotice)> on_notice,
                     std::chrono::milliseconds interval)
    : thread_([&loop, url = std::move(url), on_notice = std::move(on_notice), interval](const std::stop_token& stop) {
        watch(stop, loop, url, on_notice, interval);
      }) {}

}  // namespace dtrain::elastic
