// The coordinator's hands and ears. Calls return at once; what comes of them arrives as events on the coordinator's
// thread. The real crew starts agents and talks to them over the network; a test's crew runs workers as threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <dtrain/elastic/circle.hpp>
#include <dtrain/elastic/gate.hpp>
#include <dtrain/elastic/host_file.hpp>
#include <dtrain/elastic/protocol.hpp>

namespace dtrain::elastic {

struct HostUp {  // the host's agent is connected; nobody may have asked for it: it was lost, and has come back
  std::string host;
  std::string address;  // numeric, as the coordinator sees it
};
struct HostKnows {  // its agent has heard of a generation by tell_circle()
  std::string host;
  Generation generation = 0;
};
struct Deposed {  // somebody obeys a higher term: another coordinator is there, or will be
  Term term = 0;
};
struct HostDown {  // the agent could not be started, or its connection is gone: so are its workers
  std::string host;
  std::string reason;
};
struct GateTried {  // the host did what try_gate() asked for
  std::string host;
  GateResult result;
};
struct HostNotice {  // a signal to the agent, or the cloud's word: this host goes soon
  std::string host;
  bool leave = true;  // false: it only may
  std::string reason;
};
struct WorkerSays {
  WorkerId worker = 0;
  FromWorker message;
};
struct WorkerExited {  // the process ended
  WorkerId worker = 0;
  int exit_code = 0;  // of exit(), when signal is 0
  int signal = 0;
  std::vector<std::string> last_lines;  // of its output
};
struct Request {  // a person or another command asks: {"ask": "list" | "drain" | "stop" | ..., ...}
  Json body;
  std::function<void(Json)> answer;  // call once
};
using CrewEvent =
    std::variant<HostUp, HostDown, HostKnows, GateTried, HostNotice, WorkerSays, WorkerExited, Deposed, Request>;

class Crew {
 public:
  virtual ~Crew() = default;
  virtual void start_host(const HostLine& host) = 0;
  // On a host that is up: ends in GateTried, or in HostDown. Asked again meanwhile: still one answer.
  virtual void try_gate(const std::string& host) = 0;
  virtual void start_worker(const std::string& host, int slot, WorkerId worker) = 0;
  virtual void send(WorkerId worker, const ToWorker& message) = 0;
  virtual void send_all(const std::vector<WorkerId>& workers, const ToWorker& message) {
    for (const WorkerId worker : workers) send(worker, message);
  }
  // Ends the worker's whole process tree; dump_stack: its threads' stacks go to its log first.
  virtual void kill_worker(WorkerId worker, bool dump_stack) = 0;
  virtual void end_host(const std::string& host) = 0;  // its agent exits, after all of its workers
  // All agents learn who has a say from this generation on. Crews whose agents end with their coordinator need not
  // tell.
  virtual void tell_circle(Generation, bool /*committed*/, const std::vector<Member>&) {}
  // How many of these hosts' agents have surely not promised themselves to another coordinator at `since`.
  virtual std::size_t answered_since(const std::vector<std::string>& names,
                                     std::chrono::steady_clock::time_point) const {
    return names.size();
  }
};

// Declared here, implemented by src/launch: starts the agent of one host.
struct AgentJoin {      // travels through a pipe or its owner's file, never argv: it holds the token
  std::string address;  // of the coordinator; a launcher that knows better what the host can reach replaces it
  std::vector<std::string> more_addresses{};  // tried after that one
  std::uint16_t port = 0;
  std::string token;
  std::string host;
  std::string job_folder{};  // absolute
  std::string tree{};        // of this start alone: marks the agent's processes, see tree_mark()
  Term term = 0;             // of the coordinator that starts it
};
class AgentLauncher {
 public:
  virtual ~AgentLauncher() = default;
  // Returns at once; the agent may still be on its way then. RemoteError, or later a call of `failed` from any thread:
  // it cannot be started. The launcher may be destroyed meanwhile, then nothing more is heard of it.
  using Failed = std::function<void(std::string reason)>;
  virtual void start(const HostLine& host, const AgentJoin& join, Failed failed) = 0;
};

}  // namespace dtrain::elastic
