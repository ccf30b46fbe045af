// The programs that `dtrain agent` is: the agent of a host, and what its options make of the process instead. dtrain
// starts all of them itself, on this machine and on others. Each function runs until its work is done, and throws
// Error.
#pragma once

#include <optional>
#include <string>

#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/reporter.hpp>

namespace dtrain::cli {

// agent_join.cpp: the processes of one job.
struct AgentStart {
  bool apart = false;          // return once the agent has joined, and leave it in the background
  std::optional<Path> join{};  // the file with the job to join; nullopt: it comes on standard input
};
ExitCode run_host_agent(const AgentStart& start, Reporter& reporter);
ExitCode run_worker_process(Reporter& reporter);
ExitCode run_host_check(Reporter& reporter);
ExitCode run_next_coordinator(Reporter& reporter);
ExitCode run_submitted_command(const Path& file, Reporter& reporter);

// agent_cluster.cpp: services of a machine in a cluster. `file` describes the cluster (cluster::NodeOrder).
ExitCode run_cluster_head(const Path& file, Reporter& reporter);
ExitCode run_cluster_node(const Path& file, Reporter& reporter);
ExitCode run_cluster_queue(const Path& file, Reporter& reporter);
ExitCode keep_cluster(const Path& file, Reporter& reporter);
ExitCode guard_cluster(const Path& file, Reporter& reporter);
ExitCode run_queue_of_registered(const std::string& name, Reporter& reporter);

// agent_ask.cpp: one question or order on standard input, carried out for another machine.
ExitCode ask_head_of_machine(Reporter& reporter);
ExitCode answer_as_registered(Reporter& reporter);
ExitCode stop_job_in_folder(Reporter& reporter);

// The document on standard input. The token comes through this pipe, so no other process can read it. Throws UsageError
// if it is empty.
Json document_from_input();

}  // namespace dtrain::cli
