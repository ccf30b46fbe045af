// What programs of a job and dtrain tell each other by files: <job folder>/run.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <dtrain/base/files.hpp>

namespace dtrain::external {

// A rank's own; made before its program starts.
Path rank_folder(const Path& job_folder, int rank);

// A number that the program may write there while it gets on, its step for example.
Path progress_file(const Path& job_folder);
// 0: nothing is there yet, or no number.
std::int64_t read_progress(const Path& job_folder);

// {"deadline": Unix time, "reason": ...}: written when a rank's program is asked to end, before its signal.
Path deadline_file(const Path& job_folder, int rank);
void write_deadline(const Path& job_folder, int rank, std::chrono::milliseconds grace, const std::string& reason);

}  // namespace dtrain::external
