// The throughput of a loader when nothing else runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include <dtrain/data/loader.hpp>

namespace dtrain::bench {

struct LoaderSpeed {
  std::uint64_t samples = 0;
  double seconds = 0;
  double rate() const { return seconds > 0 ? static_cast<double>(samples) / seconds : 0; }
};

// Loads one whole epoch in batches; on_batch gets the number of the batch, from 0.
void load_epoch(data::Loader& loader, std::uint32_t epoch, int batch_size,
                const std::function<bool(std::uint64_t batch, int samples)>& go_on);

// Measured from the second batch, so that starting threads does not count.
LoaderSpeed measure_loader(data::Loader& loader, int batch_size, std::chrono::duration<double> time);

}  // namespace dtrain::bench
