// Notices of EC2 about the end of this instance, polled every few seconds with IMDSv2 (a session token, then
// spot/instance-action and events/recommendations/rebalance). The requests run on a thread of their own.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include <dtrain/net/channel.hpp>
#include <dtrain/net/instance_metadata.hpp>

namespace dtrain::elastic {

// The address to poll: for "auto" that of the service on EC2 (elsewhere none), for "none" none, otherwise a URL in
// which {host} is replaced. Empty: none.
std::string notice_url_of(const std::string& choice, const std::string& host);

class SpotWatch {
 public:
  // Calls back on the loop's thread, at most once for each kind. The loop must outlive this.
  SpotWatch(net::Loop& loop, std::string url, std::function<void(net::EndNotice)> on_notice,
            std::chrono::milliseconds interval = std::chrono::seconds(5));

 private:
  std::jthread thread_;
};

}  // namespace dtrain::elastic
