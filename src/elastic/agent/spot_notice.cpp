#include "spot_notice.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/net/http_exchange.hpp>

namespace dtrain::elastic {
namespace {

constexpr const char* kService = "http://169.254.169.254";
constexpr const char* kVendorFile = "/sys/class/dmi/id/sys_vendor";
constexpr long kOk = 200, kNotAllowed = 401;

bool is_on_ec2() {
  try {
    return read_file(kVendorFile).starts_with("Amazon EC2");
  } catch (const Error&) {
    return false;
  }
}

// One instance's metadata, with the session token that version 2 of the service wants.
class Metadata {
 public:
  explicit Metadata(std::string url) : url_(std::move(url)) {}

  // nullopt: there is nothing of that name, which is the usual case.
  std::optional<Json> get(const std::string& path, const std::stop_token& cancel) {
    if (token_.empty()) renew(cancel);
    const net::HttpAnswer answer = net::exchange_http(
        {.url = url_ + "/latest/meta-data/" + path, .headers = {"X-aws-ec2-metadata-token: " + token_}}, cancel);
    if (answer.status == kNotAllowed) token_.clear();  // it is over: the next look gets another one
    if (answer.status != kOk) return std::nullopt;
    return Json::parse(answer.body, "the instance's metadata");
  }

 private:
  void renew(const std::stop_token& cancel) {
    const net::HttpAnswer answer = net::exchange_http({.url = url_ + "/latest/api/token",
                                                       .method = "PUT",
                                                       .headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"}},
                                                      cancel);
    if (answer.status != kOk) throw RemoteError(fmt::format("{}: no session token: {}", url_, answer.status));
    token_ = answer.body;
  }

  const std::string url_;
  std::string token_;
};

std::string text_or(const Json& json, std::string_view key, const char* otherwise) {
  const Json* value = json.is_object() ? json.find(key) : nullptr;
  return value && value->is_string() ? value->as_string() : otherwise;
}

// What is new. Whatever goes wrong: there may be something at the next look.
std::optional<SpotNotice> look(Metadata& metadata, bool& recommended, const std::stop_token& cancel) {
  try {
    if (const auto action = metadata.get("spot/instance-action", cancel)) {
      return SpotNotice{true, fmt::format("spot notice: {} at {}", text_or(*action, "action", "end"),
                                          text_or(*action, "time", "an unknown time"))};
    }
    if (recommended) return std::nullopt;
    if (const auto rebalance = metadata.get("events/recommendations/rebalance", cancel)) {
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
  Metadata metadata(url);
  bool recommended = false;
  std::mutex mutex;
  std::condition_variable_any pause;
  while (!stop.stop_requested()) {
    if (const auto notice = look(metadata, recommended, stop)) {
      loop.post([on_notice, notice = *notice] { on_notice(notice); });
      if (notice->leave) return;
    }
    std::unique_lock lock(mutex);
    pause.wait_for(lock, stop, interval, [] { return false; });
  }
}

}  // namespace

std::string notice_url_of(const std::string& choice, const std::string& host) {
  if (choice == "none" || choice.empty()) return {};
  if (choice == "auto") return is_on_ec2() ? kService : "";
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
