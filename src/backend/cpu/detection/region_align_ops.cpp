#include <algorithm>
#include <span>
#include <vector>

#include "../../detection/region_align.hpp"
#include "picture_heads.hpp"
#include "region_ops.hpp"

namespace dtrain::backend::cpu {
namespace {

// The values of the regions of one sample, as blocks of [points][channels]. They lie so in the tensor where regions lie
// apart; else the points of a channel are neighbours there.
class RegionBlocks {
 public:
  RegionBlocks(const nn::RegionAlign& layer, const RegionAligner& aligner, int channels)
      : aligner_(aligner), planes_(select_kernels().float32), apart_(layer.apart), channels_(channels) {
    if (!apart_) block_.resize(static_cast<std::size_t>(size()));
  }
  // Memory for the block of a region, which end() puts into the sample.
  float* begin(float* sample, std::int64_t region) { return apart_ ? place_apart(sample, region) : block_.data(); }
  void end(float* sample, std::int64_t region) const {
    if (!apart_) planes_.to_planes(block_.data(), channels_, aligner_.points(), sample + region * size());
  }
  const float* read(const float* sample, std::int64_t region) {
    if (apart_) return place_apart(sample, region);
    planes_.from_planes(sample + region * size(), channels_, aligner_.points(), block_.data());
    return block_.data();
  }

 private:
  std::int64_t size() const { return std::int64_t{channels_} * aligner_.points(); }
  template <typename Float>
  Float* place_apart(Float* sample, std::int64_t region) const {
    return sample + aligner_.pixel_apart(region, 0) * channels_;
  }

  const RegionAligner& aligner_;
  const TensorKernels& planes_;
  const bool apart_;
  const int channels_;
  std::vector<float> block_;  // of a region that does not lie so
};

// Calls use(region, taps of all points) for the regions that are there.
template <typename Use>
void each_region(const RegionAligner& aligner, std::span<const Region> regions, Use use) {
  std::vector<Tap> taps(static_cast<std::size_t>(aligner.points()) * kTaps);
  for (std::size_t region = 0; region < regions.size(); ++region) {
    if (!regions[region].is_there()) continue;
    aligner.taps_of(regions[region].box, taps);
    use(static_cast<std::int64_t>(region), taps.data());
  }
}

class RegionAlignOp final : public ChunkOp {
 public:
  RegionAlignOp(const nn::RegionAlign& layer, const TensorKernels& kernels, TensorId pyramid, TensorId regions,
                TensorId output)
      : layer_(layer), aligner_(layer), kernels_(kernels), pyramid_(pyramid), regions_(regions), output_(output) {
    kind = "region_align";
    reads = {pyramid, regions};
    writes = {output};
  }
  void run(Context& c) override {
    WideHead result(c, output_);
    const int channels = c.shape(pyramid_).c;
    RegionBlocks blocks(layer_, aligner_, channels);
    for (int i = 0; i < c.count; ++i) {
      result.clear();
      each_region(aligner_, regions_of(c, regions_, i), [&](std::int64_t region, const Tap* taps) {
        float* const block = blocks.begin(result.data(), region);
        for (std::int64_t point = 0; point < aligner_.points(); ++point) {
          kernels_.gather(c.sample(pyramid_, i), channels, taps + point * kTaps, kTaps, block + point * channels);
        }
        blocks.end(result.data(), region);
      });
      result.write(c, output_, kernels_, i);
    }
  }

 private:
  nn::RegionAlign layer_;
  RegionAligner aligner_;
  const TensorKernels& kernels_;
  TensorId pyramid_, regions_, output_;
};

class RegionAlignGradient final : public ChunkOp {
 public:
  RegionAlignGradient(const nn::RegionAlign& layer, const TensorKernels& kernels, TensorId regions, TensorId gradient,
                      TensorId result)
      : layer_(layer), aligner_(layer), kernels_(kernels), regions_(regions), gradient_(gradient), result_(result) {
    kind = "region_align_gradient";
    reads = {regions, gradient};
    writes = {result};
  }
  void run(Context& c) override {
    WideHead gradient(c, gradient_), result(c, result_);
    const int channels = c.shape(result_).c;
    RegionBlocks blocks(layer_, aligner_, channels);
    for (int i = 0; i < c.count; ++i) {
      gradient.read(c, gradient_, kernels_, i);
      result.clear();
      each_region(aligner_, regions_of(c, regions_, i), [&](std::int64_t region, const Tap* taps) {
        const float* const block = blocks.read(gradient.data(), region);
        for (std::int64_t point = 0; point < aligner_.points(); ++point) {
          select_kernels().scatter(block + point * channels, channels, taps + point * kTaps, kTaps, result.data());
        }
      });
      result.write(c, result_, kernels_, i);
    }
  }

 private:
  nn::RegionAlign layer_;
  RegionAligner aligner_;
  const TensorKernels& kernels_;
  TensorId regions_, gradient_, result_;
};

}  // namespace

std::unique_ptr<Op> make_region_align(const nn::RegionAlign& layer, const TensorKernels& kernels, TensorId pyramid,
                                      TensorId regions, TensorId output) {
  return std::make_unique<RegionAlignOp>(layer, kernels, pyramid, regions, output);
}
std::unique_ptr<Op> make_region_align_gradient(const nn::RegionAlign& layer, const TensorKernels& kernels,
                                               TensorId regions, TensorId gradient, TensorId pyramid_gradient) {
  return std::make_unique<RegionAlignGradient>(layer, kernels, regions, gradient, pyramid_gradient);
}

}  // namespace dtrain::backend::cpu
