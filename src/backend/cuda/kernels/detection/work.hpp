// Every kernel of detectors that is launched, as one kind of work: they are compiled apart from the others.
#pragma once

#include <tuple>

#include "../one_of.hpp"
#include "align.hpp"
#include "losses.hpp"
#include "results.hpp"

namespace dtrain::backend::cuda {

// First those on values of a type.
template <typename T>
using DetectionKernelsOn =
    std::tuple<KeepLevelPixels<T>, JoinLevels<T>, TakeLevel<T>, EnlargePixels<T>, EnlargePixelsGradient<T>,
               KeepRegionPixels<T>, AnchorKeys<T>, ProposedBoxes<T>, AlignRegions<T>, AlignRegionsGradient<T>,
               AnchorLoss<T>, DrawnAnchorLoss<T>, RegionHeadLoss<T>, MaskLoss<T>, ScoreKeys<T>, ScoredBoxes<T>,
               ClassifiedBoxes<T>, WriteFound<T>>;
using OtherDetectionKernels =
    std::tuple<PartOverlaps, BestOverlaps, MatchAnchors, CountDigits, SumDigits, PickDigit, CountPicked, PlacePicked,
               RankBoxes, OverlapBits, KeepBest, MergeKept, WriteBoxes, MatchItems, DrawItems, PlaceItems, FindTaps,
               FindSpans, ListRegions, SumTerms, FinishTerms, CountMatches, ShareOfMatches, DrawKeys, CountRegions,
               KeepObjects, WriteDetections, ClearFloats>;
struct DetectionKernels
    : TypesOf<OtherDetectionKernels, DetectionKernelsOn<float>, DetectionKernelsOn<Bf16>, DetectionKernelsOn<Half>> {};

// Itself a kernel, for whoever calls it thread by thread.
struct DetectionWork {
  OneOf<DetectionKernels> kernel;
  std::int64_t threads() const {
    return kernel.visit([](const auto& each) { return each.threads(); });
  }
  void operator()(std::int64_t i) const {
    kernel.visit([i](const auto& each) { each(i); });
  }
};
template <typename W>
concept IsDetectionKernel = IsOf<W, DetectionKernels>;

}  // namespace dtrain::backend::cuda
