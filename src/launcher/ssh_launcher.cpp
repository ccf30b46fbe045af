#include <dtrain/launcher/ssh_launcher.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <stop_token>
#include <thread>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/base/with_hint.hpp>
#include <dtrain/elastic/agent.hpp>
#include <dtrain/launcher/program_copy.hpp>
#include <dtrain/launcher/sync.hpp>
#include <dtrain/net/addresses.hpp>

#include "agent_errors.hpp"

namespace dtrain::launcher {
namespace {

constexpr std::size_t kMostSaid = 4 << 10;  // bytes kept of an agent's output before it joined
constexpr std::size_t kMostShown = 10;

std::string end_of(const net::SshExit& exit, std::chrono::milliseconds deadline) {
  if (exit.timed_out) return fmt::format("did not join within {} s", deadline.count() / 1000);
  if (!exit.signal.empty()) return fmt::format("was killed by SIG{}", exit.signal);
  return fmt::format("ended with {}", exit.code);
}

void run_agent_on(net::SshSession& session, std::vector<std::string> command, const elastic::AgentOrder& join,
                  const SshLauncherOptions& options) {
  command.insert(command.end(), {"agent", "--apart"});
  std::string said;
  net::SshCommand start{.argv = std::move(command), .input = elastic::to_json(join).dump()};
  start.deadline = options.join_deadline;
  start.on_error = [&said](std::string_view text) {
    said += text.substr(0, kMostSaid - std::min(said.size(), kMostSaid));
  };
  const net::SshExit exit = session.run(start);
  if (exit.ok()) return;
  const std::string words = agent_errors(said);
  throw RemoteError(fmt::format("{}: its agent {}{}{}", session.name(), end_of(exit, options.join_deadline),
                                words.empty() ? "" : ": ", words));
}

void fill_address(elastic::AgentOrder& join, const net::SshSession& session, const SshLauncherOptions& options) {
  if (join.address != net::kAnyAddress) return;
  join.address = options.announce;
  if (!join.address.empty()) return;
  join.address = session.local_address();
  join.more_addresses = net::own_addresses();
  // Some programs that `dtrain launch` runs know only IPv4, and ssh may have come by IPv6.
  if (!net::is_ipv4(join.address) && !join.more_addresses.empty()) join.address = join.more_addresses.front();
  std::erase(join.more_addresses, join.address);
}

// The files that all hosts get besides the program. Members may be called from any thread.
class SharedFiles {
 public:
  explicit SharedFiles(const SshLauncherOptions& options)
      : options_(options), source_(options.copy_from, options.not_copied) {}

  // Those that were there after `asked`.
  void bring(const elastic::HostLine& host, net::SshSession& session, SyncSource::Clock::time_point asked) {
    if (options_.copy_from.empty()) return;
    const std::shared_ptr<const SyncTree> tree = source_.tree_since(asked, options_.ssh.stop);
    note_skipped(*tree);
    note_changed(*tree, host.name);
    const SyncResult result = sync_tree(*tree, session, options_.copy_to);
    if (const std::string kept = refused_modes_text(result); !kept.empty()) {
      note(fmt::format("{}:{}: {}", host.name, options_.copy_to, kept));
    }
    if (result.copied == 0) return;
    note(fmt::format("Copied {} of {} files to {}:{}", result.copied, result.files, host.name, options_.copy_to));
  }

 private:
  void note(const std::string& line) const {
    if (options_.on_note) options_.on_note(line);
  }

  void note_skipped(const SyncTree& tree) {
    std::vector<std::string> skipped;
    {
      const MutexLock lock(mutex_);
      for (const std::string& each : tree.skipped) {
        if (noted_.insert(each).second) skipped.push_back(each);
      }
    }
    if (!skipped.empty()) note("Not copied to hosts: " + listed(std::move(skipped)));
  }

  // Earlier hosts keep what they got, and ranks of two versions of a program give wrong results without a word.
  void note_changed(const SyncTree& tree, const std::string& host) {
    std::vector<std::string> changed;
    {
      const MutexLock lock(mutex_);
      for (const SyncFile& file : tree.files) {
        const std::string& first = first_.try_emplace(file.name, file.sha256).first->second;
        if (first != file.sha256 && changed_.insert(file.name + file.sha256).second) changed.push_back(file.name);
      }
    }
    if (changed.empty()) return;
    note(fmt::format("{} gets files that changed since the first hosts got theirs: {}", host,
                     listed(std::move(changed))));
  }

  static std::string listed(std::vector<std::string> names) {
    const std::size_t shown = std::min(names.size(), kMostShown), more = names.size() - shown;
    names.resize(shown);
    return fmt::format("{}{}", fmt::join(names, "; "), more > 0 ? fmt::format("; and {} more", more) : "");
  }

