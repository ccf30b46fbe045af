// The process of a new coordinator, started by the agent that the others chose. It outlives the agent.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/elastic/agent.hpp>
#include <dtrain/net/channel.hpp>

namespace dtrain::elastic {

class CoordinatorProcess {
 public:
  // Its words for people go to logs/coordinator.log of the job folder. `on_port`: once, 0: it ended before it had one.
  // Throws Error when it does not start. Borrows the loop.
  CoordinatorProcess(net::Loop& loop, const std::vector<std::string>& command, std::vector<std::string> environment,
                     const Path& folder, const CoordinatorOrder& order,
                     std::function<void(std::uint16_t port)> on_port);
  ~CoordinatorProcess();

 private:
  struct Answer;
  std::shared_ptr<Answer> answer_;
};

}  // namespace dtrain::elastic
