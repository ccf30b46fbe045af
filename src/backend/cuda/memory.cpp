#include "memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "input/input_slots.hpp"
#include "update/muon.hpp"

namespace dtrain::backend::cuda {
namespace {

constexpr std::uint64_t kStep = 256;
constexpr int kMostSlots = 2;  // of optimizer state

double gibibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

}  // namespace

MemoryLayout::MemoryLayout(const Model& model, const Programs& programs, int samples) {
  const nn::Graph& graph = model.graph;
  const std::int64_t n = samples;
  add(Part::parameters, graph.parameter_count, sizeof(float));
  add(Part::statistics, graph.statistic_count, sizeof(float));
  add(Part::contribution, ContributionLayout(graph).size(), sizeof(float));
  add(Part::flags, graph.parameter_count, sizeof(std::uint8_t));
  add(Part::momenta, graph.statistic_count, sizeof(float));
  add(Part::weight_table, static_cast<std::int64_t>(model.weights.size()), sizeof(PackedWeight));
  add(Part::weights, model.copied, model.value_bytes());
  add(Part::weight_gradients, model.copied, model.value_bytes());
  add(Part::coefficients, model.coefficients, sizeof(float));
  add(Part::tickets, model.tickets, sizeof(std::uint32_t));
  add(Part::samples, 1, sizeof(Samples));
  add(Part::labels, n, sizeof(std::int32_t));
  add(Part::sample_ids, n, sizeof(std::uint32_t));
  add(Part::partners, n, sizeof(std::int32_t));
  add(Part::shares, n, sizeof(float));
  add(Part::class_weights, graph.classes(), sizeof(float));
  add(Part::key, 1, sizeof(DropoutKey));
  add(Part::update_step, 1, sizeof(UpdateStep));
  add(Part::loss_scale, 2, sizeof(float));
  add(Part::logits, n * nn::result_size(graph), sizeof(float));
  add(Part::metrics, SoftmaxLoss::kCounts, sizeof(float));
  const std::size_t arena = std::max(programs.training.arena_bytes(samples), programs.evaluation.arena_bytes(samples));
  add(Part::arena, static_cast<std::int64_t>(arena), 1);
}

void MemoryLayout::add(Part part, std::int64_t elements, std::size_t element_bytes) {
  offsets_[static_cast<std::size_t>(part)] = bytes_;
  const std::uint64_t bytes = static_cast<std::uint64_t>(elements) * element_bytes;
  bytes_ += (bytes + kStep - 1) / kStep * kStep;
}

std::uint64_t update_bytes(const Model& model, const CompileOptions& options) {
  if (!options.training) return 0;
  const int slots = options.optimizer ? nn::optimizer_slots(*options.optimizer) : kMostSlots;
  const auto state = static_cast<std::uint64_t>(slots * model.graph.parameter_count) * sizeof(float);
  const std::int64_t averaged = options.average ? model.graph.parameter_count + model.graph.statistic_count : 0;
  const bool muon = options.optimizer == nn::OptimizerKind::muon;
  return state + static_cast<std::uint64_t>(averaged) * sizeof(float) +
         (muon ? MuonLayout(model.graph, model.dtype).bytes : 0) +
         (options.layer_decay ? static_cast<std::uint64_t>(model.graph.parameter_count) * sizeof(float) : 0);
}

StepNeeds needs_of_step(const Model& model, const CompileOptions& options) {
  if (!options.training) return {};
  const auto contribution = static_cast<std::uint64_t>(ContributionLayout(model.graph).size()) * sizeof(float);
  return {.fixed = update_bytes(model, options) + static_cast<std::uint64_t>(options.waiting_sums) * contribution,
          .shards = options.shards,
          .as_bytes = options.batches_as_bytes};
}

std::uint64_t bytes_needed(const Model& model, const Programs& programs, int samples, const StepNeeds& needs) {
  const auto of_batch = [&](int shards, bool as_bytes) {
    return InputSlots::bytes_for(model.graph.input(), shards * samples, as_bytes) +
           InputSlots::object_bytes(nn::detection_of(model.graph), shards * samples);
  };
  // A batch that is computed and the next one, in slots that once had a shard of floats to warm up with.
  const std::uint64_t slot = std::max(of_batch(needs.shards, needs.as_bytes), of_batch(1, false));
  return MemoryLayout(model, programs, samples).bytes() + needs.fixed + 2 * slot;
}

std::uint64_t bytes_for_libraries(std::uint64_t memory) {
  constexpr std::uint64_t kShare = 16, kMost = std::uint64_t{2} << 30;
  return std::min(memory / kShare, kMost);
}

int largest_fitting(const Model& model, const Programs& programs, int wanted, const StepNeeds& needs,
                    std::uint64_t bytes) {
  int fits = 0, too_many = wanted + 1;
  while (too_many - fits > 1) {
    const int middle = fits + (too_many - fits) / 2;
    (bytes_needed(model, programs, middle, needs) <= bytes ? fits : too_many) = middle;
  }
  return fits;
}

std::string why_too_large(const Model& model, const Programs& programs, int samples, const StepNeeds& needs,
                          std::uint64_t free_bytes) {
  const std::uint64_t needed = bytes_needed(model, programs, samples, needs);
  if (needed <= free_bytes) return {};
  const int fits = largest_fitting(model, programs, samples, needs, free_bytes);
  return fmt::format("{} samples at once need {:.1f} GiB of the GPU's memory, {:.1f} GiB are left for them; {}",
                     samples, gibibytes(needed), gibibytes(free_bytes),
                     fits > 0 ? fmt::format("the most that fit are {}", fits) : "not even one sample fits");
}

}  // namespace dtrain::backend::cuda
