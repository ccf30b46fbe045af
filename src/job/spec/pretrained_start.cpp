#include "pretrained_start.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/backend/checks.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/http.hpp>
#include <dtrain/train/weights.hpp>

#include "config/data_options.hpp"

namespace dtrain::job {
namespace {

std::string listed(const std::vector<std::string>& tensors) {
  constexpr std::size_t kMostShown = 8;
  return join_first(tensors, kMostShown, "; ");
}

std::string listed_classes(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNamed = 4;
  return join_first(names, kMostNamed, ", ");
}

// "rgb_mean [1, 3, 1, 1]" and "rgb_std [1, 3, 1, 1]", by which a model that `dtrain export` wrote prepares its pixels;
// "rgb_mean_2" where the network has a tensor of this name.
bool is_of_preprocessing(std::string_view tensor) {
  return tensor.starts_with("rgb_mean") || tensor.starts_with("rgb_std");
}

std::vector<std::string> unused_weights(const Path& file, const train::WeightsFit& fit,
                                        const train::SharedStore& store) {
  std::vector<std::string> unused = fit.unused;
  const bool may_hold_pixels = std::ranges::any_of(unused, is_of_preprocessing);
  if (!may_hold_pixels) return unused;
  const Json stated = train::preprocessing_of_weights(file, store);
  if (!stated.is_object() || !stated.find("rgb_mean")) return unused;
  std::erase_if(unused, is_of_preprocessing);
  return unused;
}

void report(const Path& file, const train::WeightsFit& fit, const nn::Graph& graph, const train::SharedStore& store,
            Reporter& reporter) {
  const std::string shown = net::shown_url(file.string());
  reporter.note(fmt::format("Loaded \"{}\": {} of the {} tensors of {}", shown, fit.fitted, fit.wanted, graph.name));
  if (!fit.set.empty()) reporter.note(fmt::format("{}: {}", shown, fit.set));
  if (!fit.new_head.empty()) reporter.note(fmt::format("The last layer begins anew: {}", fit.new_head));
  if (!fit.missing.empty()) {
    reporter.warn(fmt::format("{} of these tensors begin anew: {}", fit.missing.size(), listed(fit.missing)));
  }
  if (const std::vector<std::string> unused = unused_weights(file, fit, store); !unused.empty())
    reporter.warn(fmt::format("{} of the file's tensors are not used: {}", unused.size(), listed(unused)));
}

// Equally many classes of other names fit by shape, and mean something else.
std::string why_new_head(const config::TrainOptions& options, const train::SharedStore& store) {
  if (options.pretrained.new_head) return "setting 'new-head'";
  const std::vector<std::string> saved =
      config::class_names_of(train::preprocessing_of_weights(*options.pretrained.file, store));
  const std::vector<std::string>& names = options.data.class_names;
  if (saved.empty() || names.empty() || saved == names) return {};
  return fmt::format("the weights know the classes {}, the data have {}", listed_classes(saved), listed_classes(names));
}

}  // namespace

train::Checkpoint pretrained_start(const config::TrainOptions& options, const nn::Graph& graph, Reporter* reporter,
                                   const train::SharedStore& store) {
  const Path& file = *options.pretrained.file;
  train::StartingWeights start = train::load_weights({.file = file,
                                                      .new_head = why_new_head(options, store),
                                                      .seed = options.compute.seed,
                                                      .initializer = options.initializer,
                                                      .store = store},
                                                     graph);
  train::require_finite(start.checkpoint, file);
  if (reporter) report(file, start.fit, graph, store, *reporter);
  start.checkpoint.job.preprocessing = {};  // this run has its own, and classes of its own
  start.checkpoint.job.optimizer = options.optimizer;
  start.checkpoint.state.optimizer.assign(
      static_cast<std::size_t>(train::optimizer_slots(options.optimizer.kind, options.local, options.job.compression)) *
          start.checkpoint.state.parameters.size(),
      0.0f);
  backend::begin_average(options.optimizer, start.checkpoint.state);
  return std::move(start.checkpoint);
}

void fetch_pretrained(const config::TrainOptions& options, Reporter& reporter, const train::SharedStore& store) {
  const auto tell = [&](const std::string& line) { reporter.note(line); };
  if (options.pretrained.file) train::fetch_weights(*options.pretrained.file, tell, store);
}

}  // namespace dtrain::job
