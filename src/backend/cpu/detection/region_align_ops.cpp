#include <algorithm>
#include <span>
#include <vector>

#include "../../detection/region_align.hpp"
#include "picture_heads.hpp"
#include "region_ops.hpp"

namespace dtrain::backend::cpu {
namespace {

// Where the values of the regions lie: channels last, so that the channels of a point are neighbours where regions lie
// apart, and the points of a channel where they do not.
class AlignedPlaces {
 public:
  AlignedPlaces(const nn::RegionAlign& layer, const RegionAligner& aligner, int channels)
      : aligner_(aligner), apart_(layer.apart), channels_(channels) {}
  // Sets a point of a region to `values`, a channel each.
  void put(float* sample, std::int64_t region, int point, const float* values) const {
    if (apart_) {
      std::copy_n(values, channels_, sample + aligner_.pixel_apart(region, point) * channels_);
    } else {
      float* const row = sample + region * channels_ * aligner_.points() + point;
      for (int c = 0; c < channels_; ++c) row[c * aligner_.points()] = values[c];
    }
  }
  void take(const float* sample, std::int64_t region, int point, float* values) const {
    if (apart_) {
      std::copy_n(sample + aligner_.pixel_apart(region, point) * channels_, channels_, values);
    } else {
      const float* const row = sample + region * channels_ * aligner_.points() + point;
      for (int c = 0; c < channels_; ++c) values[c] = row[c * aligner_.points()];
    }
  }

 private:
  const RegionAligner& aligner_;
  bool apart_;
  int channels_;
};

// Calls use(region, point, taps) for each point of the regions that are there.
template <typename Use>
void each_point(const RegionAligner& aligner, std::span<const Region> regions, Use use) {
  std::vector<Tap> taps(static_cast<std::size_t>(aligner.points()) * kTaps);
  for (std::size_t region = 0; region < regions.size(); ++region) {
    if (!regions[region].is_there()) continue;
    aligner.taps_of(regions[region].box, taps);
    for (int point = 0; point < aligner.points(); ++point) {
      use(static_cast<std::int64_t>(region), point,
          std::span<const Tap>(taps).subspan(static_cast<std::size_t>(point) * kTaps, kTaps));
    }
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
    WideHead pyramid(c, pyramid_), result(c, output_);
    const int channels = c.shape(pyramid_).c;
    const AlignedPlaces places(layer_, aligner_, channels);
    std::vector<float> values(static_cast<std::size_t>(channels));
    for (int i = 0; i < c.count; ++i) {
      pyramid.read(c, pyramid_, kernels_, i);
      result.clear();
      each_point(aligner_, regions_of(c, regions_, i), [&](std::int64_t region, int point, std::span<const Tap> taps) {
        std::ranges::fill(values, 0.0f);
        for (const Tap& tap : taps) {
          const float* const from = pyramid.data() + std::int64_t{tap.pixel} * channels;
          for (std::size_t k = 0; k < values.size(); ++k) values[k] += tap.weight * from[k];
        }
        places.put(result.data(), region, point, values.data());
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
    const AlignedPlaces places(layer_, aligner_, channels);
    std::vector<float> slopes(static_cast<std::size_t>(channels));
    for (int i = 0; i < c.count; ++i) {
      gradient.read(c, gradient_, kernels_, i);
      result.clear();
      each_point(aligner_, regions_of(c, regions_, i), [&](std::int64_t region, int point, std::span<const Tap> taps) {
        places.take(gradient.data(), region, point, slopes.data());
        for (const Tap& tap : taps) {
          float* const to = result.data() + std::int64_t{tap.pixel} * channels;
          for (std::size_t k = 0; k < slopes.size(); ++k) to[k] += tap.weight * slopes[k];
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
