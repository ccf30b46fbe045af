// The data set that dtrain brings along: pictures of ten shapes, drawn from a seed.
#include <algorithm>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/parallel.hpp>

#include "sample_source.hpp"
#include "shapes_scene.hpp"

namespace dtrain::data {
namespace {

constexpr std::uint64_t kDrawnAtOnce = 2048;  // keeps memory small and all threads busy
constexpr std::uint32_t kUsualTrain = 10000, kUsualVal = 2000;

class Shapes : public SampleSource {
 public:
  explicit Shapes(const PrepareOptions& options)
      : seed_(options.seed),
        train_count_(options.train_count.value_or(kUsualTrain)),
        val_count_(options.val_count.value_or(kUsualVal)) {}

  std::uint64_t count(Split split) const override { return split == Split::train ? train_count_ : val_count_; }

  void for_each(Split split, const Take& take) const override {
    for (std::uint64_t first = 0; first < count(split); first += kDrawnAtOnce) {
      std::vector<Image> images(std::min(kDrawnAtOnce, count(split) - first));
      for_each_in_parallel(images.size(), [&](std::size_t i) { images[i] = draw(split, first + i); });
      for (std::size_t i = 0; i < images.size(); ++i) {
        if (!take(label_of(first + i), images[i])) return;
      }
    }
  }

 private:
  static std::uint8_t label_of(std::uint64_t position) {
    return static_cast<std::uint8_t>(position % kShapeNames.size());
  }

  Image draw(Split split, std::uint64_t position) const {
    return draw_shape(outlines_, label_of(position),
                      RandomStream(seed_, RandomUse::drawing, static_cast<std::uint32_t>(split),
                                   static_cast<std::uint32_t>(position)));
  }

  std::uint64_t seed_, train_count_, val_count_;
  Outlines outlines_;
};

}  // namespace

std::unique_ptr<SampleSource> open_shapes(const PrepareOptions& options) {
  if (!options.from.empty()) throw UsageError("shapes are drawn by dtrain: setting 'from' has no meaning for them");
  if (options.train_count == 0u || options.val_count == 0u) throw UsageError("shapes: both counts must be 1 or more");
  return std::make_unique<Shapes>(options);
}

}  // namespace dtrain::data
