// decide_jobs(): what the runner of a queue does next. Pure: no clock, no file, no process.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "managed_job.hpp"

namespace dtrain::job {

// What became of a job's last attempt, as its processes and its job folder show it.
struct AttemptSeen {
  enum class Kind {
    none,   // no attempt is under way
    alive,  // its process runs, or a coordinator that took over from it
    ended,  // with exit_code
    lost,   // without a word: the process was killed, or its machine went off
  };
  Kind kind = Kind::none;
  int exit_code = 0;
  std::string cause{};      // of an end that is no success; how it was lost
  std::string progress{};   // newest checkpoint, or what a program wrote of its progress
  bool by_user = false;     // `dtrain stop` ended it
  bool by_program = false;  // its program failed, and exit_code is the program's
  bool began = false;       // it had a coordinator: its command was not refused
};

struct JobSeen {
  int number = 0;
  ManagedSpec spec{};  // not needed of a job that is over
  JobRecord record{};
  bool cancelled = false;      // the user asked for it
  bool cancelled_now = false;  // and wants no checkpoint
  AttemptSeen attempt{};
};

struct QueueSeen {
  std::vector<JobSeen> jobs{};  // all that can be read
  // Number of the cluster's machines that are ready now; nullopt: the queue is of no cluster.
  std::optional<int> machines{};
  bool goes_down = false;  // the machines are to end after the last job
  std::string hold{};      // why no job may run now: those that run are stopped with a checkpoint; empty: they may
  std::string no_start{};  // why no job may start now, while those that run go on; empty: they may
};

struct QueueDecision {
  std::map<int, JobRecord> records{};  // changed ones, by job: to be written before anything is done
  std::vector<int> stop{};             // jobs to stop; named each time until they are over
  std::optional<int> start{};          // the job to start; its record says running
  bool close = false;                  // the queue takes no jobs any more, and the machines end
};

// `now`: seconds since 1970.
QueueDecision decide_jobs(const QueueSeen& seen, std::int64_t now);

// Attempts in a row that end without a newer checkpoint, after which a job has failed: because another machine refused
// or could not be reached, and because their processes or machine were lost. Those that fail by themselves are counted
// by ManagedSpec::retries.
constexpr int kMostRefusals = 60;
constexpr int kMostLosses = 20;
// Seconds before the next attempt: the first pause, each next one three times as long, at most the longest.
constexpr std::int64_t kFirstPause = 3, kLongestPause = 120;
// Seconds for which a job waits until as many machines are ready as it had before it was lost.
constexpr std::int64_t kMachinePatience = 600;
// Seconds between the end of the last job and that of the machines.
constexpr std::int64_t kDownGrace = 60;

}  // namespace dtrain::job
