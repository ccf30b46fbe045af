// The coordinator's hands and ears. Calls return at once; what comes of them arrives as events on the coordinator's
// thread. The real crew starts agents and talks to them over the network; a test's crew runs workers as threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <dtrain/elastic/host_file.hpp>
#include <dtrain/elastic/protocol.hpp>

namespace dtrain::elastic {

struct HostUp {  // the host's agent is connected
  std::string host;
  std::string address;  // numeric, as the coordinator sees it
};
struct HostDown {  // the agent could not be started, or its connection is gone: so are its workers
  std::string host;
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
using CrewEvent = std::variant<HostUp, HostDown, WorkerSays, WorkerExited, Request>;

class Crew {
 public:
  virtual ~Crew() = default;
  virtual void start_host(const HostLine& host) = 0;
  virtual void start_worker(const std::string& host, int slot, WorkerId worker) = 0;
  virtual void send(WorkerId worker, const ToWorker& message) = 0;
  virtual void send_all(const std::vector<WorkerId>& workers, const ToWorker& message) {
    for (const WorkerId worker : workers) send(worker, message);
  }
  // Ends the worker's whole process tree; dump_stack: its threads' stacks go to its log first.
  virtual void kill_worker(WorkerId worker, bool dump_stack) = 0;
  virtual void end_host(const std::string& host) = 0;  // its agent exits, after all of its workers
};

// Declared here, implemented by src/launch: starts the agent of one host.
struct AgentJoin {  // travels through a pipe, never argv: it holds the token
  std::string address;
  std::uint16_t port = 0;
  std::string token;
  std::string host;
  std::string job_folder;  // absolute
  std::string tree;        // of this start alone: marks the agent's processes, see tree_mark()
};
class AgentLauncher {
 public:
  virtual ~AgentLauncher() = default;
  // Throws RemoteError when the agent cannot be started. Returns once it is started, not once it joined.
  virtual void start(const HostLine& host, const AgentJoin& join) = 0;
};

}  // namespace dtrain::elastic
