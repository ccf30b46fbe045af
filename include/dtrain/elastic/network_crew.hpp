// The crew of a real job: agents that join over the network, and the workers that they start. The same port takes the
// requests of commands such as `dtrain hosts list`.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/elastic/crew.hpp>
#include <dtrain/net/channel.hpp>

namespace dtrain::elastic {

struct NetworkCrewOptions {
  std::string token;  // agents and commands prove that they know it
  Path job_folder;    // logs/ of it takes what the workers print
  Json job;           // for WorkerJob::document
  // The workers' environment and folder; empty: this process's.
  std::vector<std::string> environment{};
  Path folder{};
  std::string bind_address = "127.0.0.1";
  std::chrono::milliseconds join_deadline{30'000};  // from start_host() to an agent that joined: then HostDown
  // Whole lines of a worker's output as they come, without the newline. Empty: they are not even sent here.
  std::function<void(const std::string& host, int slot, std::string_view line)> on_output{};
};

// Call everything from the loop's thread, where events come too, never from within a call. Destroyed: agents and their
// workers end.
class NetworkCrew final : public Crew {
 public:
  // Listens at once. `loop` and `launcher` must outlive this.
  NetworkCrew(net::Loop& loop, AgentLauncher& launcher, NetworkCrewOptions options,
              std::function<void(CrewEvent)> on_event);
  ~NetworkCrew() override;

  // Where agents and commands connect. A command's first frame is a Request's body, the answer comes as one frame.
  std::string address() const;
  std::uint16_t port() const;

  // A host that is started again loses the agent that it may still have. Every start ends in HostUp or HostDown; after
  // HostUp comes HostDown, asked for or not.
  void start_host(const HostLine& host) override;
  void start_worker(const std::string& host, int slot, WorkerId worker) override;
  void send(WorkerId worker, const ToWorker& message) override;
  void send_all(const std::vector<WorkerId>& workers, const ToWorker& message) override;
  void kill_worker(WorkerId worker, bool dump_stack) override;
  void end_host(const std::string& host) override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dtrain::elastic
