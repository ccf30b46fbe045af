#include "compression_options.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>

#include "config/option_values.hpp"
#include "config/train_options.hpp"
#include "conflicts.hpp"

namespace dtrain::config {
namespace {

using train::Compression;
using train::GradientCompression;

}  // namespace

void bind_compression(OptionSet& set, GradientCompression& compression) {
  set.add_custom(
      "--gradient-compression", "none|2bit[:T]|topk:SHARE|powersgd[:RANK]",
      fmt::format("how gradients travel between workers. 2bit: as T, -T or 0 (default T {}, of a shard's summed loss). "
                  "topk: the given share of them, the largest. powersgd: those of each layer as two factors with RANK "
                  "columns (default {}). What is not sent is kept and added to the gradients of the next step. In one "
                  "step in {}, and in the last step of an epoch, the workers send each other all of it, so that it is "
                  "part of the state; workers join and leave only at these steps. The result has other bits, the same "
                  "for any number of workers. Needs memory for the gradients of each shard of a worker and for two "
                  "copies of the state, and --transport tcp",
                  GradientCompression{}.threshold, GradientCompression{}.rank, train::kCompressionWindow),
      [&compression](const std::string& text) { compression = train::compression_from(text, compression); },
      [&compression] { return train::compression_text(compression); });
  set.add_custom(
         "--gc-type", "none|2bit", "MXNet's name for --gradient-compression",
         [&compression](const std::string& text) {
           static const std::vector<std::string> known = {"none", "2bit"};
           compression = train::compression_from(one_of(text, known), compression);
         },
         [&compression] { return compression.kind == Compression::two_bit ? "2bit" : "none"; })
      .same_as = "gradient-compression";
  set.add("--gc-threshold", compression.threshold, "T", "MXNet's name for the T of --gradient-compression 2bit:T",
          train::kThresholdRange);
}

void check_compression(const TrainOptions& options, backend::DType dtype, const OptionSet& set) {
  const GradientCompression& compression = options.job.compression;
  const bool threshold_counts = compression.kind == Compression::two_bit;
  if (set.chosen("gc-threshold") && !threshold_counts && compression.threshold != GradientCompression{}.threshold) {
    throw UsageError("--gc-threshold: only --gradient-compression 2bit has a threshold",
                     "add --gc-type 2bit, or leave --gc-threshold out");
  }
  if (!compression.any()) return;
  refuse("--gradient-compression " + train::compression_text(compression),
         {{options.local.any(), "--local-steps: what replicas exchange is no gradient",
           "leave one of them out; --gradient-dtype bfloat16 goes with --local-steps"},
          {options.job.gradient_dtype != backend::DType::float32,
           "--gradient-dtype bfloat16: gradients are compressed from float32", "leave --gradient-dtype out"},
          {dtype == backend::DType::float16,
           "--dtype float16: what is held back would have the loss scale of another step",
           "use --dtype bfloat16 or float32"},
          {options.job.transport == comm::Transport::nccl && set.chosen("transport"),
           "--transport nccl: NCCL sends floats as they are", "use --transport tcp"},
          {options.job.transport == comm::Transport::gloo, "--transport gloo: Gloo sends floats as they are",
           "use --transport tcp"}});
}

std::string compression_line(const GradientCompression& compression) {
  return fmt::format("Gradients travel as {}; one step in {} and the last of an epoch share what is held back",
                     train::compression_text(compression), compression.window);
}

}  // namespace dtrain::config
