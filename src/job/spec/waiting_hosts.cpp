#include "waiting_hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include <dtrain/base/file_exists.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/launcher/waiting_folder.hpp>

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
using AwaitClock = std::chrono::steady_clock;
constexpr auto kLookForHosts = 300ms;
constexpr auto kAbsence = 5 * launcher::kRenewInterval;
// A job that goes on waits so long for one host more.
constexpr auto kPatienceForMore = 20s;

// The hosts whose files were renewed lately. Clocks of hosts differ, so only a change counts, and only as seen here.
class PresentHosts {
 public:
  void look(const launcher::WaitingFolder& folder) {
    const auto now = AwaitClock::now();
    for (const launcher::WaitingHost& host : folder.hosts()) {
      if (host.state == launcher::WaitingState::left) {
        seen_.erase(host.name);
        continue;
      }
      const auto [entry, is_new] = seen_.try_emplace(host.name, Seen{host.time, {}});
      if (!is_new && entry->second.time != host.time) entry->second = {host.time, now};
    }
    std::erase_if(seen_, [&](const auto& entry) {
      return entry.second.renewed != AwaitClock::time_point{} && now - entry.second.renewed > kAbsence;
    });
  }

  // h2 before h10.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, seen] : seen_) {
      if (seen.renewed != AwaitClock::time_point{}) names.push_back(name);
    }
    std::ranges::stable_sort(names, {}, &std::string::size);
    return names;
  }

 private:
  struct Seen {
    std::int64_t time = 0;
    AwaitClock::time_point renewed;  // zero: not yet
  };
  std::map<std::string, Seen> seen_;
};

StartingHosts hosts_of(const std::vector<std::string>& names, int slots) {
  StartingHosts hosts;
  for (const std::string& name : names) hosts.text += name + '\n';
  hosts.list = elastic::parse_host_file(hosts.text);
  if (slots > 1) give_slots(hosts, slots);
  return hosts;
}

}  // namespace

StartingHosts await_hosts(const config::JobOptions& options, bool resume, Reporter& reporter) {
  const JobFolder folder{options.folder};
  const launcher::WaitingFolder waiting(folder.path);
  const auto wanted = static_cast<std::size_t>(options.hosts);
  const bool goes_on = options.elastic && resume && file_exists(folder.hosts());
  const std::size_t enough = goes_on ? std::min(wanted, static_cast<std::size_t>(options.min_workers)) : wanted;
  PresentHosts present;
  std::size_t said = wanted + 1;
  AwaitClock::time_point changed = AwaitClock::now();
  for (;; std::this_thread::sleep_for(kLookForHosts)) {
    if (stop_signal() != 0) {
      throw Interrupted(stop_signal(), fmt::format("stopped while {} of {} hosts waited in {}", present.names().size(),
                                                   wanted, folder.path.string()));
    }
    present.look(waiting);
    std::vector<std::string> names = present.names();
    if (names.size() > wanted) names.resize(wanted);
    if (names.size() != said) {
      said = names.size();
      changed = AwaitClock::now();
      reporter.note(fmt::format("{} of {} hosts wait in {}", said, wanted, folder.path.string()));
    }
    if (said == wanted || (said >= enough && AwaitClock::now() - changed > kPatienceForMore))
      return hosts_of(names, options.slots);
  }
}

}  // namespace dtrain::job
