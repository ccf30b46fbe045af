// Agents that somebody else starts for the coordinator: `dtrain hosts add`, with keys that the coordinator may not
// have.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include <dtrain/base/json.hpp>
#include <dtrain/elastic/crew.hpp>

namespace dtrain::job {

// Everything on one thread. Starts that nobody offered to do go to the launcher that it wraps.
class LentStarts final : public elastic::AgentLauncher {
 public:
  // Borrows the launcher. `announce`: where hosts reach this machine; empty: at all of its addresses.
  explicit LentStarts(elastic::AgentLauncher& launcher, std::string announce = {})
      : launcher_(launcher), announce_(std::move(announce)) {}

  // Requests with a "start": HOST are about such starts. "edit-hosts": the asker does the next start of this host,
  // which the edit leads to; it is answered by {"join": an AgentJoin} when that is asked for, by {"ok": true} if it is
  // not, because no worker is needed there. "start-failed" {"reason"}: the asker could not do it. True: nobody else
  // need hear the request; else it goes on, and what is answered to it counts only if it is an error.
  bool hear(elastic::Request& request, std::chrono::steady_clock::time_point now);
  void joined(const std::string& host) { lent_.erase(host); }
  // Ends what was promised and did not come.
  void tick(std::chrono::steady_clock::time_point now);

  void start(const elastic::HostLine& host, const elastic::AgentJoin& join, Failed failed) override;

 private:
  void give_up(const std::string& host, const std::string& reason);

  struct Offer {
    std::function<void(Json)> answer;
    std::chrono::steady_clock::time_point until;
  };
  struct Lent {
    Failed failed;
    std::chrono::steady_clock::time_point until;
  };
  elastic::AgentLauncher& launcher_;
  const std::string announce_;
  std::map<std::string, Offer> offers_;
  std::map<std::string, Lent> lent_;
};

}  // namespace dtrain::job
