#include "waiting_host.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include <dtrain/base/stop.hpp>
#include <dtrain/launcher/waiting_agents.hpp>

#include "decide_enlist.hpp"
#include "job/spec/job_client.hpp"
#include "job/spec/process_facts.hpp"
#include "life_sign.hpp"
#include "waiting_name.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
using WaitClock = std::chrono::steady_clock;
using elastic::HostPhase;
using launcher::WaitingState;

constexpr auto kWaiterLook = 200ms;
constexpr auto kAskInterval = 1s;  // from one question to the coordinator to the next
constexpr std::size_t kLongestName = 253;

void check_name(const std::string& host) {
  const auto is_of_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_'; };
  if (!host.empty() && host.size() <= kLongestName && host.front() != '.' && std::ranges::all_of(host, is_of_name))
    return;
  throw UsageError(fmt::format("--name {}: not the name of a host", host),
                   "a name has letters, digits, and - . _ between them");
}

Json asked(const CoordinatorFile& file, const Json& request) {
  Json answer = Json::parse(converse(file, request.dump()), "the coordinator's answer");
  if (const Json* error = answer.find("error")) throw Error(error->dump());
  return answer;
}

Json edit(const char* what, const std::string& host) {
  return Json::object({{"ask", "edit-hosts"}, {what, Json::array({host})}, {"any_number", true}});
}

// The place of this host in the lists of the folder's coordinators. Each coordinator is asked until it has answered;
// after that the host leaves the decision to it, so a user may remove the host from the job.
class HostListing {
 public:
  HostListing(const JobFolder& folder, const std::string& host, Reporter& reporter)
      : folder_(folder), host_(host), reporter_(reporter) {}

  void look(bool has_agent) {
    const auto now = WaitClock::now();
    if (now < next_) return;
    next_ = now + kAskInterval;
    try {
      const auto file = coordinator();
      if (!file || is_settled(*file) || !enlist(*file, has_agent)) return;
      settled_ = key_of(*file);
      is_new_ = false;
    } catch (const Error& error) {  // it is being replaced, or its folder is away
      reporter_.detail(error.what());
    }
  }

  // Whether no worker of this host is in the job any more.
  bool has_left() {
    const auto now = WaitClock::now();
    if (now < next_) return false;
    next_ = now + kAskInterval;
    try {
      const auto file = coordinator();
      if (!file) return true;
      const auto phase = phase_in(asked(*file, Json::object({{"ask", "list"}})), host_);
      return !phase || phase == HostPhase::drained;
    } catch (const Error&) {
      return false;
    }
  }

  // Without an agent of this process, only a host that it asked to add, or that has no agent yet, leaves the list: the
  // agent is that of another process under this name.
  void leave_list(bool had_agent) {
    try {
      const auto file = coordinator();
      if (file && (had_agent || has_added_ || awaits_agent(*file))) asked(*file, edit("remove", host_));
    } catch (const Error& error) {  // the job is over, fixed, or has no other host
      reporter_.detail(error.what());
    }
  }

 private:
  using Key = std::tuple<std::uint64_t, std::int64_t, std::uint16_t>;
  static Key key_of(const CoordinatorFile& file) { return {file.term, file.pid, file.port}; }
  bool is_settled(const CoordinatorFile& file) const { return settled_ == key_of(file); }

  std::optional<CoordinatorFile> coordinator() const {
    if (!is_listed_or_throw(folder_.coordinator())) return std::nullopt;
    auto file = read_coordinator(folder_);
    return file && !file->over() && file->launcher == config::Launcher::folder ? std::move(file) : std::nullopt;
  }

  bool awaits_agent(const CoordinatorFile& file) const {
    const auto phase = phase_in(asked(file, Json::object({{"ask", "list"}})), host_);
    return phase == HostPhase::starting || phase == HostPhase::absent;
  }

  // False: ask again later.
  bool enlist(const CoordinatorFile& file, bool has_agent) {
    const Json list = asked(file, Json::object({{"ask", "list"}}));
    if (!list.at("elastic").as_bool()) return true;
    HostSeen seen{.has_other_hosts = list.at("hosts").as_array().size() > 1,
                  .phase = phase_in(list, host_),
                  .is_new = is_new_,
                  .has_agent = has_agent};
    if (awaits_order(seen)) ++looks_at_order_;
    seen.looks_at_order = looks_at_order_;
    const Enlist decision = decide_enlist(seen);
    if (decision == Enlist::remove_then_add) asked(file, edit("remove", host_));
    if (decision == Enlist::add || decision == Enlist::remove_then_add) {
      asked(file, edit("add", host_));
      has_added_ = true;
      reporter_.note(fmt::format("{} asks coordinator {} to join", host_, file.term));
    }
    return decision != Enlist::wait;
  }

  const JobFolder& folder_;
  const std::string& host_;
  Reporter& reporter_;
  WaitClock::time_point next_{};
  Key settled_{};
  int looks_at_order_ = 0;
  bool has_added_ = false;
  bool is_new_ = true;  // this process has settled with no coordinator yet
};

// Everything runs on one thread, except for LifeSign's.
class Waiter {
 public:
  Waiter(const JobFolder& folder, const std::string& host, Reporter& reporter)
      : files_(folder.path),
        host_(host),
        reporter_(reporter),
        listing_(folder, host, reporter),
        agents_(files_, host, [&reporter](const std::string& line) { reporter.note(line); }),
        life_(folder, host) {}
  ~Waiter() { forget_own(files_, host_); }
  Waiter(const Waiter&) = delete;

