// What a detector found in the pictures of an evaluation, by all ranks, as average precision.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dtrain/backend/backend.hpp>
#include <dtrain/comm/communicator.hpp>
#include <dtrain/train/trainer.hpp>

namespace dtrain::train {

// Communicator::all_gather() for megabytes: the bytes of all ranks, by rank, in pieces that travel one after the other.
std::vector<std::string> gather_in_pieces(comm::Communicator& comm, ByteView mine);

// One thread. Each rank compares what it found itself, so that masks do not travel; only what matched what does.
class DetectionScore {
 public:
  explicit DetectionScore(const nn::Graph& graph);
  // `batch` has objects; `results` is what Executable::evaluate() gave for it.
  void add(const backend::HostBatch& batch, std::span<const float> results);
  // All ranks together: fills boxes, masks and accuracy; loss is NaN.
  void finish(comm::Communicator& comm, EvaluationReport& report) const;

 private:
  const nn::Detections& layer_;
  std::size_t classes_;
  AveragePrecision boxes_;
  std::optional<AveragePrecision> masks_;  // of a detector that finds masks
};

}  // namespace dtrain::train
