// The losses of detectors by their heads, and what they found.
#include <dtrain/base/error.hpp>

#include "detection_calls.hpp"

namespace dtrain::backend::cuda {
namespace {

constexpr std::int64_t kTerm = sizeof(float), kCount = sizeof(std::int32_t);

}  // namespace

void Lowering::detection_loss() {
  const nn::Layer& last = graph_.nodes.back().layer;
  if (const auto* regions = std::get_if<nn::RegionLoss>(&last)) {
    region_loss(*regions);
  } else {
    anchor_loss(std::get<nn::DetectionLoss>(last));
  }
}

TensorId Lowering::match_anchors(const AnchorGrid& grid, const MatchRule& rule) {
  const TensorId matches = new_room(grid.anchors() * kCount);
  add(size() - 1, ".match", {matches}, [=]<typename T>(T, const Binding& b, auto& emit) {
    if (rule.best_always) {
      emit(PartOverlaps{b.samples, grid, b.n});
      emit(BestOverlaps{b.samples, b.n});
    }
    emit(MatchAnchors{b.samples, grid, rule, b.tensor<std::int32_t>(matches), b.n});
  });
  return matches;
}

TensorId Lowering::head_gradient(std::size_t input) {
  const int head = graph_.nodes.back().inputs[input];
  const TensorId gradient = gradient_tensor(head);
  if (wants_gradient(head)) pass_on(head, gradient);
  return gradient;
}

void Lowering::anchor_loss(const nn::DetectionLoss& layer) {
  const AnchorGrid grid =
      anchor_grid(anchors_of(layer), layer.levels, {layer.found.image_height, layer.found.image_width});
  const TensorId matches = match_anchors(grid, {});
  const std::vector<int>& heads = graph_.nodes.back().inputs;
  const TensorId logits = value(heads[0]), codes = value(heads[1]);
  const TensorId dlogits = head_gradient(0), dcodes = head_gradient(1);
  const TensorId counts = new_room(CountMatches::kParts * kCount), shares = new_room(sizeof(double));
  const std::int64_t items = std::int64_t{grid.pixels()} * grid.at_pixel;
  const TermTensors terms{{new_room(items * kTerm), new_room(items * kTerm)}, {items, items}};
  add(size() - 1, ".loss", {matches, logits, codes, dlogits, dcodes, counts, shares, terms.of[0], terms.of[1]},
      [=, classes = layer.found.classes]<typename T>(T, const Binding& b, auto& emit) {
        auto* const match = b.tensor<std::int32_t>(matches);
        auto* const count = b.tensor<std::int32_t>(counts);
        auto* const share = b.tensor<double>(shares);
        emit(CountMatches{match, count, b.n, grid.anchors()});
        emit(ShareOfMatches{count, share, b.n});
        emit(AnchorLoss<T>{b.samples, b.tensor<T>(logits), b.tensor<T>(codes), match, share, b.tensor<T>(dlogits),
                           b.tensor<T>(dcodes), b.tensor<float>(terms.of[0]), b.tensor<float>(terms.of[1]),
                           b.loss_scale, grid, b.n, classes});
      });
  count_terms(terms);
}

void Lowering::region_loss(const nn::RegionLoss& layer) {
  const AnchorGrid grid =
      anchor_grid(anchors_of(layer), layer.levels, {layer.found.image_height, layer.found.image_width});
  TermTensors terms;
  drawn_anchor_loss(grid, match_anchors(grid, {.background_below = 0.3f, .object_from = 0.7f}), terms);
  const TensorId counts = region_head_loss(layer, terms);
  if (layer.found.mask > 0) mask_loss(layer, counts, terms);
  count_terms(terms);
}

void Lowering::drawn_anchor_loss(const AnchorGrid& grid, TensorId matches, TermTensors& terms) {
  constexpr std::int32_t kDrawn = 256;
  const std::vector<int>& heads = graph_.nodes.back().inputs;
  const TensorId logits = value(heads[0]), codes = value(heads[1]);
  const TensorId dlogits = head_gradient(0), dcodes = head_gradient(1);
  Segments segments{};
  segments.add(grid.anchors(), kDrawn / 2);
  segments.add(grid.anchors(), kDrawn);
  const SelectTensors select = new_select(segments);
  const TensorId keys = new_room(segments.keys * kCount);
  const TensorId objects = new_room(segments.picks * kTerm), boxes = new_room(segments.picks * kTerm);
  terms.of.insert(terms.of.end(), {objects, boxes});
  terms.sizes.insert(terms.sizes.end(), 2, segments.picks);
  std::vector<TensorId> touches{matches, logits, codes, dlogits, dcodes, keys, objects, boxes};
  select.touch(touches);
  add(size() - 1, ".anchors", touches, [=, node = size() - 1]<typename T>(T, const Binding& b, auto& emit) {
    auto* const match = b.tensor<std::int32_t>(matches);
    auto* const key = b.tensor<std::uint32_t>(keys);
    const std::int64_t logit_bytes = std::int64_t{b.n} * grid.pixels() * grid.at_pixel * std::int64_t{sizeof(T)};
    emit(DrawKeys{match, key, {b.key, b.sample_ids, node}, b.n, grid.anchors()});
    emit_select(emit, key, segments, select, b);
    emit_zeros(emit, b.tensor<T>(dlogits), logit_bytes);
    emit_zeros(emit, b.tensor<T>(dcodes), 4 * logit_bytes);
    emit(DrawnAnchorLoss<T>{b.samples, b.tensor<T>(logits), b.tensor<T>(codes), match,
                            b.tensor<std::int32_t>(select.picks), key, b.tensor<T>(dlogits), b.tensor<T>(dcodes),
                            b.tensor<float>(objects), b.tensor<float>(boxes), b.loss_scale, grid, segments, b.n,
                            kDrawn});
  });
}

TensorId Lowering::region_head_loss(const nn::RegionLoss& layer, TermTensors& terms) {
  const std::vector<int>& inputs = graph_.nodes.back().inputs;
  const TensorId rows = value(inputs[2]), logits = value(inputs[3]), codes = value(inputs[4]), found = value(inputs[5]);
  const TensorId dlogits = head_gradient(3), dcodes = head_gradient(4);
  const int regions = node(inputs[2]).output.h, detections = layer.found.detections;
  const TensorId counts = new_room(2 * kCount);
  const TensorId classes = new_room(regions * kTerm), boxes = new_room(regions * kTerm);
  terms.of.insert(terms.of.end(), {classes, boxes});
  terms.sizes.insert(terms.sizes.end(), 2, regions);
  add(size() - 1, ".regions", {rows, logits, codes, found, dlogits, dcodes, counts, classes, boxes},
      [=, number = layer.found.classes + 1]<typename T>(T, const Binding& b, auto& emit) {
        auto* const row = b.tensor<float>(rows);
        auto* const count = b.tensor<std::int32_t>(counts);
        emit(CountRegions{row, b.tensor<float>(found), count, b.n, regions, detections});
        emit(RegionHeadLoss<T>{b.samples, row, count, b.tensor<T>(logits), b.tensor<T>(codes), b.tensor<T>(dlogits),
                               b.tensor<T>(dcodes), b.tensor<float>(classes), b.tensor<float>(boxes), b.loss_scale, b.n,
                               regions, number});
      });
  return counts;
}

void Lowering::mask_loss(const nn::RegionLoss& layer, TensorId counts, TermTensors& terms) {
  const std::vector<int>& inputs = graph_.nodes.back().inputs;
  const TensorId found = value(inputs[5]), logits = value(inputs[6]), dlogits = head_gradient(6);
  const nn::Shape shape = node(inputs[6]).output;
  const std::int64_t points = std::int64_t{layer.found.detections} * layer.found.mask * layer.found.mask;
  const TensorId of_points = new_room(points * kTerm);
  terms.of.push_back(of_points);
  terms.sizes.push_back(points);
  add(size() - 1, ".masks", {found, logits, dlogits, counts, of_points},
      [=, of = layer.found]<typename T>(T, const Binding& b, auto& emit) {
        emit_zeros(emit, b.tensor<T>(dlogits), b.n * shape.size() * std::int64_t{sizeof(T)});
        emit(MaskLoss<T>{b.samples, b.tensor<float>(found), b.tensor<std::int32_t>(counts), b.tensor<T>(logits),
                         b.tensor<T>(dlogits), b.tensor<float>(of_points), b.loss_scale, b.n, of.detections, of.mask,
                         nn::mask_rows(of, shape.h), shape.h, of.classes + 1, of.image_height, of.image_width});
      });
}

void Lowering::count_terms(const TermTensors& terms) {
  const auto kinds = static_cast<std::int32_t>(terms.of.size());
  const nn::Shape counted{FinishTerms::kCounts + kinds, 1, 1};
  const TensorId sums = new_room(kinds * std::int64_t{SumTerms::kParts} * std::int64_t{sizeof(double)});
  const TensorId counts = new_floats(counted.size());
  const Sums all = new_sums(counted, 1, packs_of(counted.c, Pack<float>::size));
  std::vector<TensorId> touches = terms.of;
  touches.insert(touches.end(), {sums, counts, all.parts, all.folded});
  add(size() - 1, ".count", touches,
      [=, metrics = graph_.parameter_count + graph_.statistic_count]<typename T>(T, const Binding& b, auto& emit) {
        LossTerms of{};
        of.kinds = kinds;
        for (std::size_t kind = 0; kind < terms.of.size(); ++kind) {
          of.of[kind] = b.tensor<float>(terms.of[kind]);
          of.sizes[kind] = static_cast<std::int32_t>(terms.sizes[kind]);
        }
        auto* const sum = b.tensor<double>(sums);
        auto* const count = b.tensor<float>(counts);
        emit(SumTerms{of, sum, b.n});
        emit(FinishTerms{sum, count, b.n, kinds});
        const RowParts cut = cut_rows(b.n, packs_of(counted.c, Pack<float>::size));
        emit(folded(b, all, ColumnSums<float>{count, b.tensor<float>(all.parts), cut, counted.c},
                    StoreSums{b.tensor<float>(all.folded), b.contribution + metrics, cut.folded_parts, all.width}));
      });
}

void Lowering::detection_results() {
  const nn::Layer& last = graph_.nodes.back().layer;
  if (const auto* regions = std::get_if<nn::RegionLoss>(&last)) {
    found_regions(*regions);
  } else {
    found_objects(std::get<nn::DetectionLoss>(last));
  }
}

void Lowering::found_objects(const nn::DetectionLoss& layer) {
  const AnchorGrid grid =
      anchor_grid(anchors_of(layer), layer.levels, {layer.found.image_height, layer.found.image_width});
  const nn::Detections& found = layer.found;
  Segments segments{};
  for (int level = 0; level < layer.levels.count; ++level) {
    segments.add((grid.first[level + 1] - grid.first[level]) * found.classes, layer.candidates);
  }
  const SelectTensors select = new_select(segments);
  const SuppressTensors boxes = new_suppression(1, segments.picks, found.detections);
  const TensorId keys = new_room(segments.keys * kCount);
  const std::vector<int>& heads = graph_.nodes.back().inputs;
  const TensorId logits = value(heads[0]), codes = value(heads[1]);
  std::vector<TensorId> touches{logits, codes, keys};
  select.touch(touches);
  boxes.touch(touches);
  add(size() - 1, ".results", touches, [=]<typename T>(T, const Binding& b, auto& emit) {
    auto* const key = b.tensor<std::uint32_t>(keys);
    emit(ScoreKeys<T>{b.tensor<T>(logits), key, grid, b.n, found.classes, found.score_threshold});
    emit_select(emit, key, segments, select, b);
    emit(ScoredBoxes<T>{b.samples, b.tensor<T>(logits), b.tensor<T>(codes), b.tensor<std::int32_t>(select.picks),
                        b.tensor<RatedBox>(boxes.given), grid, segments, b.n, found.classes});
    emit_suppress(emit, boxes, found.overlap_threshold, b);
    emit(WriteDetections{b.tensor<RatedBox>(boxes.best), b.logits, b.n, found.detections});
  });
}

void Lowering::found_regions(const nn::RegionLoss& layer) {
  const std::vector<int>& inputs = graph_.nodes.back().inputs;
  const bool has_masks = layer.found.mask > 0;
  const TensorId rows = value(inputs[5]), logits = has_masks ? value(inputs[6]) : kNoTensor;
  const nn::Shape shape = has_masks ? node(inputs[6]).output : nn::Shape{};
  add(size() - 1, ".results", {rows, logits}, [=, of = layer.found]<typename T>(T, const Binding& b, auto& emit) {
    emit(WriteFound<T>{b.tensor<float>(rows), b.tensor<T>(logits), b.logits, b.n, of.detections, of.mask,
                       has_masks ? nn::mask_rows(of, shape.h) : 0, shape.h, of.classes + 1});
  });
}

}  // namespace dtrain::backend::cuda
