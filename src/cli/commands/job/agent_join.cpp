// The processes of one job: the agent of a host, and what it starts.
#include <fmt/format.h>
#include <stdlib.h>

#include <iostream>
#include <iterator>

#include <dtrain/base/error.hpp>
#include <dtrain/base/own_files.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/elastic/agent.hpp>
#include <dtrain/launcher/starter_launcher.hpp>

#include "agent_roles.hpp"
#include "cli/console.hpp"
#include "job/agent/detached_agent.hpp"
#include "job/agent/host_check.hpp"
#include "job/agent/supervised_agent.hpp"
#include "job/coordinator/job.hpp"
#include "job/coordinator/resubmit.hpp"
#include "job/spec/job_folder.hpp"
#include "job/spec/shared_folders.hpp"
#include "job/worker/worker.hpp"

namespace dtrain::cli {
namespace {

// Keeps the token secret as the pipe does: the file is in the job folder, and only its owner may read it.
Json document_from_file(const Path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    throw RemoteError(fmt::format("{} does not exist", file.string()),
                      "all hosts of a job need its folder: mount it on this host, or choose another --job-dir");
  }
  const std::string text = read_own_file(file);
  std::filesystem::remove(file, error);
  return Json::parse(text, file.string());
}

std::vector<std::string> own_command_with(const std::string& option) {
  std::vector<std::string> command = own_command();
  command.insert(command.end(), {"agent", option});
  return command;
}

void require_job_folder(const elastic::AgentOrder& join) {
  std::error_code error;
  if (std::filesystem::is_directory(join.job_folder, error)) return;
  throw RemoteError(fmt::format("{}: the job folder {} does not exist", join.host, join.job_folder),
                    "all hosts of a job need its folder: mount it on this host, or choose another --job-dir");
}

elastic::AgentOptions::FolderNews look_into(const job::JobFolder& folder) {
  if (!is_listed(folder.coordinator())) return {};
  const auto file = job::read_coordinator(folder);
  if (!file) return {};
  if (file->over() || file->addresses.empty()) return {.leader = {}, .job_over = file->over()};
  return {.leader = elastic::Leader{file->term, {file->addresses.front(), file->port}}, .job_over = false};
}

// A coordinator that was replaced, and does not know it yet, must not win agents where the new one is known.
void refuse_old_coordinator(const elastic::AgentOrder& join) {
  std::optional<elastic::Leader> leader;
  try {
    leader = look_into(job::JobFolder{join.job_folder}).leader;
  } catch (const DataError&) {  // damaged: it leads to no coordinator
  }
  if (!leader || leader->term <= join.term) return;
  throw RemoteError(
      fmt::format("{}: the job now belongs to coordinator {}, not {}", join.host, leader->term, join.term));
}

}  // namespace

Json document_from_input() {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  if (text.empty()) {
    throw UsageError(
        "agent: the job to join is missing",
        "`dtrain train` and `dtrain launch` start agents themselves; there is no need to run this command");
  }
  return Json::parse(text, "standard input");
}

ExitCode run_host_agent(const AgentStart& start, Reporter& reporter) {
  const elastic::AgentOrder join =
      elastic::agent_order_from_json(start.join ? document_from_file(*start.join) : document_from_input());
  const job::JobFolder folder{join.job_folder};
  require_job_folder(join);
  if (start.apart || start.join) job::require_shared_job_folder(join.host, folder, join.token);
  refuse_old_coordinator(join);
  std::optional<job::FileLock> lock;  // an agent of this machine's launcher
  if (!start.apart && !start.join) lock = job::FileLock::share(folder.agents_lock());
  job::DetachedAgent apart;
  if (start.apart)
    apart = job::detach_agent(elastic::tree_mark(join), elastic::coordinator_mark(join), elastic::agent_log(join));
  if (apart.outcome) return *apart.outcome;
  if (start.join) {
    if (const auto outcome = job::supervise_agent(elastic::tree_mark(join), elastic::coordinator_mark(join)))
      return *outcome;
    for (const std::string& name : launcher::variables_of_starters(own_environment())) ::unsetenv(name.c_str());
  }
  watch_stop_signals();
  elastic::run_agent({.order = join,
                      .worker_command = own_command_with("--worker"),
                      .check_command = own_command_with("--check"),
                      .coordinator_command = own_command_with("--coordinator"),
                      .look_into_folder = [folder] { return look_into(folder); },
                      .on_note = [&reporter](const std::string& line) { reporter.note(line); },
                      .on_joined = apart.report_joined});
  return ExitCode::ok;
}

// What a worker prints are plain lines of its log, so the global options, such as --json, are not for it.
ExitCode run_worker_process(Reporter&) {
  Console worker_reporter{ReportOptions{}};
  return job::run_worker(worker_reporter);
}

ExitCode run_host_check(Reporter& reporter) { return job::check_host(document_from_input(), reporter); }

ExitCode run_next_coordinator(Reporter& reporter) {
  return job::take_over(elastic::coordinator_order_from_json(document_from_input()), reporter);
}

ExitCode run_submitted_command(const Path& file, Reporter&) { job::run_submitted(file); }

}  // namespace dtrain::cli
