#include <dtrain/launcher/yarn_launcher.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <list>
#include <optional>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/elastic/agent.hpp>
#include <dtrain/launcher/starter_launcher.hpp>
#include <dtrain/net/http_exchange.hpp>

#include "yarn_request.hpp"

namespace dtrain::launcher {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
constexpr auto kAnswerTime = 30s;
constexpr auto kLook = 1s;
// Time for agents to end with all of their workers, and for YARN to notice it.
constexpr auto kLastTime = 7s;
// A ResourceManager may be unavailable for this long, such as during a failover.
constexpr auto kAway = 120s;
constexpr unsigned kOwnerOnly = 0600;

class ResourceManager {
 public:
  explicit ResourceManager(const YarnLauncherOptions& options) : options_(options) {}

  std::string new_application() const {
    const Json answer = ask("POST", "apps/new-application", "", 200);
    return answer.at("application-id").as_string();
  }
  void submit(const Json& submission) const { ask("POST", "apps", submission.dump(), 202); }
  Json look_at(const std::string& application) const { return ask("GET", "apps/" + application, "", 200); }
  void kill(const std::string& application) const {
    const net::HttpAnswer answer =
        exchange("PUT", "apps/" + application + "/state", Json::object({{"state", "KILLED"}}).dump());
    if (answer.status != 200 && answer.status != 202) refuse(answer);
  }

 private:
  net::HttpAnswer exchange(const char* method, const std::string& path, std::string body) const {
    net::HttpCall request{.url = fmt::format("{}/ws/v1/cluster/{}", options_.resource_manager, path),
                          .method = method,
                          .headers = {"Content-Type: application/json", "Accept: application/json"},
                          .deadline = kAnswerTime,
                          .body = std::move(body),
                          .direct = true};
    if (!options_.user.empty()) request.url += "?user.name=" + options_.user;
    return net::exchange_http(request);
  }

  Json ask(const char* method, const std::string& path, std::string body, long wanted) const {
    const net::HttpAnswer answer = exchange(method, path, std::move(body));
    if (answer.status != wanted) refuse(answer);
    return answer.body.empty() ? Json() : Json::parse(answer.body, "the ResourceManager's answer");
  }

  // The error is {"RemoteException": {"message": ...}}, or the text of a proxy in between.
  [[noreturn]] void refuse(const net::HttpAnswer& answer) const {
    std::string why = answer.body.substr(0, 300);
    try {
      why = Json::parse(answer.body, "").at("RemoteException").at("message").as_string();
    } catch (const Error&) {
    }
    throw RemoteError(
        fmt::format("YARN's ResourceManager {} answers {}: {}", options_.resource_manager, answer.status, why));
  }

  const YarnLauncherOptions& options_;
};

// Hadoop compares the modification time, and older versions have whole seconds only.
CommandFile write_command(const Path& path, const std::string& content) {
  write_file_atomic(path, content, kOwnerOnly);
  struct stat facts {};
  ::stat(path.c_str(), &facts);
  const timespec whole[2] = {{.tv_sec = facts.st_mtim.tv_sec, .tv_nsec = 0},
                             {.tv_sec = facts.st_mtim.tv_sec, .tv_nsec = 0}};
  ::utimensat(AT_FDCWD, path.c_str(), whole, 0);
  return {path, content.size(), static_cast<std::int64_t>(facts.st_mtim.tv_sec) * 1000};
}

}  // namespace

// One thread for each application submits it and polls it until it ends; `Failed` is called on that thread. The threads
// share no state besides `mutex` and `wake`, by which the destructor ends their pauses. `threads` is used by the
// coordinator's thread alone. After a stop request a thread waits some seconds for the application to end with its
// agent, then kills it; errors of the ResourceManager are retried for a while, then reported.
struct YarnLauncher::State {
  struct Application {
    elastic::AgentOrder join;
    Failed failed;
    Path join_file, command_file;
  };

  explicit State(YarnLauncherOptions chosen) : options(std::move(chosen)), manager(options) {}

  void serve(const std::stop_token& stop, const Application& application) {
    std::string id;
    try {
      id = submit(application);
      const std::string end = watch(stop, id);
      if (!end.empty() && !stop.stop_requested()) application.failed(end);
    } catch (const std::exception& error) {  // also of std::filesystem: it concerns this host alone
      if (!stop.stop_requested()) application.failed(error.what());
      if (!id.empty()) kill_quietly(id);
    }
    std::error_code ignored;
    for (const Path& file : {application.join_file, application.command_file}) std::filesystem::remove(file, ignored);
  }

  std::string submit(const Application& application) {
    std::vector<std::string> command = program_by_path();
    command.insert(command.end(), {"agent", "--join", application.join_file.string()});
    const CommandFile file = write_command(application.command_file, command_file_content(command));
    write_file_atomic(application.join_file,
                      elastic::to_json(with_own_addresses(application.join, options.announce)).dump(), kOwnerOnly);
    const std::string id = manager.new_application();
    manager.submit(yarn_submission(id, options, file));
    return id;
  }

  // Polls until the application has ended, and returns how. After a stop request only for a while: then it is killed.
  std::string watch(const std::stop_token& stop, const std::string& id) {
    std::optional<Clock::time_point> stopped;
    Clock::time_point answered = Clock::now();
    while (true) {
      try {
        if (std::string end = yarn_end(manager.look_at(id)); !end.empty()) return end;
        answered = Clock::now();
      } catch (const RemoteError&) {
        if (Clock::now() - answered > kAway) throw;
      } catch (const DataError&) {  // "Can not find any active RM", with status 200
        if (Clock::now() - answered > kAway) throw;
      }
      if (stop.stop_requested() && !stopped) stopped = Clock::now();
      if (stopped && Clock::now() - *stopped > kLastTime) {
        kill_quietly(id);
        return "";
      }
      sleep_unless_stopped(stop, kLook);
      if (stopped) std::this_thread::sleep_for(200ms);
    }
  }

  void kill_quietly(const std::string& id) {
    try {
      manager.kill(id);
    } catch (const Error&) {  // the agent ends in any case: the coordinator is gone
    }
  }

  const YarnLauncherOptions options;
  const ResourceManager manager;
  std::list<std::jthread> threads;
};

YarnLauncher::YarnLauncher(YarnLauncherOptions options) : state_(std::make_unique<State>(std::move(options))) {}

YarnLauncher::~YarnLauncher() {
  for (std::jthread& thread : state_->threads) thread.request_stop();
}

void YarnLauncher::start(const elastic::HostLine&, const elastic::AgentOrder& join, Failed failed) {
  const Path folder = join.job_folder;
  state_->threads.emplace_back(
      [state = state_.get(),
       application = State::Application{join, std::move(failed), folder / fmt::format("join_{}.json", join.tree),
                                        folder / fmt::format("command_{}", join.tree)}](const std::stop_token& stop) {
        state->serve(stop, application);
      });
}

}  // namespace dtrain::launcher
