// Agents that a client starts for the coordinator: `dtrain hosts add`, with keys that the coordinator may not have.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <dtrain/base/json.hpp>
#include <dtrain/elastic/agent_pool.hpp>

namespace dtrain::job {

// All members run on the coordinator's thread. Starts that no client offered to do go to the wrapped launcher.
class ClientSideStarts final : public elastic::AgentLauncher {
 public:
  // Borrows the launcher. `announce`: where hosts reach this machine; empty: at all of its addresses.
  explicit ClientSideStarts(elastic::AgentLauncher& launcher, std::string announce = {})
      : launcher_(launcher), announce_(std::move(announce)) {}

  // Handles requests with a "start": HOST. "edit-hosts": the client offers the next start of this host, which the edit
  // leads to; when the start comes, the coordinator's answer to the edit gets {"join": an AgentOrder} and is sent. If
  // no worker is needed there, it is sent without. "start-failed" {"reason", "forget_key"}: the client could not start
  // it. Returns true if the request is completely handled; otherwise the coordinator handles it too.
  bool hear(elastic::Request& request, std::chrono::steady_clock::time_point now);
  void joined(const std::string& host) { pending_.erase(host); }
  // Ends offers and starts whose time is over.
  void tick(std::chrono::steady_clock::time_point now);

  void start(const elastic::HostLine& host, const elastic::AgentOrder& join, Failed failed) override;

 private:
  void give_up(const std::string& host, const elastic::StartFailure& failure);
  void answer_once_complete(const std::string& host);

  struct Offer {
    std::function<void(Json)> answer;
    std::chrono::steady_clock::time_point until;
    std::optional<Json> edited{};  // the coordinator's answer, which may come after the start
    std::optional<Json> join{};
  };
  struct PendingStart {
    Failed failed;
    std::chrono::steady_clock::time_point until;
  };
  elastic::AgentLauncher& launcher_;
  const std::string announce_;
  std::map<std::string, Offer> offers_;
  std::map<std::string, PendingStart> pending_;
};

}  // namespace dtrain::job
