// Services of a machine in a cluster, which its service manager or its queue starts.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/cluster/head.hpp>
#include <dtrain/cluster/head_guard.hpp>
#include <dtrain/cluster/node.hpp>

#include "agent_roles.hpp"
#include "job/queue/job_queue.hpp"
#include "job/queue/queue_runner.hpp"
#include "job/registered/head.hpp"

namespace dtrain::cli {
namespace {

std::function<void(const std::string&)> notes_to(Reporter& reporter) {
  return [&reporter](const std::string& line) { reporter.note(line); };
}

Path folder_with(const Path& file) { return std::filesystem::absolute(file).parent_path(); }

}  // namespace

ExitCode run_cluster_head(const Path& file, Reporter& reporter) {
  cluster::run_head(
      {.order = cluster::read_node_order(file), .folder = folder_with(file), .on_note = notes_to(reporter)});
  return ExitCode::ok;
}

ExitCode run_cluster_node(const Path& file, Reporter& reporter) {
  cluster::run_node(
      {.order = cluster::read_node_order(file), .folder = folder_with(file), .on_note = notes_to(reporter)});
  return ExitCode::ok;
}

// On the head, beside the process that nodes register with, which may still be starting.
ExitCode run_cluster_queue(const Path& file, Reporter& reporter) {
  const cluster::NodeOrder order = cluster::read_node_order(file);
  cluster::become_login_user(order.login);
  job::run_queue({.queue = job::queue_of_cluster(order.shared_folder, order.cluster),
                  .cluster = order.cluster,
                  .on_note = notes_to(reporter)});
  return ExitCode::ok;
}

// The head's role is the keys of it. What it does is `cluster watch --heal`, in a process that replaces this one.
ExitCode keep_cluster(const Path& file, Reporter&) {
  const cluster::NodeOrder order = cluster::read_node_order(file);
  std::vector<std::string> command = own_command();
  const Path program = std::filesystem::canonical(command.front());  // a process that changes its user cannot ask this
  if (command.size() == 1) command.front() = "dtrain";
  command.insert(command.end(), {"cluster", "watch", order.cluster, "--heal", "--region", order.region});
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  cluster::become_login_user(order.login);
  ::execv(program.c_str(), words.data());
  throw Error(fmt::format("cannot start {}: {}", program.string(), std::strerror(errno)));
}

// On a worker, whose role is the keys of it.
ExitCode guard_cluster(const Path& file, Reporter& reporter) {
  const cluster::NodeOrder order = cluster::read_node_order(file);
  cluster::become_login_user(order.login);
  cluster::guard_head({.order = order, .on_note = notes_to(reporter)});
  return ExitCode::ok;
}

ExitCode run_queue_of_registered(const std::string& name, Reporter& reporter) {
  job::run_registered_queue(name, notes_to(reporter));
  return ExitCode::ok;
}

}  // namespace dtrain::cli
