// Files in <job folder>/run through which dtrain and the job's programs inform each other.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <dtrain/base/files.hpp>

namespace dtrain::external {

// The hosts of the rank's generation, one a line: a copy, so that no program writes to the host file or its log.
Path hosts_copy(const Path& job_folder, int rank);

// The folder of one rank; made before its program starts.
Path rank_folder(const Path& job_folder, int rank);

// A number that the program may write there as it progresses, for example its step; read_progress() reads it.
Path progress_file(const Path& job_folder);

// The program may write it after the save signal, to say that its state is saved.
Path saved_file(const Path& job_folder, int rank);

// What torch.distributed.elastic's @record wrote about an exception: "RuntimeError: ..."; empty: nothing.
Path error_file(const Path& job_folder, int rank);
std::string read_error_file(const Path& job_folder, int rank);

// {"deadline": Unix time, "reason": ...}, written before the signal that asks a rank's program to end.
Path deadline_file(const Path& job_folder, int rank);
void write_deadline(const Path& job_folder, int rank, std::chrono::milliseconds grace, const std::string& reason);

}  // namespace dtrain::external
