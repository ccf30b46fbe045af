#include "loader_speed.hpp"

#include <algorithm>

#include <dtrain/base/stop.hpp>
#include <dtrain/train/plan.hpp>

namespace dtrain::bench {

void load_epoch(data::Loader& loader, std::uint32_t epoch, int batch_size,
                const std::function<bool(std::uint64_t batch, int samples)>& go_on) {
  loader.start(epoch, train::evaluation_blocks({.samples = loader.size(), .global_batch = batch_size}, 0, 1));
  std::uint64_t number = 0;
  while (const auto batch = loader.next()) {
    if (!go_on(number++, batch->n)) return;
  }
}

LoaderSpeed measure_loader(data::Loader& loader, int batch_size, std::chrono::duration<double> time) {
  using Clock = std::chrono::steady_clock;
  LoaderSpeed speed;
  Clock::time_point begin;
  bool started = false, done = false;
  for (std::uint32_t epoch = 0; !done; ++epoch) {
    load_epoch(loader, epoch, batch_size, [&](std::uint64_t, int samples) {
      const auto now = Clock::now();
      if (!started) {
        started = true;
        begin = now;
        return true;
      }
      speed.samples += static_cast<std::uint64_t>(samples);
      speed.seconds = std::chrono::duration<double>(now - begin).count();
      done = speed.seconds >= time.count() || stop_signal() != 0;
      return !done;
    });
  }
  return speed;
}

}  // namespace dtrain::bench
