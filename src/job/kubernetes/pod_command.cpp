#include "pod_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <string_view>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::job {
namespace {

using Words = std::vector<std::string>;

// Options that concern the machine where the user is, or that the pods' own way to start replaces.
bool is_of_here(const std::string& name) {
  static constexpr std::string_view kOfHere[] = {"launcher",       "job-dir",     "log-dir",    "detach",   "resume",
                                                 "cluster",        "env",         "ssh-config", "hostfile", "queue",
                                                 "sge-pe",         "sync-binary", "announce",   "priority", "retries",
                                                 "down-when-done", "job-queue"};
  return name.starts_with("kube-") || name.starts_with("yarn-") ||
         std::ranges::find(kOfHere, name) != std::end(kOfHere);
}

void append_option(const config::Option& option, Words& words) {
  const std::string text = option.given.value_or(option.show());
  if (option.is_switch()) {
    if (text == "true") words.push_back(option.shown_name());
    return;
  }
  for (const std::string& value : option.repeats ? split(text, config::kBetweenRepeated) : Words{text}) {
    words.push_back(option.shown_name());
    words.push_back(value);
  }
}

// What looks at one process has nothing to do in pods, which would fail.
void refuse_looks_of_here(const config::OptionSet& set) {
  for (const char* name : {"dry-run", "test-io"}) {
    const config::Option* option = set.find(name);
    if (!option || !set.chosen(name)) continue;
    const std::string text = option->given.value_or(option->show());
    if (text != "true" && text != "1") continue;
    throw UsageError(fmt::format("--{}: not supported by --launcher kubernetes, because it looks at one process", name),
                     "give --launcher local, without -n and --elastic");
  }
}

std::string name_of(const std::string& variable) { return variable.substr(0, variable.find('=')); }

// The coordinator's container has the variables of the Secret too, and passes them on to the workers by name. Those
// that would change the coordinator itself, and are no secrets, stand in its command instead.
bool is_of_secret(const std::string& variable) {
  constexpr std::array<std::string_view, 3> kOfCoordinator = {"HOME", "PATH", "TMPDIR"};
  constexpr std::array<std::string_view, 3> kItsLeads = {"LD_", "DTRAIN_", "DEEPLEARNING_"};
  const std::string name = name_of(variable);
  return std::ranges::find(kOfCoordinator, name) == kOfCoordinator.end() &&
         std::ranges::none_of(kItsLeads, [&](std::string_view lead) { return name.starts_with(lead); });
}

// Kubernetes takes these names for variables and for keys of a Secret.
void check_variable(const std::string& name) {
  constexpr std::string_view kOthers = "_.-";
  const auto fits = [&](unsigned char c) {
    return std::isalnum(c) != 0 || kOthers.find(static_cast<char>(c)) != kOthers.npos;
  };
  const bool begins =
      !name.empty() && (std::isalpha(static_cast<unsigned char>(name.front())) != 0 || name.front() == '_');
  if (begins && std::ranges::all_of(name, fits)) return;
  throw UsageError(fmt::format("--env {}: Kubernetes takes no variable of this name", name),
                   "use letters, digits, '_', '.' and '-', and begin with a letter or '_'");
}

// JSON, in which Kubernetes is told both, replaces other bytes.
bool is_utf8(const std::string& text) { return Json::parse(Json(text).dump(), "text").as_string() == text; }

void refuse_other_bytes(const Words& words) {
  for (const std::string& word : words) {
    if (is_utf8(word)) continue;
    throw UsageError(fmt::format("'{}' is not UTF-8, so Kubernetes cannot hand it to a program", word),
                     "rename the file, or put the bytes in a file on the volume");
  }
}

}  // namespace

Words variables_of_secret(const Words& variables) {
  Words chosen;
  for (const std::string& variable : variables) {
    check_variable(name_of(variable));
    if (!is_utf8(variable)) {
      throw UsageError(fmt::format("--env {}: its value is not UTF-8, so Kubernetes cannot hold it", name_of(variable)),
                       "put the bytes in a file on the volume");
    }
    if (is_of_secret(variable)) chosen.push_back(variable);
  }
  return chosen;
}

std::string pod_job_folder(const config::JobOptions& options, const config::OptionSet& set) {
  const config::Option& folder = *set.find("job-dir");
  const bool is_chosen = set.chosen("job-dir") && folder.origin != folder.legacy_variable;
  if (!is_chosen) return fmt::format("{}/jobs/{}", config::kPodFolder, options.kubernetes.name);
  std::string path = (Path(config::kPodFolder) / options.folder).lexically_normal().string();
  if (path == config::kPodFolder || path.starts_with(fmt::format("{}/", config::kPodFolder))) return path;
  throw UsageError(fmt::format("{} {}: outside of {}, where all pods mount the shared volume",
                               folder.origin == "--log-dir" ? "--log-dir" : "--job-dir", options.folder.string(),
                               config::kPodFolder),
                   "give a path on the volume, such as jobs/first, or leave it out");
}

std::vector<std::string> pod_command(const std::string& command, const config::JobOptions& options,
                                     const config::OptionSet& set, const std::vector<std::string>& program) {
  refuse_looks_of_here(set);
  Words words = split(command, ' ');
  for (const config::Option& option : set.options()) {
    if (option.positional() || !set.chosen(option.name()) || is_of_here(option.name())) continue;
    append_option(option, words);
  }
  for (const std::string& variable : options.environment) {
    words.insert(words.end(), {"--env", is_of_secret(variable) ? name_of(variable) : variable});
  }
  words.insert(words.end(), {"--launcher", "folder", "--job-dir", pod_job_folder(options, set)});
  if (set.find("resume") && set.chosen("model-prefix")) words.emplace_back("--resume");
  if (!program.empty()) words.emplace_back("--");
  words.insert(words.end(), program.begin(), program.end());
  refuse_other_bytes(words);
  return words;
}

}  // namespace dtrain::job
