// The agent has one thread, that of its loop: signals, sockets, pipes of workers and timers all arrive there, so there
// is no lock. Only background tasks of the follower, a spot watch and a final sleep use other threads or block.
//
// Workers are shared pointers: a callback may remove a worker from the map while it is in use. The end has stages
// (Stage): end() or let_workers_save() asks the workers to stop, a timer kills them after a grace, and finish() kills
// and reaps every process of the tree, sends what is left and stops the loop. finish() runs even when a worker does not
// end. A coordinator that this agent started is spared.
#include <dtrain/elastic/agent.hpp>

#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/with_hint.hpp>
#include <dtrain/net/channel.hpp>

#include "admission_check.hpp"
#include "follower.hpp"
#include "spot_notice.hpp"
#include "stop_requests.hpp"
#include "surroundings.hpp"
#include "wire.hpp"
#include "worker_memory.hpp"
#include "worker_process.hpp"

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;
constexpr auto kTick = 100ms;
constexpr auto kGrace = 1s;  // from SIGTERM to SIGKILL
// Time for the last frames to reach the coordinator, and for the kernel to end processes.
constexpr auto kLastTime = 3s;
// Time in which a parent that sent a signal by its death is gone.
constexpr auto kParentsEnd = 300ms;
// A worker's message grows on its way to the coordinator.
constexpr std::size_t kLongestMessage = net::kMaxFrame - 64;
// Output is dropped when so much is unsent: a worker must not wait for a slow terminal, and the log file has all of it.
constexpr std::size_t kMaxBehind = 32 << 20;

int slot_in(const AgentFrame& frame) {
  return read_frame([&] { return slot_of(static_cast<std::int64_t>(number_of(frame.body))); });
}

AdmissionCheckOptions admission_check_options_of(const AgentFrame& frame) {
  return read_frame(
      [&] { return admission_check_options_from_json(Json::parse(frame.body, "what a host must pass")); });
}

// In this order. An end that the coordinator or a signal asked for has no stage `saving`.
enum class Stage { working, saving, ending, finishing };

class Agent {
 public:
  explicit Agent(const AgentOptions& options) : options_(options), follower_(loop_, options, follower_events()) {}

  void run() {
    adopt_orphans();
    catch_stop_signals();
    follower_.start();
    tick();
    loop_.run();
    if (!follower_.welcomed()) {
      throw RemoteError(fmt::format("{}: cannot join the job: {}", options_.order.host, end_reason_));
    }
  }

 private:
  Follower::Events follower_events() {
    return {.on_welcome =
                [this](const Welcome& welcome) {
                  if (!std::exchange(joined_, true) && options_.on_joined) options_.on_joined();
                  end_workers_but(welcome.keep);
                  if (final_notice_) send(*final_notice_);
                  watch_for_the_clouds_notice();
                },
            .on_frame = [this](const AgentFrame& frame) { obey(frame); },
            .report = [this] { return memory_.reports(std::chrono::steady_clock::now()); },
            .on_end_known = [this](WorkerId worker) { memory_.forget(worker); },
            .on_lost =
                [this](const std::string& reason) {
                  coordinator_gone_ = true;
                  note_end(reason);
                  let_workers_save(reason);
                  if (stage_ == Stage::finishing) loop_.stop();
                },
            .on_over =
                [this](const std::string& reason) {
                  coordinator_gone_ = true;
                  note_end(reason);
                  end(reason);
                  if (stage_ == Stage::finishing) loop_.stop();
                }};
  }

  // An end that neither the coordinator nor a signal asked for. run() throws the reason where no coordinator has
  // welcomed this agent.
  void note_end(const std::string& reason) {
    if (is_ending() || !joined_ || !options_.on_note) return;
    options_.on_note(fmt::format("{}: its agent ends: {}", options_.order.host, reason));
  }

  // A coordinator that had counted this host as lost does not know these workers and has started others.
  void end_workers_but(const std::vector<WorkerId>& keep) {
    const auto workers = workers_;
    for (const auto& [id, worker] : workers) {
      if (std::ranges::find(keep, id) == keep.end()) worker->kill(false);
    }
  }

