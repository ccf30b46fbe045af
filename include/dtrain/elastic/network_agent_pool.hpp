// The agent pool of a real job: agents that join over the network, and the workers that they start. The same port takes
// the requests of commands such as `dtrain hosts list`.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/output_stream.hpp>
#include <dtrain/elastic/agent_pool.hpp>
#include <dtrain/net/channel.hpp>

namespace dtrain::elastic {

struct NetworkAgentPoolOptions {
  std::string token;                                                // proven by agents and commands
  Path job_folder;                                                  // logs/ in it gets the output of the workers
  Json job;                                                         // for WorkerJob::document
  AdmissionCheckOptions admission_check = AdmissionCheckOptions();  // GCC 12 warns of {} (-Wmaybe-uninitialized)
  // Where agents ask whether their machine ends soon: "auto" (the EC2 metadata service, if there is one), "none", or a
  // URL with {host} for the host's name.
  std::string notice_url = "none";
  // Environment of the workers; none: that of this process. An empty one stays empty.
  std::optional<std::vector<std::string>> environment{};
  // Folder of the workers; empty: that of this process. On a host without it workers start in the job folder.
  Path folder{};
  // Add the environment to what each agent has by itself, as other machines need it.
  bool keep_agents_environment = false;
  std::string bind_address = "127.0.0.1";
  std::chrono::milliseconds join_deadline{30'000};  // from start_host() until the agent joins; then HostDown
  Term term = 1;
  // Agents and workers survive the loss of this coordinator, and find or elect another (election/elect.hpp).
  bool outlive = false;
  // Silence after which an agent, or for an agent the coordinator, counts as lost; 0: only when its connection closes.
  // With outlive agents need 3 s.
  std::chrono::milliseconds silence{0};
  std::chrono::milliseconds patience{600'000};  // agents end after so long without a coordinator
  std::chrono::milliseconds grace{300'000};     // for workers to save their state, once their agent has given up
  // Gets whole lines of workers' output as they come, without the newline. Empty: agents do not send them.
  std::function<void(const std::string& host, int slot, OutputStream stream, std::string_view line)> on_output{};
};

// Times of collect_agents().
struct CollectTimes {
  std::chrono::milliseconds wait;   // for all voters
  std::chrono::milliseconds quiet;  // since the last agent that came
};

// Threads: all calls are made on the loop's thread, where events come too; no call may be made from within a call.
// Destruction closes all connections, which ends agents that do not outlive their coordinator.
class NetworkAgentPool final : public AgentPool {
 public:
  // Listens at once. `loop` and `launcher` must outlive this.
  NetworkAgentPool(net::Loop& loop, AgentLauncher& launcher, NetworkAgentPoolOptions options,
                   std::function<void(AgentPoolEvent)> on_event);
  ~NetworkAgentPool() override;

  // Where agents and commands connect. A command's first frame is the body of a Request; one frame answers it.
  std::string address() const;
  std::uint16_t port() const;

  // Collects the agents of the election's voter sets, and any other agent of this job that comes meanwhile; the first
  // call of a coordinator that takes over. It ends when all are there. It ends earlier when all that granted their vote
  // and at least half are there, and no other has come for `quiet`; and in any case after `wait` (three times `wait`
  // while fewer than half are there). The collected hosts are up then, with all their workers, and events begin after
  // `done`.
  void collect_agents(const ElectionResult& election, CollectTimes times,
                      std::function<void(std::vector<HostReport>)> done);

  // A second start of a host drops the agent that it still has. Every start ends in HostUp or HostDown, and every
  // HostUp is followed by a HostDown at the end. With outlive an agent that was lost may return: HostUp, without
  // workers.
  void start_host(const HostLine& host) override;
  void run_admission_check(const std::string& host) override;
  void start_worker(const std::string& host, int slot, WorkerId worker) override;
  void send(WorkerId worker, const ToWorker& message) override;
  void send_all(const std::vector<WorkerId>& workers, const ToWorker& message) override;
  void kill_worker(WorkerId worker, bool dump_stack) override;
  void end_host(const std::string& host) override;
  void announce_voters(Generation generation, bool committed, const std::vector<Member>& members) override;
  std::size_t answered_since(const std::vector<std::string>& names,
                             std::chrono::steady_clock::time_point since) const override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace dtrain::elastic
