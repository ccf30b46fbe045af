#include "first_state.hpp"

#include <algorithm>

#include <dtrain/backend/checks.hpp>
#include <dtrain/nn/initialize.hpp>
#include <dtrain/nn/whiten.hpp>
#include <dtrain/train/batch_feed.hpp>

#include "export/float_images.hpp"

namespace dtrain::train {
namespace {

constexpr std::uint32_t kWhitenedSamples = 5000;
constexpr std::uint32_t kSamplesAtOnce = 100;

std::vector<float> first_images(const nn::Graph& graph, data::Loader& training) {
  const std::uint32_t wanted = std::min(kWhitenedSamples, training.size());
  std::vector<data::Slice> slices;
  for (std::uint32_t first = 0; first < wanted; first += kSamplesAtOnce) {
    slices.push_back({first, static_cast<int>(std::min(kSamplesAtOnce, wanted - first))});
  }
  training.start(0, slices);
  std::vector<float> images, room;
  while (const std::optional<data::Batch> batch = training.next()) {
    const float* const floats = float_images(host_batch(*batch), graph.input(), room);
    images.insert(images.end(), floats, floats + batch->n * graph.input().size());
  }
  return images;
}

}  // namespace

backend::ModelState first_state(const nn::Graph& graph, const TrainerOptions& options, data::Loader& training) {
  backend::ModelState state;
  state.parameters.resize(static_cast<std::size_t>(graph.parameter_count));
  state.statistics.resize(static_cast<std::size_t>(graph.statistic_count));
  state.optimizer.resize(state.parameters.size() * static_cast<std::size_t>(optimizer_slots(
                                                       options.optimizer.kind, options.local, options.compression)));
  nn::initialize_parameters(graph, options.seed, state.parameters, options.initializer);
  nn::initialize_statistics(graph, state.statistics);
  if (nn::wants_images(graph)) nn::whiten(graph, first_images(graph, training), state.parameters);
  backend::begin_average(options.optimizer, state);
  return state;
}

}  // namespace dtrain::train
