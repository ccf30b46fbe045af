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
  GateOptions gate{};
  // Where agents ask whether their machine is to end: "auto" (EC2's service, where there is one), "none", or a URL with
  // {host} for the host's name.
  std::string notice_url = "none";
  // The workers' environment and folder; empty: this process's. Where a host has no such folder its workers begin in
  // the job folder.
  std::vector<std::string> environment{};
  Path folder{};
  // The environment is put on top of what each agent has by itself, as other machines need it.
  bool keep_agents_environment = false;
  std::string bind_address = "127.0.0.1";
  std::chrono::milliseconds join_deadline{30'000};  // from start_host() to an agent that joined: then HostDown
  Term term = 1;
  // Agents and workers go on without this coordinator, and find or choose another (elect/elect.hpp).
  bool outlive = false;
  // An agent, or to agents the coordinator, is lost when nothing was heard of it for so long; 0: only a closed
  // connection counts. With outlive agents need 3 s.
  std::chrono::milliseconds silence{0};
  std::chrono::milliseconds patience{600'000};  // of agents without a coordinator; then they end
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

  // For a coordinator that takes over, before anything else: collects the agents of these circles, and any other of
  // this job that comes meanwhile, until all are there, or `wait` is over (thrice, while fewer than half are). They are
  // up then, with all their workers; events begin after `done`.
  void gather(const std::vector<Circle>& circles, std::chrono::milliseconds wait,
              std::function<void(std::vector<HostReport>)> done);

  // A host that is started again loses the agent that it may still have. Every start ends in HostUp or HostDown; after
  // HostUp comes HostDown, asked for or not. With outlive an agent that was lost may come back: HostUp, without
  // workers.
  void start_host(const HostLine& host) override;
  void try_gate(const std::string& host) override;
  void start_worker(const std::string& host, int slot, WorkerId worker) override;
  void send(WorkerId worker, const ToWorker& message) override;
  void send_all(const std::vector<WorkerId>& workers, const ToWorker& message) override;
  void kill_worker(WorkerId worker, bool dump_stack) override;
  void end_host(const std::string& host) override;
  void tell_circle(Generation generation, bool committed, const std::vector<Member>& members) override;
  std::size_t answered_since(const std::vector<std::string>& names,
                             std::chrono::steady_clock::time_point since) const override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dtrain::elastic
