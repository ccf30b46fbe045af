#include "waiting_name.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <limits>
#include <thread>
#include <tuple>

#include <dtrain/base/error.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/stop.hpp>

#include "life_sign.hpp"

namespace dtrain::job {
namespace {

using launcher::WaitingHost;
using launcher::WaitingState;
using NameClock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kNameLook{200};

bool is_of_this_machine(const WaitingHost& shown) { return shown.process.starts_with(process_namespace() + " "); }

std::string place_of(const WaitingHost& shown) {
  if (is_of_this_machine(shown)) return "";
  if (shown.machine.empty()) return " of another machine";
  if (shown.machine == host_name()) return fmt::format(" of another machine, which is called {} too", shown.machine);
  return fmt::format(" of the machine {}", shown.machine);
}

Error name_is_used(const WaitingHost& shown) {
  return Error(fmt::format("{} waits in this folder already, as process {}{}", shown.name, shown.pid, place_of(shown)),
               "give this host another name with --name");
}

}  // namespace

bool is_here(const WaitingHost& shown) {
  return shown.pid > 0 && shown.pid <= std::numeric_limits<pid_t>::max() && !shown.process.empty() &&
         process_identity(shown.pid) == shown.process;
}

bool is_own(const WaitingHost& shown) {
  return shown.pid == ::getpid() && shown.process == process_identity(::getpid());
}

void await_free_name(const launcher::WaitingFolder& files, const std::string& host, std::chrono::milliseconds watch) {
  const auto first = files.find(host);
  if (!first || is_own(*first)) return;
  if (is_here(*first)) throw name_is_used(*first);  // also where it stands still: it may go on at any time
  if (is_of_this_machine(*first)) return;           // it has ended
  for (const auto until = NameClock::now() + watch; NameClock::now() < until && stop_signals() == 0;) {
    std::this_thread::sleep_for(kNameLook);
    const auto now = files.find(host);
    if (!now) return;  // it has left
    if (now->time != first->time || now->process != first->process) throw name_is_used(*now);
  }
}

void give_way(const launcher::WaitingFolder& files, const std::string& host) {
  const auto shown = files.find(host);
  if (!shown || is_own(*shown) || shown->state == WaitingState::left) return;
  const WaitingHost own = own_sign(host, WaitingState::waiting);
  const bool is_first = std::tie(shown->process, shown->pid) < std::tie(own.process, own.pid);
  if (shown->state == WaitingState::in_job || is_first) throw name_is_used(*shown);
}

void forget_own(const launcher::WaitingFolder& files, const std::string& host) {
  if (const auto shown = files.find(host); !shown || is_own(*shown)) files.forget(host);
}

}  // namespace dtrain::job
