// Options of compressed gradients: --gradient-compression, and MXNet's names for it.
#pragma once

#include <string>

#include <dtrain/backend/dtype.hpp>
#include <dtrain/train/gradient_compression.hpp>

#include "config/option_set.hpp"

namespace dtrain::config {

struct TrainOptions;

void bind_compression(OptionSet& set, train::GradientCompression& compression);

// Throws UsageError for options that contradict compressed gradients, or that need them.
void check_compression(const TrainOptions& options, backend::DType dtype, const OptionSet& set);

// "Gradients travel as 2bit:0.5; one step in 32 and the last of an epoch share what is held back".
std::string compression_line(const train::GradientCompression& compression);

}  // namespace dtrain::config
