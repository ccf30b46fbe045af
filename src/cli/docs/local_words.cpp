#include "local_words.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/remote.hpp>
#include <dtrain/elastic/host_file.hpp>
#include <dtrain/nn/networks.hpp>
#include <dtrain/train/checkpoint.hpp>

#include "job/spec/job_folder.hpp"

namespace dtrain::cli {
namespace {

using WordSet = std::set<std::string>;

// A folder that this user cannot look into is none.
bool is_job(const Path& folder) {
  const job::JobFolder job{folder};
  std::error_code unreadable;
  return std::filesystem::exists(job.hosts(), unreadable) || std::filesystem::exists(job.events(), unreadable);
}

// Calls take(name as the person writes it, entry) for what stands in the folder that the begun word leads into.
template <typename Take>
void each_entry(const std::string& begun, const Path& here, Take take) {
  const std::size_t slash = begun.rfind('/');
  const std::string lead = slash == std::string::npos ? "" : begun.substr(0, slash + 1);
  const Path folder = lead.empty() ? here : lead.starts_with('/') ? Path(lead) : here / lead;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with('.')) take(lead + name, *entry);
  }
}

void add_folder(const std::string& name, const std::filesystem::directory_entry& entry, WordSet& words) {
  std::error_code error;
  if (entry.is_directory(error)) words.insert(name + "/");
}

WordSet hosts(const LocalPlaces& places) {
  const Path folder = !places.job.empty()     ? places.here / places.job
                      : !places.mount.empty() ? places.mount
                                              : places.here;
  WordSet words;
  for (const elastic::HostLine& host : elastic::parse_host_file(read_file(job::JobFolder{folder}.hosts())).hosts)
    words.insert(host.name);
  return words;
}

WordSet jobs(const std::string& begun, const LocalPlaces& places) {
  WordSet words;
  each_entry(begun, places.here, [&](const std::string& name, const auto& entry) {
    if (is_job(entry.path())) {
      words.insert(name);
    } else {
      add_folder(name, entry, words);
    }
  });
  if (!places.mount.empty() && is_job(places.mount)) words.insert(places.mount.string());
  return words;
}

WordSet networks(const std::string& begun, const LocalPlaces& places) {
  const auto names = nn::network_names();
  WordSet words(names.begin(), names.end());
  each_entry(begun, places.here, [&](const std::string& name, const auto& entry) {
    if (name.ends_with(".json") || name.ends_with(".onnx")) words.insert(name);
    add_folder(name, entry, words);
  });
  return words;
}

// "m/r20" of "m/r20-0010.safetensors".
WordSet checkpoints(const std::string& begun, const LocalPlaces& places) {
  constexpr std::string_view kEnding = ".safetensors";
  constexpr std::size_t kNumber = 5;
  WordSet words;
  each_entry(begun, places.here, [&](const std::string& name, const auto& entry) {
    add_folder(name, entry, words);
    if (!name.ends_with(kEnding) || name.size() <= kEnding.size() + kNumber) return;
    const std::string stem = name.substr(0, name.size() - kEnding.size());
    const std::string number = stem.substr(stem.size() - kNumber);
    if (number[0] == '-' && number.find_first_not_of("0123456789", 1) == std::string::npos)
      words.insert(stem.substr(0, stem.size() - kNumber));
  });
  return words;
}

// Whether the run looked for the best epoch, and its checkpoint is there.
bool has_best(const Path& prefix, const WordSet& epochs) try {
  return epochs.contains(std::to_string(train::best_checkpoint(prefix).epoch));
} catch (const DataError&) {
  return false;
}

// The epochs after which the prefix has a checkpoint.
WordSet epochs(const LocalPlaces& places) {
  WordSet words;
  if (places.prefix.empty() || data::is_remote(places.prefix)) return words;
  for (const train::CheckpointName& name : train::list_checkpoints(places.here / places.prefix)) {
    if (name.step == 0) words.insert(std::to_string(name.epoch));
  }
  if (!words.empty() && has_best(places.here / places.prefix, words)) words.insert("best");
  return words;
}

WordSet words_of(std::string_view kind, const std::string& begun, const LocalPlaces& places) {
  if (kind == "hosts") return hosts(places);
  if (kind == "jobs") return jobs(begun, places);
  if (kind == "networks") return networks(begun, places);
  if (kind == "checkpoints") return checkpoints(begun, places);
  if (kind == "epochs") return epochs(places);
  return {};
}

// The command that the words begin with, and how many of them name it.
std::pair<const Command*, std::size_t> begun_command(const CommandTree& tree, const std::vector<std::string>& words) {
  const std::size_t count = !words.empty() && tree.find_group(words.front()) ? 2 : 1;
  if (words.size() < count) return {nullptr, 0};
  return {tree.find(join(std::span(words).first(count), " ")), count};
}

}  // namespace

LocalPlaces places_of(const CommandTree& tree, const std::string& line) {
  LocalPlaces places;
  std::vector<std::string> words = split(line, line.find('\n') == line.npos ? ' ' : '\n');
  std::erase(words, "");
  if (!words.empty()) words.erase(words.begin());
  const auto [command, named] = begun_command(tree, words);
  if (!command) return places;
  bool has_first = false;
  for (std::size_t i = named; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t end = std::min(word.find('='), word.size());
    const config::Option* option = word.starts_with("--") ? command->options.find(word.substr(2, end - 2)) : nullptr;
    if (!word.starts_with('-') && !std::exchange(has_first, true)) places.prefix = word;
    if (!option || option->is_switch()) continue;
    const bool is_next = end == word.size();
    if (is_next && i + 1 == words.size()) break;
    const std::string value = is_next ? words[++i] : word.substr(end + 1);
    if (option->name() == "job-dir") places.job = value;
    if (option->name() == "model-prefix") places.prefix = value;
  }
  return places;
}

std::vector<std::string> local_words(std::string_view kind, const std::string& begun, const LocalPlaces& places) {
  WordSet words;
  try {
    words = words_of(kind, begun, places);
  } catch (const Error&) {  // there is no job: nothing to offer
  }
  std::erase_if(words, [&](const std::string& word) { return !word.starts_with(begun); });
  return {words.begin(), words.end()};
}

}  // namespace dtrain::cli
