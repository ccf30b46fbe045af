#include "queue_runner.hpp"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/launcher/agent_registry.hpp>

#include "attempt.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
constexpr auto kBetweenLooks = 500ms;
constexpr auto kSlice = 50ms;  // within which a stop signal is seen
constexpr auto kBetweenQuestions = 1s;
constexpr auto kAnswerTime = 10s;
constexpr auto kBetweenRemovals = 60s;

std::int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool pause_for(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (stop_signal() == 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kSlice);
  return stop_signal() == 0;
}

std::uint64_t size_of(const Path& file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  return error ? 0 : size;
}

// One thread. Each look reads the folder and the attempt, lets decide_jobs() decide, writes the records that change,
// and only then acts, so that a runner that is killed between two of these steps leaves nothing behind that the next
// one would not find.
class QueueRunner {
 public:
  explicit QueueRunner(const RunnerOptions& options) : options_(options), queue_(options.queue) {}

  RunnerEnd run() {
    watch_stop_signals();
    const auto lock = wait_for_lock();
    if (!lock) return end_;
    note(fmt::format("runs the queue {}", options_.queue.string()));
    std::string said;
    do {
      try {
        look();
        if (is_done() || options_.is_over()) return end_;
        said.clear();
      } catch (const std::exception& error) {
        note_once(said, error);
      }
    } while (pause_for(kBetweenLooks));
    return end_;
  }

 private:
  std::optional<FileLock> wait_for_lock() {
    auto lock = queue_.take_runner_lock();
    if (!lock) note(fmt::format("another runner acts on the queue {}; this one waits", options_.queue.string()));
    for (std::string said; !lock && pause_for(kBetweenLooks);) {
      try {
        if (is_done() || options_.is_over()) return std::nullopt;
        lock = queue_.take_runner_lock();
        said.clear();
      } catch (const std::exception& error) {
        note_once(said, error);
      }
    }
    return lock;
  }

  // Jobs that are left alone wait for another user's runner.
  bool is_done() {
    if (!options_.until_empty) return false;
    for (const auto& [number, job] : queue_.look()) {
      if (job.spec && job.foreign.empty() && !job.record.is_over()) return false;
    }
    end_ = RunnerEnd::queue_is_empty;
    return true;
  }

  void look() {
    if (queue_.is_closed_here()) return go_down();
    queue_.open();
    std::map<int, QueuedJob>& jobs = queue_.look();
    forget_old(jobs);
    const QueueSeen seen_now = seen(jobs);
    const QueueDecision made = decide_jobs(seen_now, seconds_now());
    for (const auto& [number, record] : made.records) change(jobs.at(number), record, made.start == number);
    for (const int number : made.stop) stop(jobs.at(number), seen_now.hold);
    if (made.start) start(jobs.at(*made.start));
    if (made.close && queue_.close()) note("all jobs are over: the machines of the cluster end");
  }

