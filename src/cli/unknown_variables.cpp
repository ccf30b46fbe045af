#include "unknown_variables.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "hints.hpp"

namespace dtrain::cli {
namespace {

constexpr std::string_view kVariableLead = "DTRAIN_";

// What dtrain itself sets or reads for other purposes than an option; DTRAIN_TEST... belongs to its tests.
constexpr std::array kOwnVariables = std::to_array<std::string_view>(
    {"DTRAIN_CONFIG",     "DTRAIN_COORDINATOR", "DTRAIN_CUDA_PATH",     "DTRAIN_DEADLINE_FILE", "DTRAIN_GENERATION",
     "DTRAIN_HOST",       "DTRAIN_JOB",         "DTRAIN_JOB_FOLDER",    "DTRAIN_LOCAL_RANK",    "DTRAIN_MANAGED_JOB",
     "DTRAIN_POD",        "DTRAIN_PROGRAM",     "DTRAIN_PROGRESS_FILE", "DTRAIN_RANK",          "DTRAIN_RESET_HOSTS",
     "DTRAIN_RESTART",    "DTRAIN_RESUME",      "DTRAIN_ROLE",          "DTRAIN_RUN_DIR",       "DTRAIN_SAVED_FILE",
     "DTRAIN_TASK_INDEX", "DTRAIN_TREE",        "DTRAIN_WORLD"});

bool is_own(std::string_view name) {
  return name.starts_with("DTRAIN_TEST") || std::ranges::find(kOwnVariables, name) != kOwnVariables.end();
}

// "DTRAIN_NUM_EPOCH" -> "num-epoch"
std::string as_option(std::string_view variable) {
  std::string name(variable.substr(kVariableLead.size()));
  for (char& c : name) c = c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

struct KnownOptions {
  std::vector<std::string> names;  // that are read from variables too
  std::set<std::string> flags_only;
};

KnownOptions known_options(const CommandTree& tree) {
  std::set<std::string> names, flags_only;
  const auto collect = [&](const config::OptionSet& set) {
    for (const config::Option& option : set.options()) {
      (option.flag_only ? flags_only : names).insert(as_option(option.variable()));
    }
  };
  collect(tree.global_options);
  for (const auto& command : tree.commands) collect(command->options);
  return {.names = {names.begin(), names.end()}, .flags_only = std::move(flags_only)};
}

}  // namespace

std::vector<std::string> warnings_of_variables(const CommandTree& tree, std::span<const std::string> names) {
  const KnownOptions known = known_options(tree);
  std::vector<std::string> warnings;
  for (const std::string& variable : names) {
    if (!variable.starts_with(kVariableLead) || is_own(variable)) continue;
    const std::string name = as_option(variable);
    if (name.size() < 3 || std::ranges::binary_search(known.names, name)) continue;
    if (known.flags_only.contains(name)) {
      warnings.push_back(fmt::format("{} has no effect: --{} is read from the command line only", variable, name));
      continue;
    }
    // A variable that is like none may belong to another program.
    const std::string hint = hint_of_option(name, known.names, "--");
    if (hint.empty()) continue;
    warnings.push_back(fmt::format("{} has no effect: there is no option --{}; {}", variable, name, hint));
  }
  return warnings;
}

std::vector<std::string> environment_names() {
  std::vector<std::string> names;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text(*entry);
    names.emplace_back(text.substr(0, text.find('=')));
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace dtrain::cli
