// Options of local steps: how many steps replicas take between two exchanges, and what an exchange does.
#pragma once

#include <dtrain/train/local_steps.hpp>

#include "config/train_options.hpp"

namespace dtrain::config {

void bind_local_steps(OptionSet& set, train::LocalSteps& local);

// Throws UsageError for options that contradict local steps, or that need them.
void check_local_steps(const TrainOptions& options, backend::DType dtype, const OptionSet& set);

// "4 replicas take 50 steps between two exchanges; outer optimizer nesterov, rate 0.7, momentum 0.9".
std::string local_steps_line(const train::LocalSteps& local, int replicas);

}  // namespace dtrain::config
