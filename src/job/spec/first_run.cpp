#include "first_run.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <dtrain/base/error.hpp>

#include "config/checks/idle_options.hpp"

namespace dtrain::job {
namespace {

constexpr std::array<std::string_view, 2> kGroups = {"Augmentation", "Progressive resizing"};
constexpr std::array<std::string_view, 11> kNames = {
    "recipe", "finetune",       "num-examples",         "test-views",    "early-stop", "dtype",
    "tf32",   "gradient-dtype", "gradient-compression", "elastic-batch", "elastic-lr"};

bool changes_what_is_computed(const config::Option& option) {
  return std::ranges::count(kGroups, option.group) > 0 || std::ranges::count(kNames, option.name()) > 0;
}

// A folder that the user names may hold another run.
bool is_of_prefix(const std::vector<config::ConfigEntry>& options, const Path& prefix) {
  return std::ranges::any_of(options, [&](const config::ConfigEntry& entry) {
    return entry.key == "model-prefix" && !entry.is_list && Path(entry.values.front()) == prefix;
  });
}

}  // namespace

std::optional<Path> configuration_of_first_run(const JobFolder& folder) {
  std::error_code unreachable;
  for (const Path& file : {folder.first_configuration(), folder.configuration()}) {
    if (std::filesystem::exists(file, unreachable)) return file;
  }
  return std::nullopt;
}

std::optional<FirstRun> find_first_run(const config::TrainOptions& options, const config::OptionSet& set) {
  if (!options.model_prefix) return std::nullopt;
  const JobFolder of_prefix = folder_of_prefix(*options.model_prefix);
  std::vector<JobFolder> folders{of_prefix};
  if (options.job.is_job() || set.chosen("job-dir")) folders.insert(folders.begin(), JobFolder{options.job.folder});
  for (const JobFolder& folder : folders) {
    const auto file = configuration_of_first_run(folder);
    if (!file) continue;
    try {
      FirstRun run{.file = *file, .options = config::parse_config(read_file(*file), file->string())};
      if (folder.path == of_prefix.path || is_of_prefix(run.options, *options.model_prefix)) return run;
    } catch (const Error&) {  // the file was changed, and is no configuration now
    }
  }
  return std::nullopt;
}

std::vector<OtherRate> other_options(const std::vector<config::ConfigEntry>& first, const config::OptionSet& set,
                                     const config::TrainOptions& options) {
  if (!options.resume || options.benchmark) return {};
  config::TrainOptions saved, mine;
  config::OptionSet of_saved, of_mine;
  config::bind(of_saved, saved);
  config::bind(of_mine, mine);
  saved = mine = options;
  std::vector<const config::Option*> given;
  for (const config::ConfigEntry& entry : first) {
    config::Option* const option = entry.section == "train" && !entry.is_list ? of_saved.find(entry.key) : nullptr;
    if (!option || !changes_what_is_computed(*option)) continue;
    try {
      option->set(entry.values.front());
      given.push_back(option);
    } catch (const Error&) {  // of another version
    }
  }
  std::vector<OtherRate> others;
  for (const config::Option* option : given) {
    const std::string name = option->name(), text = option->show(), now = of_mine.find(name)->show();
    if (text != now && !set.chosen(name) && config::has_effect(saved, name)) others.push_back({name, text, now});
  }
  return others;
}

}  // namespace dtrain::job
