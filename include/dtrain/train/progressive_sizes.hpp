// Progressive resizing, as MosaicML's Composer has it: a run begins on smaller images, which cost less, and ends on
// whole ones. Networks have fixed shapes, so each size has an executable of its own, which takes over the state of the
// one before. The size is a pure function of the samples seen, and an image is made smaller by itself, so neither a
// resume nor the number of workers changes a bit.
#pragma once

#include <memory>
#include <vector>

#include <dtrain/base/value_range.hpp>
#include <dtrain/train/image_sizes.hpp>

namespace dtrain::train {

// The shares are those of the samples of the whole run: during the first `delay` of them images have the initial scale,
// during the last `finetune` they are whole, and in between the scale rises linearly.
struct ProgressiveSizes {
  bool enabled = false;
  double initial_scale = 0.5;  // of height and width
  double delay = 0.5, finetune = 0.2;
  int increment = 4;  // pixels of which height and width are a multiple, but where images are whole
  bool any() const { return enabled; }
  // Where the share `done` of the run is over.
  nn::Shape at(double done, const nn::Shape& whole) const;
  // The sizes of a run, each once, in their order. Where height and width change nearly together, a size in between
  // that lasts for less than one of 64 (h + w) parts of the rise may be missing.
  std::vector<nn::Shape> all(const nn::Shape& whole) const;
  friend bool operator==(const ProgressiveSizes&, const ProgressiveSizes&) = default;
};
inline constexpr ValueRange kInitialScaleRange{.low = 0, .high = 1, .low_is_out = true};
inline constexpr ValueRange kSizeShareRange = between(0, 1);
inline constexpr ValueRange kSizeIncrementRange = between(1, 1024);

// Bilinear, as PyTorch's interpolate without aligned corners: [n, c, from.h, from.w] to [n, c, to.h, to.w].
void resize_images(const float* images, int n, const nn::Shape& from, const nn::Shape& to, float* resized);

// An executable for the graph whose steps compute on smaller images; evaluations see whole ones. Batches are whole and
// of floats.
class ResizingExecutable final : public SizedExecutable {
 public:
  ResizingExecutable(nn::Graph graph, const ProgressiveSizes& sizes, Compile compile);

  // Comes before the step that begins when this share of the run is over. While nothing is enqueued.
  void begin_step(double done);
  const nn::Shape& image() const { return home(); }

  void enqueue(const backend::HostBatch& batch, std::span<const backend::ShardRange> shards,
               const backend::StepKey& key, backend::StepSink sink) override;
  using backend::HostExecutable::evaluate;
  backend::StepMetrics evaluate(const backend::HostBatch& batch, std::span<const nn::ImageView> views,
                                std::span<float> logits) override;
  std::uint64_t planned_bytes() const override;
  backend::Profile profile(const backend::HostBatch& batch, int repeats) override;

 private:
  const backend::HostBatch& resized(const backend::HostBatch& batch);

  const ProgressiveSizes sizes_;
  std::vector<float> room_;
  backend::HostBatch batch_;  // of the work that is enqueued
};

// `backend` must outlive it. Throws what with_image() throws, for the size of the first step.
std::unique_ptr<ResizingExecutable> compile_resizing(const backend::Backend& backend, const nn::Graph& graph,
                                                     const backend::CompileOptions& options,
                                                     const ProgressiveSizes& sizes);

}  // namespace dtrain::train
