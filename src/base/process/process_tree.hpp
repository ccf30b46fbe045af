// How processes that start others are ended.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

namespace dtrain {

// Stops the processes that find() returns, again and again, then ends all of them with SIGKILL and returns them. The
// caller survives. A single find() misses a process in the middle of execve(2), whose environment is empty then, and
// one that a member starts meanwhile: the rounds end only after two in a row, with a pause between, that find no other
// process, or after a hundred.
std::vector<pid_t> kill_found(const std::function<std::vector<pid_t>()>& find);

}  // namespace dtrain
