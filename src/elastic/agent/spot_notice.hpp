// What EC2 tells an instance about its own end, asked every few seconds over IMDSv2 (a session token, then
// spot/instance-action and events/recommendations/rebalance). A thread of its own: nobody waits for it.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include <dtrain/net/channel.hpp>

namespace dtrain::elastic {

// Where to ask: "auto" (the service's address on EC2, else nowhere), "none", or a URL, in which {host} is replaced.
// Empty: nowhere.
std::string notice_url_of(const std::string& choice, const std::string& host);

struct SpotNotice {
  bool leave = false;  // false: only a recommendation to leave soon
  std::string reason;  // for people
};

class SpotWatch {
 public:
  // Calls back on the loop's thread, at most once for each kind. The loop must outlive this.
  SpotWatch(net::Loop& loop, std::string url, std::function<void(SpotNotice)> on_notice,
            std::chrono::milliseconds interval = std::chrono::seconds(5));

 private:
  std::jthread thread_;
};

}  // namespace dtrain::elastic
