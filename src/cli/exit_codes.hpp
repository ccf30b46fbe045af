// What each exit code means, in one table.
#pragma once

#include <span>
#include <string_view>

namespace dtrain::cli {

struct ExitCodeMeaning {
  int code = 0;
  std::string_view meaning;
};

std::span<const ExitCodeMeaning> exit_code_table();
// Of `launch`, besides those of the table.
inline constexpr std::string_view kCodeOfLaunch = "launch: a rank failed; the code of the rank that failed first";

}  // namespace dtrain::cli
