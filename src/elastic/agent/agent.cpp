#include <dtrain/elastic/agent.hpp>

#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/channel.hpp>

#include "wire.hpp"
#include "worker_process.hpp"

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;
constexpr auto kTick = 100ms;
// The coordinator answers a join at once, or is not worth waiting for.
constexpr auto kWelcomeDeadline = 10s;
// For the last frames to reach the coordinator, and for processes that the kernel is slow to end.
constexpr auto kLastTime = 3s;
// A worker's message grows on its way to the coordinator.
constexpr std::size_t kLongestMessage = net::kMaxFrame - 64;
// Output is thrown away, not queued, when the coordinator is behind: the log file has it all.
constexpr std::size_t kMaxBehind = 4 << 20;

int slot_of(const std::string& text) {
  const auto slot = parse_integer(text);
  if (!slot || *slot < 0 || *slot > 1'000'000) throw DataError(fmt::format("'{}' is no slot", text));
  return static_cast<int>(*slot);
}

class Agent {
 public:
  explicit Agent(const AgentOptions& options) : options_(options) {}

  void run() {
    adopt_orphans();
    catch_stop_signals();
    const AgentJoin& join = options_.join;
    channel_ = net::connect_channel(loop_, join.address, join.port, join.token, options_.connect_deadline);
    channel_->listen({.on_frame = [this](std::string frame) { hear(std::move(frame)); },
                      .on_close = [this](const std::string& reason) { coordinator_gone(reason); }});
    tell(Tag::join, 0, to_json(Joined{join.host, join.tree}).dump());
    loop_.after(kWelcomeDeadline, [this] {
      if (!welcome_) end("the coordinator did not answer");
    });
    tick();
    loop_.run();
    if (!welcome_) throw RemoteError(fmt::format("{}: cannot join the job: {}", join.host, end_reason_));
  }

 private:
  void tell(Tag tag, WorkerId worker, std::string_view body) { channel_->send(encode(tag, worker, body)); }

  // Blocked for good, and read from a descriptor: they may come more than once, as the signal of a parent's death does
  // for each of its threads, and none may cut the end short.
  void catch_stop_signals() {
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals, signal);
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    stop_signals_ = FileDescriptor(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    loop_.when_readable(stop_signals_.get(), [this] {
      end("a stop signal");
      return false;
    });
  }

  void tick() {
    if (stop_signal() != 0) end("a stop signal");  // one that came before they were blocked
    reap_what_was_adopted();
    loop_.after(kTick, [this] { tick(); });
  }

  void reap_what_was_adopted() {
    std::vector<pid_t> known;
    for (const auto& [id, worker] : workers_) known.push_back(worker->id());
    while (reap_adopted(known) > 0) {
    }
  }

  void hear(std::string bytes) {
    try {
      const AgentFrame frame = decode(std::move(bytes));
      if (frame.tag == Tag::welcome) {
        welcome_ = welcome_from_json(Json::parse(frame.body, "the coordinator's welcome"));
      } else if (welcome_) {
        obey(frame);
      }
    } catch (const DataError& error) {
      end(fmt::format("the coordinator sends what is no message: {}", error.what()));
    }
  }

  void obey(const AgentFrame& frame) {
    if (frame.tag == Tag::start) return start_worker(frame.worker, slot_of(frame.body));
    if (frame.tag == Tag::end) return end("the coordinator said so");
    const auto found = workers_.find(frame.worker);
    if (found == workers_.end()) return;
    const auto worker = found->second;
    if (frame.tag == Tag::say) worker->send(frame.body);
    if (frame.tag == Tag::kill) worker->kill(frame.body == "dump");
  }

  void start_worker(WorkerId id, int slot) {
    if (ending_ || workers_.contains(id)) return;
    const auto& join = options_.join;
    const WorkerJob job{
        id, join.host, slot, channel_->local_address(), join.token, join.job_folder, welcome_->document};
    const auto worker = std::make_shared<WorkerProcess>(loop_, job, worker_log(join.job_folder, join.host, slot));
    try {
      worker->start(options_.worker_command, welcome_->environment, welcome_->folder,
                    fmt::format("{}{}.", tree_mark(join), id), events_of(id));
    } catch (const Error& error) {
      tell(Tag::exited, id, to_json(Exited{127, 0, {error.what()}}).dump());
      return;
    }
    workers_[id] = worker;
  }

  WorkerProcess::Events events_of(WorkerId id) {
    return {.on_message = [this, id](std::string message) { pass_on(id, message); },
            .on_output =
                [this, id](const std::string& lines) {
                  if (welcome_->forward_output && channel_->unsent() < kMaxBehind) tell(Tag::output, id, lines);
                },
            .on_exit = [this, id](const Exited& exited) { worker_exited(id, exited); }};
  }

  void pass_on(WorkerId id, const std::string& message) {
    if (message.size() <= kLongestMessage) return tell(Tag::say, id, message);
    if (const auto found = workers_.find(id); found != workers_.end()) found->second->kill(false);
  }

  void worker_exited(WorkerId id, const Exited& exited) {
    tell(Tag::exited, id, to_json(exited).dump());
    workers_.erase(id);
    if (ending_ && workers_.empty()) finish();
  }

  void coordinator_gone(const std::string& reason) {
    coordinator_gone_ = true;
    end(reason);
    if (finishing_) loop_.stop();
  }

  // Workers are asked, then killed; then everything goes that this process ever started.
  void end(const std::string& reason) {
    if (std::exchange(ending_, true)) return;
    end_reason_ = reason;
    if (workers_.empty()) return finish();
    for (const auto& [id, worker] : workers_) worker->ask_to_end();
    loop_.after(options_.grace, [this] {
      const auto left = workers_;
      for (const auto& [id, worker] : left) worker->kill(false);
    });
    loop_.after(options_.grace + kLastTime, [this] { finish(); });
  }

  void finish() {
    if (std::exchange(finishing_, true)) return;
    kill_tree(::getpid(), tree_mark(options_.join));
    // Those that are not reaped here would be left to whoever adopts this process's children.
    for (int i = 0; i < 50 && !descendants_of(::getpid()).empty(); ++i) std::this_thread::sleep_for(10ms);
    reap_what_was_adopted();
    if (coordinator_gone_) return loop_.stop();
    channel_->close_after_sending();
    loop_.after(kLastTime, [this] { loop_.stop(); });
  }

  const AgentOptions& options_;
  net::Loop loop_;
  FileDescriptor stop_signals_;
  std::shared_ptr<net::Channel> channel_;
  std::optional<Welcome> welcome_;
  std::map<WorkerId, std::shared_ptr<WorkerProcess>> workers_;
  bool ending_ = false, finishing_ = false, coordinator_gone_ = false;
  std::string end_reason_;
};

}  // namespace

void run_agent(const AgentOptions& options) { Agent(options).run(); }

}  // namespace dtrain::elastic
