// The options of the run that a resumed one continues, as the folder of its records keeps them.
#pragma once

#include <optional>
#include <vector>

#include "config/config_file.hpp"
#include "job_folder.hpp"
#include "train_start.hpp"

namespace dtrain::job {

struct FirstRun {
  Path file;
  std::vector<config::ConfigEntry> options;
};

// The file of the first run of the folder; nullopt: there is none.
std::optional<Path> configuration_of_first_run(const JobFolder& folder);
// That of the run with this --model-prefix; nullopt where none is left, or where somebody damaged it.
std::optional<FirstRun> find_first_run(const config::TrainOptions& options, const config::OptionSet& set);

// The options beside those of optimizer and schedule that change what is computed, that the first run was given and
// this one was not, and that the checkpoint does not hold: those of augmentation above all. Pure.
std::vector<OtherRate> other_options(const std::vector<config::ConfigEntry>& first, const config::OptionSet& set,
                                     const config::TrainOptions& options);

}  // namespace dtrain::job
