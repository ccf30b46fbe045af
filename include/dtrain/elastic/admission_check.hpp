// The admission check of a host: the user's prepare command, then a health check. The host must pass both before its
// first worker starts. The coordinator decides which hosts are checked (decide/admission.cpp); the host's agent runs
// the check in the background (agent/admission_check.cpp).
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain::elastic {

// The same for all hosts of a job.
struct AdmissionCheckOptions {
  std::string prepare;  // run by `sh -c` in the job's folder and environment; empty: none
  std::chrono::milliseconds prepare_timeout{3'600'000};
  std::chrono::milliseconds check_timeout{60'000};
  std::chrono::microseconds asked_at{};  // coordinator's clock, since 1970; 0: unknown
};

struct [[nodiscard]] AdmissionCheckResult {
  enum class Prepare {
    none,     // there is no prepare command
    ran,      // it ran and ended with 0
    earlier,  // skipped: the success file says that this command ran before
    by_hand,  // skipped: the user made the success file
  };
  enum class Stage { none, prepare, health };
  Prepare prepare = Prepare::none;
  Stage stage = Stage::none;            // the last one begun; where a failed check failed
  std::string failure;                  // reason; empty: passed
  std::vector<std::string> last_lines;  // output of the failed stage
  std::string note;                     // a warning for the user, also when the host passed
  Json health;                          // measurements of the health check; null: it did not run
  double prepare_seconds = 0, check_seconds = 0;
};

const char* stage_name(AdmissionCheckResult::Stage stage);  // "", "prepare", "health"

// <job folder>/prepare_data_success_<host>; characters that a file name cannot have are replaced.
Path prepare_success_file(const Path& job_folder, const std::string& host);
// <job folder>/logs/prepare_<host>.log, the output of the prepare command and of the health check.
Path prepare_log(const Path& job_folder, const std::string& host);

Json to_json(const AdmissionCheckOptions& options);
Json to_json(const AdmissionCheckResult& result);
// These throw DataError.
AdmissionCheckOptions admission_check_options_from_json(const Json& json);
AdmissionCheckResult admission_check_result_from_json(const Json& json);

}  // namespace dtrain::elastic
