// A job that a queue runs: what was submitted, and how far it is. Both are small JSON files in the job's folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/enum_names.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>

#include "config/job_options.hpp"

namespace dtrain::job {

// What was submitted. It never changes afterwards.
struct ManagedSpec {
  std::vector<std::string> words{};        // the command line after "dtrain"
  std::vector<std::string> environment{};  // NAME=value, from kept_environment()
  Path folder{};                           // where the command runs
  Path job_folder{};                       // that the user chose; empty: the job's folder in the queue
  Path prefix{};                           // of the checkpoints, absolute or a URL; empty: none
  std::string cluster{};                   // empty: the job runs on this machine
  int priority = 0;
  int hosts = 0;                               // the user's -n; 0: any number
  bool resumes = false;                        // the command knows --resume
  bool continues = false;                      // the user gave --resume
  int retries = config::JobOptions{}.retries;  // after a failure in a row without a newer checkpoint
  std::int64_t submitted = 0;                  // here and below: seconds since 1970
  friend bool operator==(const ManagedSpec&, const ManagedSpec&) = default;
};

// stopped: by `dtrain stop`. The last four are final.
enum class JobState { waiting, running, done, failed, cancelled, stopped };
constexpr EnumName<JobState> kJobStateNames[] = {{JobState::waiting, "waiting"},     {JobState::running, "running"},
                                                 {JobState::done, "done"},           {JobState::failed, "failed"},
                                                 {JobState::cancelled, "cancelled"}, {JobState::stopped, "stopped"}};

// Why, of a job that was cancelled while it ran.
inline constexpr const char* kUnsaved = "without a checkpoint";

struct JobRecord {
  JobState state = JobState::waiting;
  std::string why{};                // reason of the state; empty: none
  int exit_code = 0;                // of the last attempt that ended
  int attempts = 0;                 // begun so far
  int failures = 0;                 // in a row without a newer checkpoint
  int refusals = 0;                 // the same for attempts that other machines refused
  int losses = 0;                   // the same for attempts whose processes or machine were lost
  std::string progress{};           // newest checkpoint that an attempt showed when it ended
  std::int64_t not_before = 0;      // time of the next attempt
  std::int64_t machines_until = 0;  // until then it waits for `machines`
  int machines = 0;                 // number of the cluster's machines when the last attempt began
  std::int64_t begun = 0;           // time of the last attempt
  std::int64_t ended = 0;           // time of the final state
  std::uint64_t term = 0;           // of the job folder's coordinator before the last attempt
  std::uint64_t first_term = 0;     // the same before the first attempt
  std::uint64_t log_begin = 0;      // where the last attempt's output begins in the log
  bool is_over() const { return state != JobState::waiting && state != JobState::running; }
  friend bool operator==(const JobRecord&, const JobRecord&) = default;
};

Json to_json(const ManagedSpec& spec);
Json to_json(const JobRecord& record);
// Throw DataError for another text, and for a schema of a newer dtrain.
ManagedSpec managed_spec_from(std::string_view text, std::string_view source);
JobRecord job_record_from(std::string_view text, std::string_view source);

// The variables that may change what a command does: dtrain's, those that locate programs and libraries, and those of
// GPUs and threads. Keys of accounts are not among them: the file lies on a shared folder.
std::vector<std::string> kept_environment(const std::vector<std::string>& environment);

// "train --lr 0.1", with quotes where a shell needs them.
std::string command_text(const ManagedSpec& spec);

}  // namespace dtrain::job
