// Processes that fork without exec, and go on without the terminal or the process that started them. The functions are
// for processes with one thread: a child has only the thread that called fork().
#pragma once

#include <sys/types.h>

#include <chrono>

#include <dtrain/base/files.hpp>

namespace dtrain {

// fork(), after the buffers of stdio are flushed, which both processes would write otherwise. Returns 0 in the child.
// Throws Error.
pid_t fork_process();

// Connects stdin to /dev/null, and stdout and stderr to `output`, or to /dev/null where that holds no descriptor.
void redirect_streams(const FileDescriptor& output);

// Reaps children until none is left, or the time is over.
void reap_children_for(std::chrono::milliseconds time);

}  // namespace dtrain
