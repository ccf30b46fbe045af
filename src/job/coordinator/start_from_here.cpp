#include "start_from_here.hpp"

#include <fmt/format.h>

#include <chrono>
#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/base/own_files.hpp>
#include <dtrain/elastic/agent.hpp>
#include <dtrain/elastic/host_file.hpp>

#include "job/spec/job_client.hpp"
#include "job/spec/job_launcher.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
// Deadline of a trial login from this machine.
constexpr auto kTryDeadline = 5s;

bool can_log_in(const elastic::HostLine& host, launcher::SshLauncherOptions options, Reporter& reporter) {
  options.ssh.connect_deadline = kTryDeadline;
  try {
    net::SshSession::connect({host.host, host.user, host.port}, options.ssh);
    return true;
  } catch (const RemoteError& error) {
    reporter.detail(fmt::format("{}; the coordinator starts it", error.what()));
    return false;
  }
}

// The present coordinator, which may have taken over: it uses the same job folder. nullopt: agents are not started over
// ssh, or another user could choose by that file what this user's keys start.
std::optional<CoordinatorFile> coordinator_over_ssh(const JobFolder& folder, Reporter& reporter) try {
  auto file = read_own_coordinator(folder);
  return file && !file->over() && file->launcher == config::Launcher::ssh ? std::move(file) : std::nullopt;
} catch (const ForeignFile& error) {
  reporter.note(fmt::format("The coordinator starts the host, and not this machine: {}", error.what()));
  return std::nullopt;
}

bool has_its_files(const elastic::HostLine& host, const CoordinatorFile& file, const JobFolder& folder,
                   Reporter& reporter) {
  if (is_here(file.sync, file, folder)) return true;
  reporter.note(
      fmt::format("The coordinator starts {0}: only {1} has {2}, of which each host gets a copy. If it has no key for "
                  "{0}, run this on {1}.",
                  host.name, file.host, file.sync.from.string()));
  return false;
}

}  // namespace

bool add_and_start(const JobFolder& folder, const std::string& line, Reporter& reporter) {
  const auto file = coordinator_over_ssh(folder, reporter);
  if (!file) return false;
  const elastic::HostList list = elastic::parse_host_file(line + "\n");
  if (list.hosts.size() != 1) return false;
  const elastic::HostLine& host = list.hosts.front();
  launcher::SshLauncherOptions options =
      ssh_launcher_options({}, folder, [&reporter](const std::string& note) { reporter.note(note); });
  take_along(file->sync, folder, options);
  if (!can_log_in(host, options, reporter) || !has_its_files(host, *file, folder, reporter)) return false;
  const Json answer = ask_own_coordinator(
      folder, Json::object({{"ask", "edit-hosts"}, {"add", Json::array({line})}, {"start", host.name}}));
  warn_of_host_file(folder, problems_in(answer), reporter);
  const Json* join = answer.find("join");
  if (!join) return true;  // no worker is needed there now
  try {
    launcher::start_agent_over_ssh(host, elastic::agent_order_from_json(*join), options);
  } catch (const Error& error) {
    const elastic::StartFailure failure = launcher::start_failure(host.name, error);
    reporter.warn(fmt::format("{} could not be started from here: {}", host.name, failure.reason));
    ask_coordinator(folder, Json::object({{"ask", "start-failed"},
                                          {"start", host.name},
                                          {"reason", failure.reason},
                                          {"forget_key", failure.forget_key}}));
  }
  return true;
}

}  // namespace dtrain::job
