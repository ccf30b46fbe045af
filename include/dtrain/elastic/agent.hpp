// The process that dtrain starts once on every host. It connects to the coordinator, starts and watches the host's
// workers, carries frames between them and the coordinator, keeps what they print, and ends all of them.
//
// What the agent owns is the tree of its own processes: its workers, whatever they start, and what those leave behind.
// Nothing of it outlives the agent, and nothing else is ever touched.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/json.hpp>
#include <dtrain/elastic/crew.hpp>

namespace dtrain::elastic {

// The descriptor of a worker's socket to its agent: frames of net::adopt_channel. The first one to the worker is its
// WorkerJob, all others are messages of elastic/protocol.hpp.
constexpr int kWorkerSocket = 3;

struct WorkerJob {
  WorkerId worker = 0;
  std::string host;
  int slot = 0;
  std::string address;  // of this host, numeric, as the coordinator sees it: what other workers reach
  std::string token;
  std::string job_folder;
  Json document;  // the job, as it was given to the crew
};
Json to_json(const WorkerJob& job);
WorkerJob worker_job_from_json(const Json& json);  // throws DataError

// What a launcher writes to the agent's standard input, or into a file that only its owner can read; nothing follows
// it. Holds the token.
Json to_json(const AgentJoin& join);
AgentJoin agent_join_from_json(const Json& json);  // throws DataError
// Every process of this agent has a variable that begins so in its environment: how a launcher finds what an agent that
// was killed left behind.
std::string tree_mark(const AgentJoin& join);
// And the coordinator that it may start has this one instead, which begins so: it outlives the agent. It takes it out
// of its environment, so that nothing that it starts has it.
constexpr const char* kCoordinatorVariable = "DTRAIN_COORDINATOR";
std::string coordinator_mark(const AgentJoin& join);
// <job folder>/logs/agent_<host>.log: what the agent of another machine says itself.
Path agent_log(const AgentJoin& join);

struct AgentOptions {
  AgentJoin join;
  // The command line of a worker. The environment and the folder come from the coordinator.
  std::vector<std::string> worker_command;
  // A program that reads a WorkerJob of worker 0 from its standard input, with {"coordinator": {"address", "port"}} in
  // it, and says on its last line whether this host is fit: {"failure": "" or why not, ...}. Empty: every host is.
  std::vector<std::string> check_command{};
  // The command line of a coordinator, which this agent starts when the circle chose it to: with a CoordinatorOrder on
  // its standard input, and outside of this agent's tree. Empty: it is no candidate.
  std::vector<std::string> coordinator_command{};
  // What the job folder says of its coordinator. Called from a thread of its own, one at a time: the folder may be
  // slow.
  struct FolderNews {
    std::optional<Leader> leader;
    bool job_over = false;
  };
  std::function<FolderNews()> look_into_folder{};
  std::function<void(const std::string& line)> on_note{};  // for people
  std::chrono::milliseconds connect_deadline{10'000};
  // Between SIGTERM and SIGKILL, when the agent ends while workers run.
  std::chrono::milliseconds grace{1'000};
  std::function<void()> on_joined{};  // once; may be empty
};

// What the process of a new coordinator gets; it answers with a line of its standard output: its port, in decimal.
struct CoordinatorOrder {
  Mandate mandate;
  std::string token;
  std::string job_folder;
  std::string address;  // of this host, numeric: where agents will look for it
  Json document;        // the job
};
Json to_json(const CoordinatorOrder& order);
CoordinatorOrder coordinator_order_from_json(const Json& json);  // throws DataError

// Call in a process of its own, before it has other threads or children: all orphans become its children. Returns when
// the coordinator said so or is gone, or a stop signal came (base/stop.hpp), and no worker is left. Throws RemoteError
// when it cannot join.
void run_agent(const AgentOptions& options);

}  // namespace dtrain::elastic
