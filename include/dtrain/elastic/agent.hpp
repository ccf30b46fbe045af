// The agent: one process on each host. It connects to the coordinator, starts and watches the workers of its host,
// carries frames between them and the coordinator, logs their output, and ends them.
//
// The agent owns the tree of its own processes: its workers, their descendants, and orphans among those. None of them
// outlives the agent, and the agent signals no other process.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/json.hpp>
#include <dtrain/elastic/agent_pool.hpp>

namespace dtrain::elastic {

// Descriptor of a worker's socket to its agent, which carries frames of net::adopt_channel. The first frame to the
// worker is its WorkerJob; all others are messages of elastic/protocol.hpp.
constexpr int kWorkerSocket = 3;
struct WorkerJob {
  WorkerId worker = 0;
  std::string host;
  int slot = 0;
  std::string address;  // this host's numeric address as the coordinator sees it; other workers connect to it
  std::string token;
  std::string job_folder;
  Json document;  // the job, as the agent pool got it
};
Json to_json(const WorkerJob& job);
WorkerJob worker_job_from_json(const Json& json);  // throws DataError

// A worker that runs a program again and again writes this and a note, as the end of a line, to its standard output and
// error before each start. What came before is not among the last lines of that start. The note is logged once, and
// nothing of it is shown. The text follows from the token, so that no output of the program holds it.
std::string program_starts(const WorkerJob& job);

// A launcher writes an AgentOrder to the agent's standard input, or into a file that only its owner can read, and
// nothing after it. It holds the token.
Json to_json(const AgentOrder& order);
AgentOrder agent_order_from_json(const Json& json);  // throws DataError
// Prefix of a variable in the environment of every process of this agent. A launcher finds the processes of a killed
// agent by it.
std::string tree_mark(const AgentOrder& order);
// Prefix of the variable that a coordinator started by this agent has instead, because that coordinator outlives the
// agent. The coordinator removes it from its environment, so that its own children do not inherit it.
constexpr const char* kCoordinatorVariable = "DTRAIN_COORDINATOR";
std::string coordinator_mark(const AgentOrder& order);
// <job folder>/logs/agent_<host>.log: the agent's own messages, on other machines than the coordinator's.
Path agent_log(const AgentOrder& order);

struct AgentOptions {
  AgentOrder order;
  // Command line of a worker. Environment and folder come from the coordinator.
  std::vector<std::string> worker_command;
  // Command line of the health check. It reads the WorkerJob of worker 0 with {"coordinator": {"address", "port"}} from
  // its standard input. Its last line is {"failure": REASON, ...}, with an empty reason for a fit host. Empty: no
  // check.
  std::vector<std::string> check_command{};
  // Command line of a coordinator. The agent starts it when it wins an election, with a CoordinatorOrder on its
  // standard input and outside of its own process tree. Empty: this agent never becomes a candidate.
  std::vector<std::string> coordinator_command{};
  // Reads from the job folder which coordinator leads the job. Called from a thread of its own, one call at a time,
  // because the folder may be slow.
  struct FolderNews {
    std::optional<Leader> leader;
    bool job_over = false;
  };
  std::function<FolderNews()> look_into_folder{};
  std::function<void(const std::string& line)> on_note{};  // messages for the user
  std::chrono::milliseconds connect_deadline{10'000};
  std::function<void()> on_joined{};  // called once; may be empty
};

// Standard input of a new coordinator. The coordinator answers with a line on its standard output: its port, in
// decimal.
struct CoordinatorOrder {
  ElectionResult election;
  std::string token;
  std::string job_folder;
  std::string address;  // this host's numeric address, where agents connect
  Json document;        // the job
};
Json to_json(const CoordinatorOrder& order);
CoordinatorOrder coordinator_order_from_json(const Json& json);  // throws DataError

// Runs an agent until the coordinator ends it, the coordinator is lost, or a stop signal comes (base/stop.hpp), and no
// worker is left. Call it in a process of its own before that has other threads or children: it adopts all orphans.
// Throws RemoteError when it cannot join.
void run_agent(const AgentOptions& options);

}  // namespace dtrain::elastic
