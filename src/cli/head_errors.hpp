// What a command that runs on the head of a cluster writes to stderr. Its first own line has the number of its process;
// lines that the user's shell wrote before are for the user, like all that follows.
#pragma once

#include <string>
#include <string_view>

namespace dtrain::cli {

// "dtrain-process 4711": what stands before the number.
inline constexpr std::string_view kProcessWord = "dtrain-process ";

class HeadErrors {
 public:
  // Takes the next part, and returns what of it the user is to see.
  std::string take(std::string_view text);
  // The same at the end of the output.
  std::string end();
  // The number of the process; empty: it has not come yet.
  const std::string& process() const { return process_; }

 private:
  std::string held_, process_;  // held_: the beginning of a line
};

}  // namespace dtrain::cli
