// What CudaExecutable says of its speed: each operation alone, many times over; how steps are done, and what is slow.
#include <fmt/format.h>

#include <algorithm>

#include <dtrain/backend/checks.hpp>
#include <dtrain/base/error.hpp>

#include "executable.hpp"

namespace dtrain::backend::cuda {

Profile CudaExecutable::profile(const HostBatch& batch, int repeats) {
  constexpr int kLeast = 20;  // so that a mark, which takes as long as a small kernel, does not count
  const int times = std::max(repeats, kLeast);
  DTRAIN_CHECK(options_.training, "compiled for evaluation only");
  pack_weights();
  upload_key({});
  compute_shard(inputs_.take(batch), {0, 0, batch.n});  // every operation finds input as in a step
  const Binding where = binding(programs_.training, batch.n);
  Profile profile;
  for (const Operation& operation : programs_.training.operations()) {
    std::vector<Call> calls;
    operation.bind(where, calls);
    const double seconds = device_->seconds_of(std::move(calls), times);
    const nn::Shape& shape = operation.shape;
    profile.of_shard.push_back({.name = operation.name,
                                .kind = operation.kind,
                                .shape = fmt::format("{}x{}x{}x{}", batch.n, shape.c, shape.h, shape.w),
                                .seconds = seconds});
  }
  return profile;
}

Json CudaExecutable::execution() const {
  for (const Recordings* const recordings : {&training_in_copies_, &training_}) {
    if (!recordings->empty()) return json_of(recordings->rbegin()->second->facts());
  }
  return {};
}

std::vector<std::string> CudaExecutable::take_warnings() {
  std::vector<const Recording*> all = update_.recordings();
  for (const Recordings* const recordings : {&training_, &training_in_copies_, &evaluation_}) {
    for (const auto& [n, recording] : *recordings) all.push_back(recording.get());
  }
  std::vector<std::string> news;
  for (const Recording* const recording : all) {
    if (judged_.contains(recording)) continue;
    const RecordingFacts facts = recording->facts();
    if (!facts.settled) continue;
    judged_.insert(recording);
    for (const std::string& warning : warnings_of(facts)) {
      if (warned_.insert(warning).second) news.push_back(warning);
    }
  }
  return news;
}

}  // namespace dtrain::backend::cuda
