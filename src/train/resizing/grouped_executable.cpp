#include <algorithm>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/train/image_sizes.hpp>

namespace dtrain::train {

// All sizes are compiled here, so that what does not fit is known before the first step.
GroupedExecutable::GroupedExecutable(nn::Graph graph, const std::vector<nn::Shape>& images, Compile compile)
    : SizedExecutable(std::move(graph), images.at(0), std::move(compile)), images_(images) {
  for (const nn::Shape& image : images_) on(image, true);
}

void GroupedExecutable::use(const nn::Shape& image) {
  if (image.c == 0) return;
  const auto found = std::ranges::find(images_, image);
  DTRAIN_CHECK(found != images_.end(), "images of a size that was not compiled for");
  present_ = static_cast<std::size_t>(found - images_.begin());
}

void GroupedExecutable::enqueue(const backend::HostBatch& batch, std::span<const backend::ShardRange> shards,
                                const backend::StepKey& key, backend::StepSink sink) {
  present().enqueue(batch, shards, key, sink);
}

backend::StepMetrics GroupedExecutable::evaluate(const backend::HostBatch& batch, std::span<const nn::ImageView> views,
                                                 std::span<float> logits) {
  return present().evaluate(batch, views, logits);
}

backend::Profile GroupedExecutable::profile(const backend::HostBatch& batch, int repeats) {
  return present().profile(batch, repeats);
}

void use_size(backend::Executable& executable, const nn::Shape& image) {
  if (auto* const grouped = dynamic_cast<GroupedExecutable*>(&executable)) grouped->use(image);
}

std::unique_ptr<GroupedExecutable> compile_grouped(const backend::Backend& backend, const nn::Graph& graph,
                                                   const backend::CompileOptions& options,
                                                   const std::vector<nn::Shape>& images) {
  return std::make_unique<GroupedExecutable>(graph, images, compile_with(backend, options));
}

}  // namespace dtrain::train
