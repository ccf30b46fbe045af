#include "decide_jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::job {
namespace {

using AttemptKind = AttemptSeen::Kind;

std::int64_t pause_after(int times) {
  std::int64_t pause = kFirstPause;
  for (int time = 1; time < times && pause < kLongestPause; ++time) pause *= 3;
  return std::min(pause, kLongestPause);
}

// A time that is further ahead than any that is set was set by a clock that was ahead: it counts as passed.
bool is_ahead(std::int64_t time, std::int64_t now, std::int64_t furthest) {
  return now < time && time <= now + furthest;
}

bool is_code(const AttemptSeen& attempt, ExitCode code) { return attempt.exit_code == static_cast<int>(code); }

// Whether a program that ended in time has saved anything, it alone knows.
std::string how_cancelled(const JobSeen& job) {
  const bool in_time = job.attempt.kind == AttemptKind::ended && is_code(job.attempt, ExitCode::resumable);
  if (!in_time || job.cancelled_now) return kUnsaved;
  return job.spec.resumes ? "with a checkpoint" : "";
}

class JobDecision {
 public:
  JobDecision(const QueueSeen& seen, std::int64_t now) : seen_(seen), now_(now) {
    for (const JobSeen& job : seen.jobs) records_[job.number] = job.record;
  }

  QueueDecision run() {
    for (const JobSeen& job : seen_.jobs) settle(job);
    if (!any_runs()) start_next();
    close();
    for (const JobSeen& job : seen_.jobs) {
      if (records_[job.number] != job.record) made_.records[job.number] = records_[job.number];
    }
    return std::move(made_);
  }

 private:
  void settle(const JobSeen& job) {
    JobRecord& record = records_[job.number];
    if (record.state == JobState::waiting && job.cancelled) {
      return finish(record, JobState::cancelled, record.attempts == 0 ? "before it began" : "between two attempts");
    }
    if (record.state != JobState::running) return;
    if (job.attempt.kind == AttemptKind::alive) {
      if (job.cancelled || !seen_.hold.empty()) made_.stop.push_back(job.number);
      return;
    }
    if (job.attempt.kind != AttemptKind::none) end_attempt(job, record);
  }

  void finish(JobRecord& record, JobState state, const std::string& why) {
    record.state = state;
    record.why = why;
    record.ended = now_;
    record.not_before = record.machines_until = 0;
  }

  void end_attempt(const JobSeen& job, JobRecord& record) {
    const AttemptSeen& attempt = job.attempt;
    const bool ended = attempt.kind == AttemptKind::ended;
    record.exit_code = ended ? attempt.exit_code : 0;
    if (!attempt.progress.empty() && std::exchange(record.progress, attempt.progress) != attempt.progress)
      record.failures = record.refusals = record.losses = 0;
    if (ended && is_code(attempt, ExitCode::ok)) return finish(record, JobState::done, "");
    if (job.cancelled) return finish(record, JobState::cancelled, how_cancelled(job));
    if (ended && attempt.by_user) return finish(record, JobState::stopped, attempt.cause);  // saved or not
    // The code of a program that failed may be one of these numbers, and means a failure.
    const auto ended_with = [&](ExitCode code) { return ended && !attempt.by_program && is_code(attempt, code); };
    if (ended_with(ExitCode::resumable)) return again(record, kFirstPause, attempt.cause);
    if (ended_with(ExitCode::no_progress)) return finish(record, JobState::failed, attempt.cause);
    // A command that never began would be refused again; one that did may lack its mounts or credentials for a while.
    const bool never_began = !attempt.began && record.progress.empty() && record.term == record.first_term;
    if (ended_with(ExitCode::usage) && never_began) return finish(record, JobState::failed, attempt.cause);
    const bool refused = ended_with(ExitCode::refused);
    int& times = refused ? record.refusals : ended ? record.failures : record.losses;
    const int most = refused ? kMostRefusals : ended ? job.spec.retries + 1 : kMostLosses;
    if (++times < most) return again(record, pause_after(times), attempt.cause);
    finish(
        record, JobState::failed,
        fmt::format("{} attempts in a row ended without a newer checkpoint, the last one: {}", times, attempt.cause));
  }

  // The machines that the job had may be on their way back.
  void again(JobRecord& record, std::int64_t pause, const std::string& cause) {
    record.state = JobState::waiting;
    record.why = cause;
    record.not_before = now_ + pause;
    record.machines_until = now_ + kMachinePatience;
  }

  bool any_runs() const {
    return std::ranges::any_of(records_, [](const auto& one) { return one.second.state == JobState::running; });
  }

  // Jobs in the order in which they are to start.
  std::vector<const JobSeen*> line() const {
    std::vector<const JobSeen*> waiting;
    for (const JobSeen& job : seen_.jobs) {
      if (records_.at(job.number).state == JobState::waiting) waiting.push_back(&job);
    }
    std::ranges::stable_sort(waiting, [](const JobSeen* a, const JobSeen* b) {
      return a->spec.priority != b->spec.priority ? a->spec.priority > b->spec.priority : a->number < b->number;
    });
    return waiting;
  }

  // A pause between attempts holds the line: it is short, and the next job may run for days. Machines that may never
  // come do not hold it.
  void start_next() {
    for (const JobSeen* job : line()) {
      JobRecord& record = records_[job->number];
      if (const std::string& hold = seen_.hold.empty() ? seen_.no_start : seen_.hold; !hold.empty()) {
        record.why = "waits: " + hold;
        continue;
      }
      if (lacks_machines(*job, record)) continue;
      if (is_ahead(record.not_before, now_, kLongestPause)) return;
      record.state = JobState::running;
      record.why.clear();
      record.begun = now_;
      ++record.attempts;
      record.machines = seen_.machines.value_or(0);
      made_.start = job->number;
      return;
    }
  }

  bool lacks_machines(const JobSeen& job, JobRecord& record) const {
    if (!seen_.machines || job.spec.cluster.empty()) return false;
    const int had = is_ahead(record.machines_until, now_, kMachinePatience) ? record.machines : 0;
    const int needed = std::max({1, job.spec.hosts, had});
    if (*seen_.machines >= needed) return false;
    record.why = fmt::format("waits until {} machines are ready; {} of them are", needed, *seen_.machines);
    return true;
  }

  void close() {
    if (!seen_.goes_down) return;
    std::int64_t last = 0;
    for (const auto& [number, record] : records_) {
      if (!record.is_over()) return;
      last = std::max(last, record.ended);
    }
    made_.close = !is_ahead(last + kDownGrace, now_, 2 * kDownGrace);
  }

  const QueueSeen& seen_;
  const std::int64_t now_;
  std::map<int, JobRecord> records_;
  QueueDecision made_;
};

}  // namespace

QueueDecision decide_jobs(const QueueSeen& seen, std::int64_t now) { return JobDecision(seen, now).run(); }

}  // namespace dtrain::job
