// The heads of one picture as floats.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "../../detection/regions.hpp"
#include "detection_ops.hpp"

namespace dtrain::backend::cpu {

inline const nn::PictureObjects* objects_of(const Context& c, int sample) {
  return c.shard.objects ? c.shard.objects + c.first + sample : nullptr;
}

// Values of regions are float32.
inline std::vector<Region> regions_of(const Context& c, TensorId id, int sample) {
  const auto* const rows = static_cast<const float*>(c.sample(id, sample));
  return read_regions({rows, nn::kRegion, 1}, static_cast<std::size_t>(c.shape(id).h));
}

class WideHead {
 public:
  WideHead() = default;  // of no head: its values are null
  WideHead(const Context& c, TensorId head)
      : values_(static_cast<std::size_t>(c.shape(head).size())), channels_(c.shape(head).c) {}

  void read(const Context& c, TensorId from, const TensorKernels& kernels, int sample) {
    kernels.to_float(c.sample(from, sample), values_.data(), std::ssize(values_));
  }
  void clear() { std::ranges::fill(values_, 0.0f); }
  void write(const Context& c, TensorId to, const TensorKernels& kernels, int sample) const {
    kernels.from_float(values_.data(), c.sample(to, sample), std::ssize(values_));
  }
  const float* data() const { return values_.data(); }
  float* data() { return values_.data(); }
  HeadValues<const float> values() const { return {values_.empty() ? nullptr : values_.data(), channels_, 1}; }
  HeadValues<float> values() { return {values_.empty() ? nullptr : values_.data(), channels_, 1}; }

 private:
  std::vector<float> values_;
  int channels_ = 0;
};

class WideHeads {
 public:
  WideHeads(const Context& c, const HeadTensors& tensors) : classes_(c, tensors.classes), boxes_(c, tensors.boxes) {}

  void read(const Context& c, const HeadTensors& from, int sample) {
    classes_.read(c, from.classes, *from.of_classes, sample);
    boxes_.read(c, from.boxes, *from.of_boxes, sample);
  }
  void clear() {
    classes_.clear();
    boxes_.clear();
  }
  void write(const Context& c, const HeadTensors& to, int sample) const {
    classes_.write(c, to.classes, *to.of_classes, sample);
    boxes_.write(c, to.boxes, *to.of_boxes, sample);
  }
  Heads<const float> values() const { return {classes_.values(), boxes_.values()}; }
  Heads<float> values() { return {classes_.values(), boxes_.values()}; }

 private:
  WideHead classes_, boxes_;
};

}  // namespace dtrain::backend::cpu
