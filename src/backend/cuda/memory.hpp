// What an executable needs of a GPU's memory: decided before anything is reserved.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "lowering.hpp"

namespace dtrain::backend::cuda {

// The programs of an executable; training is empty where nothing is trained.
struct Programs {
  Program training, evaluation;
};

enum class Part {
  parameters,
  statistics,
  contribution,
  flags,    // per parameter: ParameterFlag
  momenta,  // per statistic
  weight_table,
  weights,
  weight_gradients,
  coefficients,
  tickets,  // of one FoldedSums at a time
  samples,
  labels,
  sample_ids,
  partners,
  shares,
  class_weights,
  key,
  update_step,
  loss_scale,  // with room for what FindNotFinite finds
  logits,
  metrics,
  arena,
  count
};

// Offsets of the parts in one piece of memory, each a multiple of 256 bytes, for up to `samples`.
class MemoryLayout {
 public:
  MemoryLayout(const Model& model, const Programs& programs, int samples);
  std::size_t offset(Part part) const { return offsets_[static_cast<std::size_t>(part)]; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  void add(Part part, std::int64_t elements, std::size_t element_bytes);
  std::array<std::size_t, static_cast<std::size_t>(Part::count)> offsets_{};
  std::uint64_t bytes_ = 0;
};

// Bytes of what updates need beside the layout; optimizer state of the most slots where the rule is not known yet.
std::uint64_t update_bytes(const Model& model, const CompileOptions& options);

// What a step needs beside the layout.
struct StepNeeds {
  std::uint64_t fixed = 0;  // whatever the samples: for updates, and for contributions that wait
  int shards = 1;           // of a batch
  bool as_bytes = false;    // batches
};
StepNeeds needs_of_step(const Model& model, const CompileOptions& options);

// Bytes for `samples` a shard.
std::uint64_t bytes_needed(const Model& model, const Programs& programs, int samples, const StepNeeds& needs);
// What the driver and the libraries take of a GPU's memory only while an executable runs, and which it must leave them:
// kernels that are loaded at their first launch, recorded steps, the buffers of communicators.
std::uint64_t bytes_for_libraries(std::uint64_t memory);
// The largest number of samples, at most `wanted`, that fits into `bytes`; 0 where not even one does.
int largest_fitting(const Model& model, const Programs& programs, int wanted, const StepNeeds& needs,
                    std::uint64_t bytes);
// Empty where `samples` fit, else what is needed, what is there and what would fit, in one sentence.
std::string why_too_large(const Model& model, const Programs& programs, int samples, const StepNeeds& needs,
                          std::uint64_t free_bytes);

}  // namespace dtrain::backend::cuda
