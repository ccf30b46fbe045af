#include <dtrain/launcher/waiting_agents.hpp>

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/own_files.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/wait_status.hpp>
#include <dtrain/elastic/agent.hpp>

#include "agent_errors.hpp"

namespace dtrain::launcher {
namespace {

std::filesystem::file_time_type time_of(const Path& order) {
  std::error_code gone;
  const auto time = std::filesystem::last_write_time(order, gone);
  return gone ? std::filesystem::file_time_type::min() : time;
}

}  // namespace

struct WaitingAgents::Running {
  pid_t process = 0;
  Path order, log;
  std::uintmax_t log_size = 0;  // size of the log before the start
  std::string mark;
};

WaitingAgents::WaitingAgents(const WaitingFolder& folder, std::string host, Note note, std::vector<std::string> command)
    : folder_(folder), host_(std::move(host)), note_(std::move(note)), command_(std::move(command)) {
  if (!command_.empty()) return;
  command_ = own_command();
  command_.insert(command_.end(), {"agent", "--join"});
}

WaitingAgents::~WaitingAgents() {
  for (const Running& agent : running_) {
    kill_session(agent.process, agent.mark);
    wait_for_end(agent.process);
  }
}

void WaitingAgents::look() {
  reap();
  if (refuses_) return;
  std::vector<Path> orders = folder_.orders_for(host_);
  std::erase_if(orders, [this](const Path& order) { return std::ranges::find(begun_, order) != begun_.end(); });
  begun_.insert(begun_.end(), orders.begin(), orders.end());
  while (!orders.empty()) {
    const auto newest = std::ranges::max_element(orders, {}, time_of);
    if (obey(*newest)) return;  // the others are of coordinators that are lost
    orders.erase(newest);
  }
}

// Starts an agent, or reports why not. False: another user may have written the order.
bool WaitingAgents::obey(const Path& order) {
  try {
    start(order);
  } catch (const ForeignFile& error) {
    note_(fmt::format("{}; {}", error.what(), error.hint()));
    report_end(order, fmt::format("its agent does not start: {}", error.what()));
    return false;
  } catch (const std::exception& error) {
    note_(fmt::format("{}: {}", order.filename().string(), error.what()));
    report_end(order, fmt::format("its agent does not start: {}", error.what()));
  }
  return true;
}

void WaitingAgents::start(const Path& order) {
  const elastic::AgentOrder join = elastic::agent_order_from_json(Json::parse(read_own_file(order), order.string()));
  for (const Running& agent : running_) kill_session(agent.process, agent.mark);
  Running agent{.order = order, .log = elastic::agent_log(join), .mark = elastic::tree_mark(join)};
  make_folder(agent.log.parent_path());
  const FileDescriptor log = open_log(agent.log);
  agent.log_size = std::filesystem::file_size(agent.log);
  std::vector<std::string> command = command_;
  command.push_back(order.string());
  Spawn child = spawn_of(std::move(command));
  child.environment = own_environment();
  child.output = child.error = log.get();
  child.group = Spawn::Group::session;
  child.death_signal = SIGTERM;
  agent.process = spawn(child);
  running_.push_back(std::move(agent));
  note_(
      fmt::format("{} takes an order of the coordinator; its agent writes to {}", host_, running_.back().log.string()));
}

void WaitingAgents::reap() {
  std::vector<pid_t> own;
  for (const Running& agent : running_) own.push_back(agent.process);
  while (reap_adopted(own) != 0) {  // of a container's first process
  }
  std::erase_if(running_, [this](const Running& agent) {
    if (!has_ended(agent.process)) return false;
    const ProcessEnd end = wait_for_end(agent.process);
    const std::string said = errors_since(agent.log, agent.log_size);
    note_(fmt::format("the agent {}{}{}", describe_end(end), said.empty() ? "" : ": ", said));
    if (!end.ok()) {
      report_end(agent.order, fmt::format("its agent {}{}{}", describe_end(end), said.empty() ? "" : ": ", said));
    }
    return true;
  });
}

void WaitingAgents::report_end(const Path& order, const std::string& reason) const {
  try {
    folder_.report_end(order, reason);
  } catch (const Error& error) {
    note_(error.what());
  }
}

bool WaitingAgents::any() const { return !running_.empty(); }

void WaitingAgents::send(int signal) const {
  for (const Running& agent : running_) ::kill(agent.process, signal);
}

}  // namespace dtrain::launcher
