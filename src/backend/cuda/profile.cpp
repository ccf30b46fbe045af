// CudaExecutable::profile: each operation alone, as often as asked for.
#include <fmt/format.h>

#include <chrono>

#include <dtrain/backend/checks.hpp>
#include <dtrain/base/error.hpp>

#include "executable.hpp"

namespace dtrain::backend::cuda {

Json CudaExecutable::profile(const HostBatch& batch, int repeats) {
  DTRAIN_CHECK(options_.training, "compiled for evaluation only");
  pack_weights();
  upload_key({});
  compute_shard(inputs_.take(batch), {0, 0, batch.n});  // every operation finds input as in a step
  const Binding where = binding(programs_.training, batch.n);
  Json rows = Json::array();
  for (const Operation& operation : programs_.training.operations()) {
    std::vector<Call> calls;
    operation.bind(where, calls);
    const std::unique_ptr<Recording> alone = device_->record(std::move(calls));
    alone->run();
    device_->synchronize();
    const auto start = std::chrono::steady_clock::now();
    for (int repeat = 0; repeat < repeats; ++repeat) alone->run();
    device_->synchronize();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    const nn::Shape& shape = operation.shape;
    rows.push_back(Json::object({{"op", operation.name},
                                 {"kind", operation.kind},
                                 {"shape", fmt::format("{}x{}x{}x{}", batch.n, shape.c, shape.h, shape.w)},
                                 {"calls", repeats},
                                 {"seconds", time.count()},
                                 {"bare_seconds", 0.0}}));
  }
  return rows;
}

}  // namespace dtrain::backend::cuda
