// PREFIX-0001.json: what a checkpoint is, in JSON (schema "dtrain.checkpoint/1"), with the hashes of its tensors.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/train/checkpoint.hpp>

#include "checkpoint_tensors.hpp"

namespace dtrain::train {

// How to recognise the one file of tensors that belongs to a manifest.
struct DataFile {
  std::uint64_t size = 0;
  std::string header_sha256;  // of its bytes before the first tensor
};

struct Manifest {
  Checkpoint checkpoint;  // all but the tensors
  std::uint64_t updates = 0;
  backend::LossScale loss_scale;
  DataFile data;
  std::vector<TensorHash> tensors;  // in the order of state_tensors
};

// [loss_sum, correct, top_k_correct, count]
Json totals_json(const backend::StepMetrics& totals);
backend::StepMetrics totals_from(const Json& json);  // DataError

Json to_json(const BestEpoch& best);
BestEpoch best_from(const Json& json);  // DataError

Json to_json(const backend::LossScale& scale);
backend::LossScale loss_scale_from(const Json& json);  // DataError

std::string write_manifest(const Checkpoint& checkpoint, const DataFile& data, std::span<const TensorHash> tensors);

// The text of a manifest with what an evaluation found behind its save; nullopt: none is due. Throws as below.
std::optional<std::string> with_evaluation(std::string_view text, std::string_view source, const BestEpoch& best);

// Throws DataError naming `source` when the text is not a manifest, is of a newer schema, or was changed after it was
// written.
Manifest parse_manifest(std::string_view text, std::string_view source);

}  // namespace dtrain::train
