// A whole elastic job in this process: the real coordinator with its folder, and an agent pool of threads.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/elastic/coordinator.hpp>

#include "common/temporary_folder.hpp"
#include "elastic/decide/state.hpp"
#include "sim_agent_pool.hpp"

namespace dtrain::world {

// Short times, so that a schedule of failures takes a second.
elastic::Policy quick_policy();

class SimJob {
 public:
  SimJob(std::vector<std::string> hosts, const elastic::Policy& policy, Body body, SimOptions options);

  // Runs until the job is over and calls `act` meanwhile. Throws Error with the job's last events at the deadline.
  elastic::Finish run(const std::function<void(SimJob&)>& act = {},
                      std::chrono::milliseconds deadline = std::chrono::seconds(120));

  // Writes the host file and announces it, as `dtrain hosts add|remove` does.
  void set_hosts(const std::vector<std::string>& hosts);
  Json ask(Json body);

  SimAgentPool& agent_pool() { return agent_pool_; }
  const elastic::State& state() const { return coordinator_.state(); }
  const Path& folder() const { return folder_.path(); }
  std::vector<elastic::WorkerId> members() const;  // by rank; none while there is no generation
  // The most advanced position that any worker reported.
  elastic::TrainingPosition furthest() const;
  std::string workers() const;  // the phase of each, for messages
  std::string last_events(std::size_t count = 60) const;

 private:
  void write_hosts(const std::vector<std::string>& hosts);

  TemporaryFolder folder_;
  SimAgentPool agent_pool_;
  elastic::Coordinator coordinator_;
};

}  // namespace dtrain::world
