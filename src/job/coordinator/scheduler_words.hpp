// What Slurm's salloc writes to its standard error, as messages of dtrain. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtrain::job {

struct SchedulerWords {
  std::vector<std::string> notes;   // news about the request, for the user
  std::vector<std::string> errors;  // why there is no job
};
// Whole lines only; the rest is left out.
SchedulerWords scheduler_words(std::string_view text);

// One message of all errors, and what to do about them.
std::string scheduler_failure(const std::vector<std::string>& errors);
std::string scheduler_hint(const std::vector<std::string>& errors);

}  // namespace dtrain::job
