// What another program says to a question that it answers soon.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <dtrain/base/process.hpp>

namespace dtrain {

struct [[nodiscard]] ProgramAnswer {
  int code = 0;  // 128 and more: killed by a signal
  std::string output, errors;
};

// Blocks, any thread. What it writes is taken up where `child` names no descriptor for it. nullopt: it did not end in
// time, wrote without end, or `stop` was requested; it is killed with all below it then, and not waited for: the kernel
// may hold it. A later question reaps it. Throws Error when it does not start.
[[nodiscard]] std::optional<ProgramAnswer> try_asking(Spawn child, std::chrono::milliseconds deadline,
                                                      const std::stop_token& stop = {});
// The same with a question in place of the token: whether the answer is not wanted any more.
[[nodiscard]] std::optional<ProgramAnswer> try_asking(Spawn child, std::chrono::milliseconds deadline,
                                                      const std::function<bool()>& is_unwanted);

// The same of a command, which gets the variables that find programs, schedulers and languages, and no others. Throws
// Error also when it does not end in time.
ProgramAnswer ask_program(const std::vector<std::string>& command,
                          std::chrono::milliseconds deadline = std::chrono::seconds(60));

}  // namespace dtrain
