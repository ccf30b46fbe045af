#include "scheduler_words.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/text.hpp>

namespace dtrain::job {
namespace {

constexpr std::string_view kLead = "salloc: ", kError = "error: ";

// What dtrain says itself, or what says nothing to the user.
bool is_routine(std::string_view line) {
  constexpr std::string_view kRoutine[] = {"Granted job", "Relinquishing job", "Waiting for resource", "Nodes "};
  return std::ranges::any_of(kRoutine, [&](std::string_view lead) { return line.starts_with(lead); });
}

bool mention(const std::vector<std::string>& errors, std::string_view word) {
  return std::ranges::any_of(errors, [&](const std::string& error) { return error.find(word) != error.npos; });
}

}  // namespace

SchedulerWords scheduler_words(std::string_view text) {
  SchedulerWords words;
  text = text.substr(0, text.rfind('\n') + 1);
  for (const std::string& whole : split(text, '\n')) {
    std::string_view line = trim(whole);
    if (line.empty()) continue;
    if (line.starts_with(kLead)) line.remove_prefix(kLead.size());
    if (line.starts_with(kError)) {
      words.errors.emplace_back(line.substr(kError.size()));
    } else if (!is_routine(line)) {
      words.notes.push_back(fmt::format("Slurm: {}", line));
    }
  }
  return words;
}

std::string scheduler_failure(const std::vector<std::string>& errors) {
  return fmt::format("Slurm does not run the job: {}", join(errors, "; "));
}

std::string scheduler_hint(const std::vector<std::string>& errors) {
  if (mention(errors, "artition")) return "`sinfo -s` lists the partitions; choose one with --queue";
  if (mention(errors, "ode")) return "`sinfo -N -l` lists the nodes; ask for fewer with -n, or for others with -H";
  return "`sinfo` and `squeue` show what Slurm can run";
}

}  // namespace dtrain::job
