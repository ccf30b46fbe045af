#include <memory>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/train/progressive_sizes.hpp>

namespace dtrain::train {

using backend::HostBatch;

ResizingExecutable::ResizingExecutable(nn::Graph graph, const ProgressiveSizes& sizes, Compile compile)
    : SizedExecutable(graph, sizes.at(0, graph.input()), std::move(compile)), sizes_(sizes) {}

void ResizingExecutable::begin_step(double done) {
  const nn::Shape image = sizes_.at(done, graph().input());
  if (image != home()) move_home(image);
}

const HostBatch& ResizingExecutable::resized(const HostBatch& batch) {
  batch_ = batch;
  if (home() == graph().input() || batch.n == 0) return batch_;
  constexpr std::size_t kAlignment = 64;
  DTRAIN_CHECK(batch.images, "images of floats can be resized, bytes cannot");
  const std::size_t floats = static_cast<std::size_t>(batch.n) * static_cast<std::size_t>(home().size());
  room_.resize(floats + kAlignment / sizeof(float));
  void* place = room_.data();
  std::size_t bytes = room_.size() * sizeof(float);
  auto* const images = static_cast<float*>(std::align(kAlignment, floats * sizeof(float), place, bytes));
  resize_images(batch.images, batch.n, graph().input(), home(), images);
  batch_.images = images;
  return batch_;
}

void ResizingExecutable::enqueue(const HostBatch& batch, std::span<const backend::ShardRange> shards,
                                 const backend::StepKey& key, backend::StepSink sink) {
  on(home(), true).enqueue(resized(batch), shards, key, sink);
}

backend::StepMetrics ResizingExecutable::evaluate(const HostBatch& batch, std::span<const nn::ImageView> views,
                                                  std::span<float> logits) {
  return on(graph().input(), false).evaluate(batch, views, logits);
}

std::uint64_t ResizingExecutable::planned_bytes() const {
  return SizedExecutable::planned_bytes() + room_.capacity() * sizeof(float);
}

backend::Profile ResizingExecutable::profile(const HostBatch& batch, int repeats) {
  return on(home(), true).profile(resized(batch), repeats);
}

std::unique_ptr<ResizingExecutable> compile_resizing(const backend::Backend& backend, const nn::Graph& graph,
                                                     const backend::CompileOptions& options,
                                                     const ProgressiveSizes& sizes) {
  return std::make_unique<ResizingExecutable>(graph, sizes, compile_with(backend, options));
}

}  // namespace dtrain::train
