// The process of a new coordinator, started by the agent that won the election. It outlives the agent.
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
  // Its messages for the user go to logs/coordinator.log in the job folder. `on_port` is called once; 0: the process
  // ended before it had a port. Throws Error when it does not start. `loop` must outlive this.
  CoordinatorProcess(net::Loop& loop, const std::vector<std::string>& command, std::vector<std::string> environment,
                     const Path& folder, const CoordinatorOrder& order,
                     std::function<void(std::uint16_t port)> on_port);
  ~CoordinatorProcess();

 private:
  struct Answer;
  std::shared_ptr<Answer> answer_;
};

}  // namespace dtrain::elastic
