#include "pretrained_start.hpp"

#include <fmt/format.h>

#include <dtrain/backend/checks.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/train/weights.hpp>

namespace dtrain::job {
namespace {

std::string listed(const std::vector<std::string>& tensors) {
  constexpr std::size_t kMostShown = 8;
  return join_first(tensors, kMostShown, "; ");
}

void report(const Path& file, const train::WeightsFit& fit, const nn::Graph& graph, Reporter& reporter) {
  reporter.note(
      fmt::format("Loaded \"{}\": {} of the {} tensors of {}", file.string(), fit.fitted, fit.wanted, graph.name));
  if (!fit.new_head.empty()) reporter.note(fmt::format("The last layer begins anew: {}", fit.new_head));
  if (!fit.missing.empty()) {
    reporter.warn(fmt::format("{} of these tensors begin anew: {}", fit.missing.size(), listed(fit.missing)));
  }
  if (!fit.unused.empty()) {
    reporter.warn(fmt::format("{} of the file's tensors are not used: {}", fit.unused.size(), listed(fit.unused)));
  }
}

}  // namespace

train::Checkpoint pretrained_start(const config::TrainOptions& options, const nn::Graph& graph, Reporter* reporter) {
  const Path& file = *options.pretrained.file;
  train::StartingWeights start =
      train::load_weights({.file = file, .new_head = options.pretrained.new_head, .seed = options.compute.seed}, graph);
  if (reporter) report(file, start.fit, graph, *reporter);
  start.checkpoint.job.preprocessing = {};  // this run has its own, and classes of its own
  start.checkpoint.job.optimizer = options.optimizer;
  start.checkpoint.state.optimizer.assign(
      static_cast<std::size_t>(train::optimizer_slots(options.optimizer.kind, options.local)) *
          start.checkpoint.state.parameters.size(),
      0.0f);
  backend::begin_average(options.optimizer, start.checkpoint.state);
  return std::move(start.checkpoint);
}

}  // namespace dtrain::job