  void forget_old(const std::map<int, QueuedJob>& jobs) {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_removal_) return;
    next_removal_ = now + kBetweenRemovals;
    const int days = queue_.forget_after();
    if (days == 0) return;
    std::vector<QueuedJob> all;
    for (const auto& [number, job] : jobs) all.push_back(job);
    for (const int number : jobs_over_for(all, days, seconds_now())) {
      queue_.forget(number);
      note(fmt::format("job {}: removed, {} days after its end", number, days));
    }
  }

  QueueSeen seen(const std::map<int, QueuedJob>& jobs) {
    ask_for_hold();
    QueueSeen seen{
        .goes_down = !options_.cluster.empty() && queue_.goes_down(), .hold = known_hold_, .no_start = hold_problem_};
    bool any_open = false;
    for (const auto& [number, job] : jobs) {
      if (!job.spec && attempts_.contains(number))
        throw Error(fmt::format("job {}, which runs, cannot be read: {}", number, job.problem));
      if (!job.spec || !job.foreign.empty()) {
        if (left_alone_.insert(number).second)
          note(fmt::format("job {} is left alone: {}", number, job.spec ? job.foreign : job.problem));
        continue;
      }
      JobSeen one{
          .number = number, .record = job.record, .cancelled = job.cancelled, .cancelled_now = job.cancelled_now};
      if (!job.record.is_over()) one.spec = *job.spec;
      if (job.record.state == JobState::running) {
        one.attempt = attempts_.try_emplace(number, job).first->second.look();
        // The next job may start in this look, and what the head said before the end of this one is old.
        if (one.attempt.kind != AttemptSeen::Kind::alive) next_question_ = {};
      }
      any_open = any_open || !job.record.is_over();
      seen.jobs.push_back(std::move(one));
    }
    if (options_.cluster.empty()) return seen;
    if (any_open) ask_head();
    seen.machines = machines_;
    if (seen.hold.empty()) seen.hold = hold_;
    return seen;
  }

  void ask_for_hold() {
    try {
      known_hold_ = options_.hold();
      hold_problem_.clear();
    } catch (const std::exception& error) {
      note_once(hold_problem_, error);
    }
  }

  // How many machines are registered with the head of this cluster and connected, and whether it holds the queue, which
  // also stops a job that runs.
  void ask_head() {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_question_) return;
    next_question_ = now + kBetweenQuestions;
    machines_ = 0;
    try {
      const auto registry = launcher::read_agent_registry(launcher::kAgentRegistryFile);
      if (!registry) return;
      const Json list = launcher::ask_registry(*registry, Json::object({{"ask", "list"}}), kAnswerTime);
      for (const Json& node : list.at("nodes").as_array()) machines_ += node.at("connected").as_bool() ? 1 : 0;
      const Json* hold = list.find("hold");  // a head of an earlier version holds nothing
      hold_ = hold ? hold->as_string() : std::string();
      problem_.clear();
    } catch (const Error& error) {
      note_once(problem_, error);
    }
  }

  void change(QueuedJob& job, JobRecord record, bool starts) {
    if (starts) {
      record.term = last_term_in(job.job_folder());
      if (record.attempts == 1) record.first_term = record.term;
      record.log_begin = size_of(job.output());
    }
    JobQueue::write(job, record);
    if (record.state != job.record.state) {
      note(fmt::format("job {}: {}{}", job.number, enum_name(kJobStateNames, record.state),
                       record.why.empty() ? "" : ": " + record.why));
    }
    if (record.state != JobState::running) attempts_.erase(job.number);
    job.record = std::move(record);
  }

  void stop(const QueuedJob& job, const std::string& hold) {
    attempts_.at(job.number)
        .stop(job.cancelled ? fmt::format("`dtrain jobs cancel {}`", job.number) : hold, job.cancelled_now);
  }

  void start(const QueuedJob& job) {
    attempts_.erase(job.number);
    attempts_.try_emplace(job.number, job).first->second.start();
  }

  // The head ends all machines, this one too. It is asked until that has happened.
  void go_down() {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_question_) return;
    next_question_ = now + kAnswerTime;
    const auto registry = launcher::read_agent_registry(launcher::kAgentRegistryFile);
    if (registry) launcher::ask_registry(*registry, Json::object({{"ask", "down"}}), kAnswerTime);
  }

  void note(const std::string& line) const { options_.on_note(line); }

  // `said`: what was said of the same matter before.
  void note_once(std::string& said, const std::exception& error) const {
    if (said != error.what()) note(error.what());
    said = error.what();
  }

  const RunnerOptions& options_;
  JobQueue queue_;
  std::map<int, Attempt> attempts_;  // by job, while it runs
  std::set<int> left_alone_;
  int machines_ = 0;
  std::string known_hold_;    // what options_.hold() returned last
  std::string hold_problem_;  // why it returns nothing now
  std::string hold_;          // why the head lets no job run
  std::chrono::steady_clock::time_point next_question_{};
  std::chrono::steady_clock::time_point next_removal_{};
  std::string problem_;  // why the head does not say this
  RunnerEnd end_ = RunnerEnd::stopped;
};

}  // namespace

RunnerEnd run_queue(const RunnerOptions& options) { return QueueRunner(options).run(); }

}  // namespace dtrain::job