  // Throws Error if another host has the same name, and this one gives way.
  void run() {
    renew(WaitingState::waiting);
    while (stop_signals() == 0) {
      agents_.look();
      had_agent_ = had_agent_ || agents_.any();
      const WaitingState state = agents_.any() ? WaitingState::in_job : WaitingState::waiting;
      if (is_due(state) && is_written_ && !agents_.any()) give_way(files_, host_);
      listing_.look(agents_.any());
      renew_if_due(state);
      std::this_thread::sleep_for(kWaiterLook);
    }
    leave();
    renew(WaitingState::left);
    while (stop_signal() == SIGUSR1 && stop_signals() < 2) {
      renew_if_due(WaitingState::left);
      std::this_thread::sleep_for(kWaiterLook);
    }
  }

 private:
  // The notice makes the coordinator take the worker out at the next step; the last worker of a job saves first.
  void leave() {
    reporter_.note(fmt::format("{} leaves", host_));
    agents_.refuse_orders();
    agents_.send(SIGUSR1);                          // a notice: the agents may have got the same signal as this process
    int heard = is_warning(stop_signal()) ? 2 : 1;  // the SIGTERM after a warning asks for nothing new
    while (agents_.any() && !listing_.has_left()) {
      agents_.look();
      renew_if_due(WaitingState::in_job);
      if (stop_signals() > heard) {
        heard = stop_signals();
        agents_.send(SIGTERM);
      }
      std::this_thread::sleep_for(kWaiterLook);
    }
    listing_.leave_list(had_agent_);
  }

  void renew_if_due(WaitingState state) {
    life_.move();
    if (is_due(state)) renew(state);
  }

  bool is_due(WaitingState state) const {
    return state != shown_ || WaitClock::now() - renewed_ >= launcher::kRenewInterval;
  }

  void renew(WaitingState state) try {
    renewed_ = WaitClock::now();
    life_.show(state);
    is_written_ = false;
    files_.renew(own_sign(host_, state));
    shown_ = state;
    is_written_ = true;
    complained_ = false;
  } catch (const Error& error) {
    if (!std::exchange(complained_, true)) reporter_.warn(error.what());
  }

  const launcher::WaitingFolder files_;
  const std::string& host_;
  Reporter& reporter_;
  HostListing listing_;
  launcher::WaitingAgents agents_;
  LifeSign life_;
  WaitingState shown_ = WaitingState::left;
  WaitClock::time_point renewed_{};
  bool complained_ = false;
  bool is_written_ = false;  // the last renewal
  bool had_agent_ = false;
};

// What this machine shows, or else the shared folder.
std::optional<launcher::WaitingHost> find(const JobFolder& folder, const std::string& host) {
  auto waiting = life_sign_of(folder, host);
  return waiting ? waiting : launcher::WaitingFolder(folder.path).find(host);
}

launcher::WaitingHost found(const JobFolder& folder, const std::string& host) {
  if (auto waiting = find(folder, host)) return *waiting;
  throw Error(fmt::format("{}: {} does not wait there", folder.path.string(), host),
              fmt::format("start it with `{}`", folder.command("hosts join")));
}

}  // namespace

ExitCode wait_in_folder(const JobFolder& folder, const std::string& host, Reporter& reporter) {
  check_name(host);
  watch_stop_signals(kEverySignal);
  watch_stop_signal(SIGUSR1);
  make_folder(folder.path);
  await_free_name(launcher::WaitingFolder(folder.path), host);
  if (stop_signals() > 0) return ExitCode::ok;
  reporter.note(fmt::format("{} waits in {} for a job", host, folder.path.string()));
  Waiter(folder, host, reporter).run();
  return ExitCode::ok;
}

void leave_folder(const JobFolder& folder, const std::string& host, std::chrono::duration<double> limit) {
  const launcher::WaitingHost waiting = found(folder, host);
  if (!is_here(waiting)) {
    throw Error(fmt::format("{} is not on this machine, or its process {} is gone", host, waiting.pid),
                "run the command on the host itself");
  }
  if (waiting.state == WaitingState::left) return;
  if (::kill(static_cast<pid_t>(waiting.pid), SIGUSR1) != 0 && errno == EPERM) {
    throw Error(fmt::format("{}: its process {} is another user's", host, waiting.pid), "run the command as that user");
  }
  const auto until = WaitClock::now() + limit;
  while (is_here(waiting)) {
    const auto now = find(folder, host);
    if (!now || now->state == WaitingState::left) break;
    if (WaitClock::now() > until) {
      throw Error(fmt::format("{} has not left within {:.0f} s", host, limit.count()),
                  "it leaves at the next step; --limit S waits longer");
    }
    std::this_thread::sleep_for(kWaiterLook);
  }
}

void probe_host(const JobFolder& folder, const std::string& host, HostProbe probe) {
  const launcher::WaitingHost waiting = found(folder, host);
  const std::int64_t silence = seconds_since_1970() - waiting.time;
  if (silence > kSilence.count())
    throw Error(fmt::format("{} has shown no life for {} s", host, silence), "end its process, and start it again");
  if (probe == HostProbe::ready && waiting.state != WaitingState::in_job) {
    throw Error(fmt::format("{} is in no job: it is {}", host, enum_name(launcher::kWaitingStateNames, waiting.state)));
  }
}

}  // namespace dtrain::job
