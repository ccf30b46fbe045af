#include "job_client.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string.h>

#include <future>
#include <thread>
#include <utility>

#include <dtrain/base/error_json.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/with_flags.hpp>
#include <dtrain/net/channel.hpp>
#include <dtrain/net/loop_thread.hpp>

#include "process_facts.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
constexpr auto kConnectDeadline = 3s, kAnswerDeadline = 20s;
// Time for another coordinator to take over from a lost one.
constexpr auto kTakeoverPatience = 15s;
constexpr auto kBetweenTries = 300ms;
// A coordinator that was held up itself hears of its agents again within this.
constexpr auto kQuorumPatience = 5s;

class NotReached : public RemoteError {
 public:
  using RemoteError::RemoteError;
};
// The coordinator itself does not reach enough agents.
class NoQuorum : public RemoteError {
 public:
  using RemoteError::RemoteError;
};

using ReadCoordinator = std::optional<CoordinatorFile> (*)(const JobFolder&);

CoordinatorFile running_coordinator(const JobFolder& folder, ReadCoordinator read) {
  const auto file = read(folder);
  const std::string where = folder.path.string();
  if (!file) {
    throw UsageError(fmt::format("{}: no job in this folder", where),
                     "give --job-dir the folder that was given to `dtrain train --job-dir`");
  }
  if (file->over()) {
    throw Error(fmt::format("{}: the job has already ended: {}", where, file->ended),
                fmt::format("`{}` shows what happened", folder.command("events")));
  }
  return *file;
}

