#include "spot_notice.hpp"

#include <optional>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/base/mutex.hpp>

namespace dtrain::elastic {
namespace {

// The new notices. A failure counts as none; the next look repeats the request.
std::optional<net::EndNotice> look(net::InstanceMetadata& metadata, bool& recommended, const std::stop_token& cancel) {
  try {
    auto notice = net::end_notice(metadata, cancel);
    if (notice && !notice->is_final && std::exchange(recommended, true)) return std::nullopt;
    return notice;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void watch(const std::stop_token& stop, net::Loop& loop, const std::string& url,
           const std::function<void(net::EndNotice)>& on_notice, std::chrono::milliseconds interval) {
  net::InstanceMetadata metadata({.url = url});
  bool recommended = false;
  while (!stop.stop_requested()) {
    if (const auto notice = look(metadata, recommended, stop)) {
      loop.post([on_notice, notice = *notice] { on_notice(notice); });
      if (notice->is_final) return;
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

SpotWatch::SpotWatch(net::Loop& loop, std::string url, std::function<void(net::EndNotice)> on_notice,
                     std::chrono::milliseconds interval)
    : thread_([&loop, url = std::move(url), on_notice = std::move(on_notice), interval](const std::stop_token& stop) {
        watch(stop, loop, url, on_notice, interval);
      }) {}

}  // namespace dtrain::elastic
