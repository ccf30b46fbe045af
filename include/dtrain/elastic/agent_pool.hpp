// The agents of a job, as the coordinator uses them. Calls return at once; their results arrive as events on the
// coordinator's thread. NetworkAgentPool starts real agents; tests have pools whose workers are threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <dtrain/elastic/admission_check.hpp>
#include <dtrain/elastic/host_file.hpp>
#include <dtrain/elastic/protocol.hpp>
#include <dtrain/elastic/voters.hpp>

namespace dtrain::elastic {

// The host's agent is connected: start_host() asked for it, or it was lost and has reconnected.
struct HostUp {
  std::string host;
  std::string address;  // numeric, as the coordinator sees it
};
struct HostKnows {  // the host's agent knows a generation of announce_voters()
  std::string host;
  Generation generation = 0;
};
struct StaleTerm {  // an agent follows a coordinator of a higher term, or votes for one
  Term term = 0;
};
struct HostDown {  // the agent could not be started, or its connection is lost: so are its workers
  std::string host;
  std::string reason;
  bool is_fault_of_this_machine = false;  // the start failed before it came to the host
  std::string forget_key{};               // as of StartFailure
};
struct AdmissionChecked {  // the result of run_admission_check()
  std::string host;
  AdmissionCheckResult result;
};
struct HostNotice {  // the machine ends soon: a signal to the agent, or a notice of the cloud
  std::string host;
  bool leave = true;  // false: the machine may end, but need not
  std::string reason;
};
struct WorkerSays {
  WorkerId worker = 0;
  FromWorker message;
};
struct WorkerExited {  // the process ended, or could not be started
  WorkerId worker = 0;
  int exit_code = 0;  // argument of exit(), when signal is 0
  int signal = 0;
  std::vector<std::string> last_lines;  // end of its output; of a process that was not started: why
  bool started = true;
};
struct Request {  // of the user or another command: {"ask": "list" | "drain" | "stop" | ..., ...}
  Json body;
  std::function<void(Json)> answer;  // call it once
};
using AgentPoolEvent = std::variant<HostUp, HostDown, HostKnows, AdmissionChecked, HostNotice, WorkerSays, WorkerExited,
                                    StaleTerm, Request>;

class AgentPool {
 public:
  virtual ~AgentPool() = default;
  virtual void start_host(const HostLine& host) = 0;
  // For a host that is up. Ends in AdmissionChecked or HostDown; a second call while the check runs has no effect.
  virtual void run_admission_check(const std::string& host) = 0;
  virtual void start_worker(const std::string& host, int slot, WorkerId worker) = 0;
  virtual void send(WorkerId worker, const ToWorker& message) = 0;
  // The same as send() to each of them; a pool may serialise the message once.
  virtual void send_all(const std::vector<WorkerId>& workers, const ToWorker& message) = 0;
  // Kills the worker's whole process tree. dump_stack: the stacks of its threads go to its log first.
  virtual void kill_worker(WorkerId worker, bool dump_stack) = 0;
  virtual void end_host(const std::string& host) = 0;  // the agent ends its workers, then exits
  // Tells all agents which agents may vote from this generation on. In a pool whose agents end with their coordinator
  // it does nothing.
  virtual void announce_voters(Generation generation, bool committed, const std::vector<Member>& members) = 0;
  // Number of these hosts whose agents had not voted for another coordinator at `since`.
  [[nodiscard]] virtual std::size_t answered_since(const std::vector<std::string>& names,
                                                   std::chrono::steady_clock::time_point since) const = 0;
};

// The launcher interface is declared here and implemented by src/launcher.
// What the launcher gives an agent. It holds the token, so it travels through a pipe or a file that only its owner can
// read, never through argv.
struct AgentOrder {
  std::string address;                        // of the coordinator; a launcher that knows a better route replaces it
  std::vector<std::string> more_addresses{};  // tried after `address`
  std::uint16_t port = 0;
  std::string token;
  std::string host;
  std::string job_folder{};  // absolute
  std::string tree{};        // unique for this start: marks the agent's processes, see tree_mark()
  Term term = 0;             // of the coordinator that starts the agent
};
// Why an agent could not be started.
struct StartFailure {
  StartFailure(std::string why, std::string command = {}) : reason(std::move(why)), forget_key(std::move(command)) {}
  StartFailure(const char* why) : reason(why) {}
  std::string reason;
  std::string forget_key;  // command that forgets the host's old ssh key; empty: another failure
};
class AgentLauncher {
 public:
  virtual ~AgentLauncher() = default;
  // Returns at once, often before the agent runs. A start that fails throws RemoteError, or plain Error where this
  // machine is at fault, or calls `failed` later from any thread. The launcher may be destroyed before that; then there
  // is no call.
  using Failed = std::function<void(StartFailure failure)>;
  virtual void start(const HostLine& host, const AgentOrder& order, Failed failed) = 0;
};

}  // namespace dtrain::elastic
