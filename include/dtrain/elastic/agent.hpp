// The process that dtrain starts once on every host. It connects to the coordinator, starts and watches the host's
// workers, carries frames between them and the coordinator, keeps what they print, and ends all of them.
//
// What the agent owns is the tree of its own processes: its workers, whatever they start, and what those leave behind.
// Nothing of it outlives the agent, and nothing else is ever touched.
#pragma once

#include <chrono>
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

// What a launcher writes to the agent's standard input; nothing follows it. Holds the token.
Json to_json(const AgentJoin& join);
AgentJoin agent_join_from_json(const Json& json);  // throws DataError
// Every process of this agent has a variable that begins so in its environment: how a launcher finds what an agent that
// was killed left behind.
std::string tree_mark(const AgentJoin& join);

struct AgentOptions {
  AgentJoin join;
  // The command line of a worker. The environment and the folder come from the coordinator.
  std::vector<std::string> worker_command;
  std::chrono::milliseconds connect_deadline{10'000};
  // Between SIGTERM and SIGKILL, when the agent ends while workers run.
  std::chrono::milliseconds grace{1'000};
};

// Call in a process of its own, before it has other threads or children: all orphans become its children. Returns when
// the coordinator said so or is gone, or a stop signal came (base/stop.hpp), and no worker is left. Throws RemoteError
// when it cannot join.
void run_agent(const AgentOptions& options);

}  // namespace dtrain::elastic