  // Blocks the signals for good and reads them from a descriptor: they may come more than once, as the signal of a
  // parent's death does for each of its threads, and none may cut the end short.
  void catch_stop_signals() {
    const sigset_t signals = all_stop_signals();
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    stop_signals_ = FileDescriptor(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    loop_.when_readable(stop_signals_.get(), [this] {
      signalfd_siginfo signal{};
      if (::read(stop_signals_.get(), &signal, sizeof signal) == sizeof signal) hear_signal(signal);
      return stage_ != Stage::finishing;
    });
  }

  // A signal of the parent counts after a moment: the same signal may come directly in between, and where the parent
  // was the coordinator and died, its connection has closed by then.
  void hear_signal(const signalfd_siginfo& heard) {
    const int signal = static_cast<int>(heard.ssi_signo);
    if (static_cast<pid_t>(heard.ssi_pid) != parent_) return on_signal(signal, SignalSource::other);
    loop_.after(kParentsEnd, [this, signal] {
      if (::getppid() == parent_) return on_signal(signal, SignalSource::parent);
      if (!is_ending()) on_signal(signal, SignalSource::parents_death);
    });
  }

  // The first request is a notice, so that workers leave at the next step. A further one ends the agent at once, as
  // each does while workers save, except for a warning.
  void on_signal(int signal, SignalSource source) {
    const StopRequest request = stop_requests_.hear(signal, source, std::chrono::steady_clock::now());
    if (request == StopRequest::repeated) return;
    if (stage_ == Stage::saving && !is_warning(signal)) return end_workers();
    if (is_ending()) return;
    if (request == StopRequest::further || !joined_ || signal == SIGHUP) return end("a stop signal");
    give_notice({true, fmt::format("its agent got signal {}", signal)});
  }

  // A notice may be lost with the coordinator, so the next one gets it again. A recommendation is only recorded.
  void give_notice(const net::EndNotice& notice) {
    if (notice.is_final) final_notice_ = notice;
    send(notice);
  }

  void send(const net::EndNotice& notice) {
    follower_.send(Tag::notice, 0, Json::object({{"leave", notice.is_final}, {"reason", notice.text}}).dump());
  }

  void watch_for_the_clouds_notice() {
    const std::string url = notice_url_of(follower_.welcome().notice_url, options_.order.host);
    if (url.empty() || spot_watch_) return;
    try {
      spot_watch_.emplace(loop_, url, [this](const net::EndNotice& notice) { give_notice(notice); });
    } catch (const std::system_error&) {
      if (options_.on_note)
        options_.on_note("notices of this machine's end are not heard, because no thread can be started");
    }
  }

  void tick() {
    if (stop_signal() != 0) end("a stop signal");  // a signal from before they were blocked
    reap_what_was_adopted();
    loop_.after(kTick, [this] { tick(); });
  }

  void reap_what_was_adopted() {
    std::vector<pid_t> known;
    for (const auto& [id, worker] : workers_) known.push_back(worker->id());
    if (admission_check_) known.push_back(admission_check_->process());
    while (reap_adopted(known) > 0) {
    }
  }

  void obey(const AgentFrame& frame) {
    if (frame.tag == Tag::check) return run_admission_check(admission_check_options_of(frame));
    if (frame.tag == Tag::start) return start_worker(frame.worker, slot_in(frame));
    if (frame.tag == Tag::end) return end("the coordinator ended it");
    const auto found = workers_.find(frame.worker);
    if (found == workers_.end()) return;
    const auto worker = found->second;
    if (frame.tag == Tag::say) worker->send(frame.body);
    if (frame.tag == Tag::kill) worker->kill(frame.body == "dump");
  }

  WorkerJob job_of(WorkerId id, int slot) const {
    const auto& order = options_.order;
    return {
        id, order.host, slot, follower_.local_address(), order.token, order.job_folder, follower_.welcome().document};
  }

  void run_admission_check(const AdmissionCheckOptions& options) {
    if (is_ending()) return;
    if (!admission_check_) admission_check_.emplace(loop_, admission_check_setup());
    admission_check_->run(options, [this](const AdmissionCheckResult& result) {
      follower_.send(Tag::checked, 0, to_json(result).dump());
    });
  }

  AdmissionCheckSetup admission_check_setup() const {
    const auto& order = options_.order;
    Json input = to_json(job_of(0, 0));
    input["coordinator"] = Json::object({{"address", order.address}, {"port", int{order.port}}});
    return {.host = order.host,
            .job_folder = order.job_folder,
            .environment = workers_environment(follower_.welcome()),
            .folder = workers_folder(follower_.welcome(), order),
            .mark = tree_mark(order) + "gate.",
            .check = options_.check_command,
            .check_input = input.dump()};
  }

  void start_worker(WorkerId id, int slot) {
    if (is_ending() || workers_.contains(id)) return;
    const auto& order = options_.order;
    const WorkerJob job = job_of(id, slot);
    const auto worker = std::make_shared<WorkerProcess>(loop_, job, worker_log(order.job_folder, order.host, slot));
    try {
      worker->start(options_.worker_command, workers_environment(follower_.welcome()),
                    workers_folder(follower_.welcome(), order), fmt::format("{}{}.", tree_mark(order), id),
                    events_of(id));
    } catch (const Error& error) {
      follower_.send_kept(Tag::exited, id, to_json(Exited{127, 0, {with_hint(error)}, false}).dump());
      return;
    }
    workers_[id] = worker;
    memory_.started(id, slot, std::chrono::steady_clock::now());
  }

  WorkerProcess::Events events_of(WorkerId id) {
    return {.on_message = [this, id](std::string message) { pass_on(id, message); },
            .on_output = [this, id](OutputStream stream, const std::string& lines) { show(id, stream, lines); },
            .on_exit = [this, id](const Exited& exited) { worker_exited(id, exited); }};
  }

  void show(WorkerId id, OutputStream stream, const std::string& lines) {
    if (!follower_.welcome().forward_output) return;
    if (follower_.unsent() > kMaxBehind) {
      left_out_[id] += std::ranges::count(lines, '\n');
      return;
    }
    report_left_out(id);
    follower_.send(stream == OutputStream::output ? Tag::output : Tag::error, id, lines);
  }

  void report_left_out(WorkerId id) {
    const auto found = left_out_.extract(id);
    if (found) follower_.send(Tag::error, id, fmt::format("dtrain: {} lines are left out here\n", found.mapped()));
  }

  void pass_on(WorkerId id, const std::string& message) {
    if (message.size() <= kLongestMessage)
      return pass_on(id, message, memory_.said(id, message, std::chrono::steady_clock::now()));
    if (const auto found = workers_.find(id); found != workers_.end()) found->second->kill(false);
  }

  // Heartbeats need not be kept: the next one replaces a lost one.
  void pass_on(WorkerId id, const std::string& message, WorkerMemory::Kind kind) {
    const auto found = workers_.find(id);
    if (kind == WorkerMemory::Kind::heartbeat) return follower_.send(Tag::say, id, message);
    const bool failed = kind == WorkerMemory::Kind::failure && found != workers_.end();
    follower_.send_kept(Tag::say, id, failed ? with_last_lines(message, found->second->last_lines()) : message);
  }

  void worker_exited(WorkerId id, const Exited& exited) {
    report_left_out(id);
    follower_.send_kept(Tag::exited, id, to_json(exited).dump());
    workers_.erase(id);
    if (is_ending() && workers_.empty()) finish();
  }

  bool is_ending() const { return stage_ != Stage::working; }

  // No coordinator needs the workers: they end soon.
  void end(const std::string& reason) {
    if (is_ending()) return;
    end_reason_ = reason;
    end_workers();
  }

  void end_workers() {
    if (workers_.empty()) return finish();
    stage_ = Stage::ending;
    for (const auto& [id, worker] : workers_) worker->ask_to_end();
    finish_after(kGrace);
  }

  // No coordinator is left that would tell the workers to save their state: they do it by themselves.
  void let_workers_save(const std::string& reason) {
    if (is_ending()) return;
    end_reason_ = reason;
    if (workers_.empty()) return finish();
    stage_ = Stage::saving;
    for (const auto& [id, worker] : workers_) worker->hang_up();
    finish_after(follower_.welcome().grace);
  }

  // Kills the workers that still run then, and every process that this agent started.
  void finish_after(std::chrono::milliseconds grace) {
    loop_.after(grace, [this] {
      const auto left = workers_;
      for (const auto& [id, worker] : left) worker->kill(false);
    });
    loop_.after(grace + kLastTime, [this] { finish(); });
  }

  void finish() {
    if (std::exchange(stage_, Stage::finishing) == Stage::finishing) return;
    const std::vector<pid_t> spared = processes_marked(coordinator_mark(options_.order));
    kill_tree(::getpid(), tree_mark(options_.order), spared);
    // Reap them here; otherwise this agent's parent would inherit them.
    for (int i = 0; i < 50 && !descendants_of(::getpid(), spared).empty(); ++i) std::this_thread::sleep_for(10ms);
    reap_what_was_adopted();
    if (coordinator_gone_) return loop_.stop();
    follower_.finish([this] { loop_.stop(); });
    loop_.after(kLastTime, [this] { loop_.stop(); });
  }

  const AgentOptions& options_;
  net::Loop loop_;
  const pid_t parent_ = ::getppid();
  FileDescriptor stop_signals_;
  std::optional<AdmissionCheck> admission_check_;
  WorkerMemory memory_;
  Follower follower_;
  std::map<WorkerId, std::shared_ptr<WorkerProcess>> workers_;
  std::map<WorkerId, std::ptrdiff_t> left_out_;  // lines of output that were dropped
  std::optional<SpotWatch> spot_watch_;
  std::optional<net::EndNotice> final_notice_;
  StopRequests stop_requests_;
  Stage stage_ = Stage::working;
  std::string end_reason_;
  bool joined_ = false;            // some coordinator has welcomed this agent
  bool coordinator_gone_ = false;  // for good: no last message can reach one
};

}  // namespace

void run_agent(const AgentOptions& options) { Agent(options).run(); }

}  // namespace dtrain::elastic
