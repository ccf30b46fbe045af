// Every kernel of detectors that is launched, as one kind of work: they are compiled apart from the others.
#pragma once

#include <tuple>
#include <type_traits>
#include <variant>

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
using DetectionKernels =
    decltype(std::tuple_cat(std::declval<OtherDetectionKernels>(), std::declval<DetectionKernelsOn<float>>(),
                            std::declval<DetectionKernelsOn<Bf16>>(), std::declval<DetectionKernelsOn<Half>>()));

template <typename List>
struct OneOf;
template <typename... Types>
struct OneOf<std::tuple<Types...>> {
  using Variant = std::variant<Types...>;
  template <typename Type>
  static constexpr bool has = (std::is_same_v<Type, Types> || ...);
};

// Itself a kernel, for whoever calls it thread by thread.
struct DetectionWork {
  OneOf<DetectionKernels>::Variant kernel;
  std::int64_t threads() const {
    return std::visit([](const auto& each) { return each.threads(); }, kernel);
  }
  void operator()(std::int64_t i) const {
    std::visit([i](const auto& each) { each(i); }, kernel);
  }
};
template <typename W>
concept IsDetectionKernel = OneOf<DetectionKernels>::has<W>;

}  // namespace dtrain::backend::cuda
