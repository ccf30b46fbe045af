// The names of torchrun's options, so that its command lines need few changes under `dtrain launch`. An option that has
// no equivalent is refused by its name, with the reason.
#pragma once

#include <optional>
#include <string>

#include "option_set.hpp"

namespace dtrain::config {

struct LaunchOptions;

struct TorchrunOptions {
  std::string module;  // run by `python -m`; empty: the command line is the whole command
  std::string run_id, role;
  std::optional<Path> log_dir;
  std::optional<std::string> nodes, redirects, tee;
  bool standalone = false, no_python = false;
};

// The fields of `options` must outlive the set. --nnodes and --log-dir replace, once all options have their values,
// what weaker sources say of --num-workers and --job-dir.
void bind_torchrun(OptionSet& set, LaunchOptions& options);

// Moves what the others say to dtrain's own options. Throws UsageError for what dtrain does not do.
void apply_torchrun(LaunchOptions& options);

}  // namespace dtrain::config
