// Who saves the checkpoints of a --model-prefix: the content of the file .NAME.lock beside them, whose lock the process
// holds that began the run. The content outlives the lock, as the agents and workers of a job outlive its coordinator.
#pragma once

#include <cstdint>
#include <string>

#include <dtrain/base/files.hpp>

#include "job_folder.hpp"

namespace dtrain::job {

struct PrefixOwner {
  std::string token{};       // random; by it a host of the job knows that it sees the same file
  std::string job_folder{};  // absolute; empty: a process that trains alone
  std::string host{};        // name of the machine where the run began
  std::int64_t process = 0;
};

Path owner_file(const Path& prefix);
// Nothing but empty fields: there is no file, or it says nothing. Throws Error if it cannot be read.
PrefixOwner read_owner(const Path& prefix);
// The content of the file, also that of older versions: the job folder alone. Pure.
PrefixOwner owner_in(const std::string& text);
// `lock`: of owner_file(prefix). Other machines see it as soon as this returns. Throws Error.
void write_owner(const FileLock& lock, const Path& prefix, const PrefixOwner& owner);

// "process 7 on h1, job folder /efs/job"; empty where the owner is unknown.
std::string describe_owner(const PrefixOwner& owner);

}  // namespace dtrain::job
