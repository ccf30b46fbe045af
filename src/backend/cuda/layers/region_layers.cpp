// Regions of two-stage detectors, and what is seen in them, both ways. No gradient goes through regions.
#include <algorithm>

#include "detection_calls.hpp"

namespace dtrain::backend::cuda {

TensorId Lowering::new_room(std::int64_t bytes_of_sample) {
  return program_.add_tensor([=](int n) { return static_cast<std::size_t>(n * bytes_of_sample); });
}

SelectTensors Lowering::new_select(const Segments& segments) {
  constexpr std::int64_t kCount = sizeof(std::int32_t);
  const std::int64_t parts = std::int64_t{segments.count} * segments.parts;
  return {new_room(parts * kDigits * kCount), new_room(std::int64_t{segments.count} * kDigits * kCount),
          new_room(segments.count * std::int64_t{sizeof(SelectState)}), new_room(2 * parts * kCount),
          new_room(segments.picks * kCount)};
}

SuppressTensors Lowering::new_suppression(std::int32_t groups, std::int32_t size, std::int32_t most) {
  constexpr std::int64_t kBox = sizeof(RatedBox), kCount = sizeof(std::int32_t), kWord = sizeof(std::uint64_t);
  SuppressTensors tensors{.groups = groups, .size = size, .most = most};
  const std::int64_t boxes = std::int64_t{groups} * size, words = tensors.in(1).words();
  tensors.given = new_room(boxes * kBox);
  tensors.ranked = new_room(boxes * kBox);
  tensors.bits = new_room(boxes * words * kWord);
  tensors.dropped = new_room(groups * words * kWord);
  tensors.kept_before = new_room(groups * (size + std::int64_t{1}) * kCount);
  tensors.best = new_room(most * kBox);
  tensors.found = new_room(kCount);
  return tensors;
}

TensorId Lowering::new_regions(int index) {
  shapes_[at(index)] = node(index).output;
  return values_[at(index)] = new_floats(node(index).output.size());
}

bool Lowering::forward_region_layer(int index) {
  const nn::Node& n = node(index);
  if (const auto* proposals = as<nn::Proposals>(n)) {
    propose(index, *proposals);
  } else if (const auto* align = as<nn::RegionAlign>(n)) {
    align_regions(index, *align);
  } else if (const auto* found = as<nn::FoundRegions>(n)) {
    find_regions(index, *found);
  } else {
    return false;
  }
  return true;
}

void Lowering::propose(int index, const nn::Proposals& layer) {
  const AnchorGrid grid = anchor_grid(anchors_of(layer), layer.levels, {layer.image_height, layer.image_width});
  const std::int32_t of_level = training_ ? 2 * layer.candidates : layer.candidates;
  Segments segments{};
  for (int level = 0; level < layer.levels.count; ++level) {
    segments.add(grid.first[level + 1] - grid.first[level], of_level);
  }
  std::int32_t largest = 0;
  for (int level = 0; level < segments.count; ++level) largest = std::max(largest, segments.of[level].take);
  const SelectTensors select = new_select(segments);
  const SuppressTensors boxes =
      new_suppression(segments.count, largest, training_ ? 2 * layer.candidates : layer.regions);
  const TensorId logits = value(node(index).inputs[0]), codes = value(node(index).inputs[1]);
  const TensorId y = new_regions(index);
  const TensorId keys = new_room(grid.anchors() * std::int64_t{sizeof(std::uint32_t)});
  std::vector<TensorId> touches{logits, codes, keys, y};
  select.touch(touches);
  boxes.touch(touches);
  add(index, ".forward", touches,
      [=, is_whole = !training_, threshold = layer.overlap_threshold, regions = layer.regions]<typename T>(
          T, const Binding& b, auto& emit) {
        auto* const key = b.tensor<std::uint32_t>(keys);
        emit(AnchorKeys<T>{b.tensor<T>(logits), key, grid, b.n});
        emit_select(emit, key, segments, select, b);
        emit(ProposedBoxes<T>{b.samples, b.tensor<T>(logits), b.tensor<T>(codes), b.tensor<std::int32_t>(select.picks),
                              b.tensor<RatedBox>(boxes.given), grid, segments, boxes.in(b.n)});
        emit_suppress(emit, boxes, threshold, b);
        if (is_whole) emit(WriteBoxes{b.tensor<RatedBox>(boxes.best), b.tensor<float>(y), b.n, regions, false});
      });
  if (training_) draw_regions(index, layer, boxes, y);
}

void Lowering::draw_regions(int index, const nn::Proposals& layer, const SuppressTensors& boxes, TensorId y) {
  const TensorId items = new_room(boxes.most * std::int64_t{sizeof(DrawnItem)});
  add(index, ".draw", {boxes.best, boxes.found, items, y},
      [=, regions = layer.regions]<typename T>(T, const Binding& b, auto& emit) {
        const ProposedItems all{b.samples,
                                b.tensor<RatedBox>(boxes.best),
                                b.tensor<std::int32_t>(boxes.found),
                                b.tensor<DrawnItem>(items),
                                b.n,
                                boxes.most};
        emit(MatchItems{all, {b.key, b.sample_ids, index}});
        emit(DrawItems{all, regions});
        emit(ClearFloats{b.tensor<float>(y), std::int64_t{b.n} * regions * nn::kRegion});
        emit(PlaceItems{all, b.tensor<float>(y), regions});
      });
}

void Lowering::align_regions(int index, const nn::RegionAlign& layer) {
  const int source = node(index).inputs[0], regions = node(node(index).inputs[1]).output.h;
  const AlignGrid grid = align_grid(layer, regions);
  const TensorId x = value(source), rows = value(node(index).inputs[1]), y = new_value(index, node(index).output);
  const TensorId taps = kept_[at(index)] = new_room(grid.first_tap(regions, 0) * std::int64_t{sizeof(AxisTap)});
  add(index, ".forward", {x, rows, taps, y},
      [=, c = node(source).output.c]<typename T>(T, const Binding& b, auto& emit) {
        auto* const tap = b.tensor<AxisTap>(taps);
        emit(FindTaps{b.tensor<float>(rows), tap, grid, b.n});
        emit(AlignRegions<T>{b.tensor<T>(x), tap, b.tensor<T>(y), grid, b.n, c});
      });
}

void Lowering::backward_align_regions(int index, const nn::RegionAlign& layer, TensorId dy) {
  const int source = node(index).inputs[0], regions = node(node(index).inputs[1]).output.h;
  const AlignGrid grid = align_grid(layer, regions);
  const TensorId taps = kept_[at(index)], dx = gradient_tensor(source);
  const TensorId spans = new_room(regions * std::int64_t{sizeof(PixelSpan)});
  const TensorId lists = new_room(grid.levels.h * (regions + std::int64_t{1}) * std::int64_t{sizeof(std::int32_t)});
  add(index, ".gradient", {dy, taps, spans, lists, dx},
      [=, c = node(source).output.c]<typename T>(T, const Binding& b, auto& emit) {
        auto* const tap = b.tensor<AxisTap>(taps);
        auto* const span = b.tensor<PixelSpan>(spans);
        auto* const list = b.tensor<std::int32_t>(lists);
        emit(FindSpans{tap, span, grid, b.n});
        emit(ListRegions{span, list, grid, b.n});
        emit(AlignRegionsGradient<T>{b.tensor<T>(dy), tap, span, list, b.tensor<T>(dx), grid, b.n, c});
      });
  pass_on(source, dx);
}

void Lowering::find_regions(int index, const nn::FoundRegions& layer) {
  const std::vector<int>& inputs = node(index).inputs;
  const TensorId rows = value(inputs[0]), y = new_regions(index);
  if (training_) return keep_objects(index, layer, rows, y);
  const TensorId logits = value(inputs[1]), codes = value(inputs[2]);
  const nn::Detections& found = layer.found;
  const int regions = node(inputs[0]).output.h;
  const SuppressTensors boxes = new_suppression(found.classes, regions, found.detections);
  std::vector<TensorId> touches{rows, logits, codes, y};
  boxes.touch(touches);
  add(index, ".forward", touches, [=]<typename T>(T, const Binding& b, auto& emit) {
    emit(ClassifiedBoxes<T>{b.samples, b.tensor<float>(rows), b.tensor<T>(logits), b.tensor<T>(codes),
                            b.tensor<RatedBox>(boxes.given), b.n, regions, found.classes + 1, found.image_height,
                            found.image_width, found.score_threshold});
    emit_suppress(emit, boxes, found.overlap_threshold, b);
    emit(WriteBoxes{b.tensor<RatedBox>(boxes.best), b.tensor<float>(y), b.n, found.detections, true});
  });
}

void Lowering::keep_objects(int index, const nn::FoundRegions& layer, TensorId regions, TensorId y) {
  const int rows = node(node(index).inputs[0]).output.h;
  add(index, ".forward", {regions, y},
      [=, detections = layer.found.detections]<typename T>(T, const Binding& b, auto& emit) {
        emit(ClearFloats{b.tensor<float>(y), std::int64_t{b.n} * detections * nn::kRegion});
        emit(KeepObjects{b.tensor<float>(regions), b.tensor<float>(y), b.n, rows, detections});
      });
}

}  // namespace dtrain::backend::cuda
