// Kernels of detectors that always come in one order.
#pragma once

#include "../lowering.hpp"

namespace dtrain::backend::cuda {

// The items with the greatest keys.
template <typename Emit>
void emit_select(const Emit& emit, const std::uint32_t* keys, const Segments& segments, const SelectTensors& to,
                 const Binding& b) {
  const SelectRoom room = to.at(b);
  for (std::int32_t shift = 32 - kDigitBits; shift >= 0; shift -= kDigitBits) {
    emit(CountDigits{keys, segments, room, b.n, shift});
    emit(SumDigits{segments, room, b.n});
    emit(PickDigit{segments, room, b.n, shift});
  }
  emit(CountPicked{keys, segments, room, b.n});
  emit(PlacePicked{keys, segments, room, b.tensor<std::int32_t>(to.picks), b.n});
}

// The boxes that no better one overlaps by more than the threshold, from those that were given. Of a group, too, not
// more are kept than of all.
template <typename Emit>
void emit_suppress(const Emit& emit, const SuppressTensors& boxes, float threshold, const Binding& b) {
  const BoxGroups in = boxes.in(b.n);
  auto* const ranked = b.tensor<RatedBox>(boxes.ranked);
  auto* const bits = b.tensor<std::uint64_t>(boxes.bits);
  auto* const kept_before = b.tensor<std::int32_t>(boxes.kept_before);
  emit(RankBoxes{b.tensor<RatedBox>(boxes.given), ranked, in});
  emit(OverlapBits{ranked, bits, in, threshold});
  for (std::int32_t word = 0; word < in.words(); ++word) {
    emit(KeepBest{ranked, bits, b.tensor<std::uint64_t>(boxes.dropped), kept_before, in, boxes.most, word});
  }
  emit(MergeKept{ranked, kept_before, b.tensor<RatedBox>(boxes.best), b.tensor<std::int32_t>(boxes.found), in,
                 boxes.most});
}

// Sets so many bytes to 0, and up to three behind them.
template <typename Emit>
void emit_zeros(const Emit& emit, void* to, std::int64_t bytes) {
  emit(ClearFloats{static_cast<float*>(to), packs_of(bytes, sizeof(float))});
}

}  // namespace dtrain::backend::cuda
