// What a host must pass before its first worker starts there: the person's prepare command, then a check of its health.
// The coordinator decides who has to (decide/gate.cpp); the host's agent does it in the background (agent/gate.cpp).
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain::elastic {

// Constant for a job.
struct GateOptions {
  std::string prepare;  // for `sh -c`, in the job's folder and environment; empty: none
  std::chrono::milliseconds prepare_timeout{3'600'000};
  std::chrono::milliseconds check_timeout{60'000};
  std::chrono::microseconds asked_at{};  // by the coordinator's clock, since 1970; 0: nobody said
};

struct GateResult {
  enum class Prepare {
    none,     // there is no command
    ran,      // and ended with 0
    earlier,  // the success file says that this command did so before
    by_hand,  // a person made the success file
  };
  Prepare prepare = Prepare::none;
  std::string stage;                    // where it failed: "prepare" or "health"
  std::string failure;                  // why; empty: passed
  std::vector<std::string> last_lines;  // of what failed
  std::string note;                     // what a person should know although it passed
  Json health;                          // what the check measured; null: it did not come so far
  double prepare_seconds = 0, check_seconds = 0;
};

// <job folder>/prepare_data_success_<host>, with characters that do not belong into a file name replaced.
Path prepare_success_file(const Path& job_folder, const std::string& host);

Json to_json(const GateOptions& options);
Json to_json(const GateResult& result);
// Throw DataError.
GateOptions gate_options_from_json(const Json& json);
GateResult gate_result_from_json(const Json& json);

}  // namespace dtrain::elastic
