// What another program says to a question that it answers at once.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::launch {

struct ProgramAnswer {
  int code = 0;  // 128 and more: killed by a signal
  std::string output, errors;
};

// Blocks. Throws Error when the program does not start, or does not end in time.
ProgramAnswer ask_program(const std::vector<std::string>& command,
                          std::chrono::milliseconds deadline = std::chrono::seconds(60));

}  // namespace dtrain::launch