  const SshLauncherOptions& options_;
  SyncSource source_;
  Mutex mutex_;
  std::set<std::string> noted_ DTRAIN_GUARDED_BY(mutex_), changed_ DTRAIN_GUARDED_BY(mutex_);  // each is noted once
  std::map<std::string, std::string> first_ DTRAIN_GUARDED_BY(mutex_);  // SHA-256 by name, as first seen
};

void start_one(const elastic::HostLine& host, elastic::AgentOrder join, const SshLauncherOptions& options,
               ProgramCopy& program, SharedFiles& files, SyncSource::Clock::time_point asked) {
  const auto note = [&](const std::string& line) {
    if (options.on_note) options.on_note(line);
  };
  const auto begin = std::chrono::steady_clock::now();
  net::SshSession session = net::SshSession::connect({host.host, host.user, host.port}, options.ssh);
  fill_address(join, session, options);
  ProgramCopy::Ready ready{.command = program.same_path()};
  if (options.sync_binary) ready = program.make_ready(session);
  if (ready.copied > 0) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    note(fmt::format("Copied dtrain to {}: {} MB in {:.1f} s", host.name, ready.copied >> 20, took.count()));
  }
  files.bring(host, session, asked);
  run_agent_on(session, std::move(ready.command), join, options);
}

}  // namespace

elastic::StartFailure start_failure(const std::string& host, const Error& error) {
  std::string_view what = error.what();
  // The caller shows the name of the host.
  if (what.starts_with(host + ": ")) what.remove_prefix(host.size() + 2);
  const auto* changed = dynamic_cast<const net::SshHostKeyChanged*>(&error);
  return {with_hint(std::string(what), error.hint()), changed ? changed->forget_command() : ""};
}

void start_agent_over_ssh(const elastic::HostLine& host, const elastic::AgentOrder& join,
                          const SshLauncherOptions& options) {
  ProgramCopy program;
  SharedFiles files(options);
  start_one(host, join, options, program, files, SyncSource::Clock::now());
}

// A pool of at most `parallel` threads serves the starts. Threads are made when all others are busy, and stay until the
// launcher ends. `mutex` guards the queue and the threads; it is not held while a start runs. A start that fails calls
// `Failed` on the thread of the pool. The destructor requests a stop, which aborts ssh calls within about a second;
// stopped starts call nothing. `threads` is the last member, so all of them end before the rest is destroyed.
struct SshLauncher::State {
  struct Start {
    elastic::HostLine host;
    elastic::AgentOrder join;
    Failed failed;
    SyncSource::Clock::time_point asked = SyncSource::Clock::now();
  };

  explicit State(SshLauncherOptions chosen) : options(std::move(chosen)) { options.ssh.stop = stop.get_token(); }
  ~State() {
    stop.request_stop();
    for (std::jthread& thread : threads) thread.request_stop();
  }

  void add(Start start) {
    const MutexLock lock(mutex);
    waiting.push_back(std::move(start));
    if (waiting.size() > idle && threads.size() < static_cast<std::size_t>(options.parallel)) {
      threads.emplace_back([this](const std::stop_token& token) { work(token); });
    }
    wake.notify_one();
  }

  void work(const std::stop_token& token) {
    MutexLock lock(mutex);
    while (!token.stop_requested()) {
      ++idle;
      wake.wait(mutex, token, [this]() DTRAIN_REQUIRES(mutex) { return !waiting.empty(); });
      --idle;
      if (token.stop_requested()) return;
      const Start start = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      serve(start);
      lock.lock();
    }
  }

  void serve(const Start& start) {
    try {
      start_one(start.host, start.join, options, program, files, start.asked);
    } catch (const Stopped&) {  // the launcher ends: nothing to report
    } catch (const Error& error) {
      start.failed(start_failure(start.host.name, error));
    } catch (const std::exception& error) {  // such as of std::filesystem: it concerns this host alone
      start.failed(error.what());
    }
  }

  SshLauncherOptions options;
  ProgramCopy program;
  SharedFiles files{options};
  std::stop_source stop;
  Mutex mutex;
  StoppableCondVar wake;
  std::deque<Start> waiting DTRAIN_GUARDED_BY(mutex);
  std::size_t idle DTRAIN_GUARDED_BY(mutex) = 0;               // threads that wait for a start
  std::vector<std::jthread> threads DTRAIN_GUARDED_BY(mutex);  // last: joined before the other members are destroyed
};

SshLauncher::SshLauncher(SshLauncherOptions options) : state_(std::make_unique<State>(std::move(options))) {}
SshLauncher::~SshLauncher() = default;

void SshLauncher::start(const elastic::HostLine& host, const elastic::AgentOrder& join, Failed failed) {
  state_->add({host, join, std::move(failed)});
}

}  // namespace dtrain::launcher
