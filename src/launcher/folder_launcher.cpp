#include <dtrain/launcher/folder_launcher.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/launcher/starter_launcher.hpp>
#include <dtrain/launcher/waiting_folder.hpp>

namespace dtrain::launcher {
namespace {

using namespace std::chrono_literals;
using FolderClock = std::chrono::steady_clock;
constexpr auto kListInterval = 300ms;

}  // namespace

// One thread lists the folder and looks at all orders; start() adds to `given` under `mutex`. The thread takes the list
// out while it works, so that no lock is held during callbacks, and puts it back. `Failed` is called on that thread.
// The destructor joins it first. An order whose agent runs stays in the list: the host reports the agent's end.
struct FolderLauncher::State {
  struct Given {
    std::string host;
    Path file;
    FolderClock::time_point begun;
    Failed failed;
    bool taken = false;
  };

  explicit State(FolderLauncherOptions chosen) : options(std::move(chosen)), folder(options.job_folder) {}

  void work(const std::stop_token& stop) {
    for (; !stop.stop_requested(); sleep_unless_stopped(stop, kListInterval)) {
      std::vector<Given> orders = take_all();
      look_at(orders);
      const MutexLock lock(mutex);
      std::ranges::move(orders, std::back_inserter(given));
    }
  }

  std::vector<Given> take_all() {
    const MutexLock lock(mutex);
    return std::exchange(given, {});
  }

  void look_at(std::vector<Given>& orders) const {
    if (orders.empty()) return;
    const std::vector<std::string> names = folder.listing();
    if (names.empty()) return;  // the folder is away
    const std::set<std::string> listed(names.begin(), names.end());
    std::erase_if(orders, [&](Given& order) { return is_done(order, listed); });
  }

  bool is_done(Given& order, const std::set<std::string>& listed) const {
    const Path end = WaitingFolder::end_of(order.file);
    if (listed.contains(end.filename().string())) {
      const std::string reason = read_quietly(end);
      remove_quietly(end);
      remove_quietly(order.file);  // where its agent could not start, it still lies there
      order.failed(reason);
      return true;
    }
    order.taken = order.taken || !listed.contains(order.file.filename().string());
    if (order.taken || FolderClock::now() - order.begun < options.take_deadline) return false;
    remove_quietly(order.file);
    order.failed(fmt::format("{} did not take its order within {} s: no `dtrain hosts join` waits there", order.host,
                             std::chrono::duration_cast<std::chrono::seconds>(options.take_deadline).count()));
    return true;
  }

  static std::string read_quietly(const Path& file) {
    try {
      return read_file(file);
    } catch (const Error&) {
      return "its agent ended";
    }
  }

  static void remove_quietly(const Path& file) {
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
  }

  const FolderLauncherOptions options;
  const WaitingFolder folder;
  Mutex mutex;
  std::vector<Given> given DTRAIN_GUARDED_BY(mutex);
  std::jthread thread;
};

FolderLauncher::FolderLauncher(FolderLauncherOptions options) : state_(std::make_unique<State>(std::move(options))) {
  state_->thread = std::jthread([state = state_.get()](const std::stop_token& stop) { state->work(stop); });
}

FolderLauncher::~FolderLauncher() {
  state_->thread = {};
  for (const State::Given& order : state_->take_all()) State::remove_quietly(order.file);
}

void FolderLauncher::start(const elastic::HostLine& host, const elastic::AgentOrder& join, Failed failed) {
  try {
    const Path file = state_->folder.give(host.name, with_own_addresses(join, state_->options.announce));
    const MutexLock lock(state_->mutex);
    state_->given.push_back({host.name, file, FolderClock::now(), std::move(failed)});
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    throw RemoteError(fmt::format("its agent gets no order: {}", error.what()), error.hint());
  }
}

}  // namespace dtrain::launcher