// Connects through the first address that works.
std::shared_ptr<net::Channel> connect(net::Loop& loop, const CoordinatorFile& file) {
  std::string reasons;
  for (const std::string& address : file.addresses) {
    try {
      return net::connect_channel(loop, address, file.port, file.token, kConnectDeadline);
    } catch (const RemoteError& error) {
      reasons += (reasons.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  throw NotReached(reasons.empty() ? "it has no address" : reasons);
}

}  // namespace

std::string stop_reason(int signal) { return fmt::format("stopped by SIG{}", ::sigabbrev_np(signal)); }

std::string converse(const CoordinatorFile& file, const std::string& request) {
  std::promise<std::string> promise;
  std::future<std::string> answer = promise.get_future();
  bool done = false;  // outlives the thread that calls back, like the promise
  net::LoopThread thread;
  const auto channel = connect(thread.loop(), file);
  channel->listen({.on_frame =
                       [&](std::string frame) {
                         if (!std::exchange(done, true)) promise.set_value(std::move(frame));
                       },
                   .on_close =
                       [&](const std::string& reason) {
                         if (std::exchange(done, true)) return;
                         promise.set_exception(std::make_exception_ptr(RemoteError("it hung up: " + reason)));
                       }});
  channel->send(request);
  if (answer.wait_for(kAnswerDeadline) != std::future_status::ready) throw RemoteError("it does not answer");
  return answer.get();
}

namespace {

std::string name_of(const JobFolder& folder, const CoordinatorFile& file) {
  return fmt::format("the coordinator of {}, process {} on {}", folder.path.string(), file.pid, file.host);
}

[[noreturn]] void throw_not_reached(const JobFolder& folder, const CoordinatorFile& file, const NotReached& error) {
  if (file.host != host_name() || is_coordinated(folder)) {
    throw RemoteError(fmt::format("{}: {}", name_of(folder, file), error.what()), "try again, or from another machine");
  }
  if (has_agents_of_unfinished_job(folder)) {
    const Error why = without_coordinator(folder.path.string(), folder);
    throw RemoteError(why.what(), why.hint());
  }
  throw RemoteError(fmt::format("{}: the coordinator (process {}) ended without recording the job's end",
                                folder.path.string(), file.pid),
                    how_to_go_on(file));
}

Json ask(const JobFolder& folder, const CoordinatorFile& file, const Json& request) {
  const std::string source = name_of(folder, file);
  Json answer;
  try {
    answer = Json::parse(converse(file, request.dump()), source);
  } catch (const NotReached&) {
    throw;
  } catch (const RemoteError& error) {
    throw RemoteError(fmt::format("{}: {}", source, error.what()), "try again; `dtrain stop --now` ends the job");
  }
  const Json* error = answer.find("error");
  if (!error) return answer;
  try {
    throw_error(*error);
  } catch (const RemoteError& refused) {
    throw NoQuorum(refused.what(), refused.hint());
  }
}

Json ask_until_answered(const JobFolder& folder, const Json& request, ReadCoordinator read) {
  const auto begin = std::chrono::steady_clock::now(), end = begin + kTakeoverPatience;
  for (;;) {
    const CoordinatorFile file = running_coordinator(folder, read);
    try {
      return ask(folder, file, request);
    } catch (const NoQuorum&) {
      if (std::chrono::steady_clock::now() > begin + kQuorumPatience) throw;
      std::this_thread::sleep_for(kBetweenTries);
    } catch (const NotReached& error) {
      if (!may_have_successor(folder, file) || std::chrono::steady_clock::now() > end)
        throw_not_reached(folder, file, error);
      std::this_thread::sleep_for(kBetweenTries);
    }
  }
}

}  // namespace

Json ask_coordinator(const JobFolder& folder, const Json& request) {
  return ask_until_answered(folder, request, read_coordinator);
}

Json ask_own_coordinator(const JobFolder& folder, const Json& request) {
  return ask_until_answered(folder, request, read_own_coordinator);
}

void ask_to_stop(const JobFolder& folder, const std::string& reason, bool at_once) {
  ask_coordinator(folder, Json::object({{"ask", "stop"}, {"now", at_once}, {"reason", reason}}));
}

std::string how_to_go_on(const CoordinatorFile& lost) {
  return lost.runs_program ? "run the same command again; the program finds its own checkpoint"
                           : "repeat the job's command with --resume";
}

static bool runs_program(const JobFolder& folder) try {
  const auto file = read_coordinator(folder);
  return file && file->runs_program;
} catch (const Error&) {  // damaged, or the folder is away
  return false;
}

Error without_coordinator(const std::string& where, const JobFolder& folder) {
  const std::vector<std::int64_t> agents = agents_of(folder);
  const std::string way =
      agents.empty()
          ? "they end by themselves after --hold-timeout"
          : fmt::format("`kill -HUP {}` ends them and their workers, without a checkpoint", fmt::join(agents, " "));
  const char* const then = runs_program(folder) ? "the same command starts the program again, which finds its own "
                                                  "checkpoint"
                                                : "--resume goes on from the last checkpoint";
  return Error(fmt::format("{}: its agents still run and have no coordinator", where),
               fmt::format("wait until they have chosen one; or {}, and {}", way, then));
}

bool has_living_job(const JobFolder& folder) {
  const auto end = std::chrono::steady_clock::now() + kTakeoverPatience;
  for (;;) {
    const auto file = read_coordinator(folder);
    if (!file || file->over() || !file->survives) return false;
    if (answers(*file)) return true;
    if (!may_have_successor(folder, *file)) return false;
    if (std::chrono::steady_clock::now() > end) return has_agents_of_unfinished_job(folder);
    std::this_thread::sleep_for(kBetweenTries);
  }
}

void await_saving_agents(const JobFolder& folder, Reporter& reporter) {
  const auto file = read_coordinator(folder);
  if (!file || file->survives || file->over()) return;
  for (bool is_told = false; has_agents(folder);) {
    if (!std::exchange(is_told, true)) {
      reporter.note(
          fmt::format("{}: waits until the workers of the job whose coordinator was lost have saved and ended",
                      folder.path.string()));
    }
    if (!pause_unless_stopped(kBetweenTries)) throw Interrupted(stop_signal(), "stopped before the job began");
  }
}

// The coordinator's advice names no folder, because each user may call it otherwise.
static std::string with_folder(const std::string& advice, const JobFolder& folder) {
  constexpr std::string_view kProgram = "dtrain ";
  const std::string text = with_flags(advice);
  const bool is_command = text.starts_with(kProgram) && folder.path != ".";
  return is_command ? folder.command(std::string_view(text).substr(kProgram.size())) : text;
}

Json list_for_user(Json list, const JobFolder& folder) {
  Json hosts = Json::array();
  for (Json host : list.at("hosts").as_array()) {
    const std::string reason = with_flags(host.find_text("reason"));
    if (!reason.empty()) host["reason"] = reason;
    const std::string next = with_folder(host.find_text("next"), folder), forget = host.find_text("forget_key");
    const std::string both = fmt::format("{}{}{}", forget, forget.empty() || next.empty() ? "" : "; or ", next);
    if (!both.empty()) host["next"] = both;
    hosts.push_back(std::move(host));
  }
  list["hosts"] = std::move(hosts);
  if (const std::string text = list.find_text("state_reason"); !text.empty()) list["state_reason"] = with_flags(text);
  return list;
}

std::optional<elastic::HostPhase> phase_in(const Json& list, const std::string& host) {
  for (const Json& row : list.at("hosts").as_array()) {
    if (row.at("name").as_string() != host) continue;
    const std::string& state = row.at("state").as_string();
    if (const auto phase = enum_value(elastic::kHostPhaseNames, state)) return phase;
    throw DataError(fmt::format("the coordinator's list of hosts: {} has the unknown state \"{}\"", host, state),
                    "use the same version of dtrain on all hosts of the job");
  }
  return std::nullopt;
}

// The coordinator may be on another machine, where a lock has no effect.
void refuse_living_job(const JobFolder& folder) {
  if (!has_living_job(folder)) return;
  const auto file = read_coordinator(folder);
  if (file && !answers(*file) && has_agents_of_unfinished_job(folder))
    throw without_coordinator(folder.path.string(), folder);
  throw job_runs_there(folder, file);
}

bool answers(const CoordinatorFile& file) {
  if (file.over()) return false;
  try {
    net::LoopThread thread;
    connect(thread.loop(), file);
    return true;
  } catch (const RemoteError&) {
    return false;
  }
}

std::vector<std::string> edit_hosts(const JobFolder& folder, const HostEdit& edit) {
  return problems_in(ask_coordinator(folder, Json::object({{"ask", "edit-hosts"},
                                                           {"add", json_texts(edit.add)},
                                                           {"remove", json_texts(edit.remove)},
                                                           {"any_number", edit.any_number},
                                                           {"keep_enough", edit.keep_enough}})));
}

std::vector<std::string> problems_in(const Json& answer) {
  std::vector<std::string> problems;
  if (const Json* found = answer.find("problems")) {
    for (const Json& problem : found->as_array()) problems.push_back(problem.as_string());
  }
  return problems;
}

void warn_of_host_file(const JobFolder& folder, const std::vector<std::string>& problems, Reporter& reporter) {
  for (const std::string& problem : problems) reporter.warn(fmt::format("{}: {}", folder.hosts().string(), problem));
}

}  // namespace dtrain::job
