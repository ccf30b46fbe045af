// The attributes of every layer kind in dtrain.graph/1, named once: the writer and the reader both visit them.
#pragma once

#include <concepts>
#include <type_traits>

#include <dtrain/nn/graph.hpp>

#include "names.hpp"

namespace dtrain::nn {

inline constexpr const char* kActivationNames[] = {"relu", "tanh", "sigmoid",    "relu6",
                                                   "gelu", "silu", "hard_swish", "hard_sigmoid"};  // as ActivationKind
inline constexpr const char* kInitialWeightNames[] = {"he",      "dirac", "whitening",
                                                      "uniform", "small", "rare"};  // as InitialWeight
inline constexpr const char* kLossNames[] = {"softmax", "sigmoid"};                 // as LossKind
inline constexpr const char* kPoolingNames[] = {"max", "average"};                  // as PoolingKind

template <typename T, typename Kind>
concept LayerOf = std::same_as<std::remove_const_t<T>, Kind>;

// visit_fields(layer, visit) calls visit(key, value) for numbers and flags, visit.pair(key, h, w) and
// visit.choice(key, kind, names), visit.rare_pair(key, h, w, usual), which is left out where both are as usual, and
// visit.list(key, numbers), which is left out where it is empty, and visit.rare(key, value, usual), which is left out
// where it is as usual. The layer may be constant.

void visit_window(auto& window, auto& visit) {
  visit.pair("kernel", window.kernel_h, window.kernel_w);
  visit.pair("stride", window.stride_h, window.stride_w);
  visit.pair("pad", window.pad_h, window.pad_w);
}

void visit_fields(LayerOf<Convolution> auto& layer, auto& visit) {
  visit("out", layer.out);
  visit_window(layer, visit);
  visit("groups", layer.groups);
  visit("bias", layer.bias);
  visit("frozen", layer.frozen);
  visit("is_dense", layer.is_dense);
  visit.choice("initial", layer.initial, kInitialWeightNames);
  visit.rare_pair("dilation", layer.dilation_h, layer.dilation_w, 1);
  visit.rare_pair("extra_pad", layer.extra_h, layer.extra_w, 0);
}

void visit_fields(LayerOf<BatchNorm> auto& layer, auto& visit) {
  visit("epsilon", layer.epsilon);
  visit("momentum", layer.momentum);
  visit("fix_gamma", layer.fix_gamma);
  visit.rare("synchronized", layer.synchronized, false);
}

void visit_fields(LayerOf<Activation> auto& layer, auto& visit) { visit.choice("kind", layer.kind, kActivationNames); }

void visit_fields(LayerOf<Pooling> auto& layer, auto& visit) {
  visit.choice("kind", layer.kind, kPoolingNames);
  visit("global", layer.global);
  visit_window(layer, visit);
  visit("full", layer.full);
  visit("count_include_pad", layer.count_include_pad);
}

void visit_fields(LayerOf<Dense> auto& layer, auto& visit) {
  visit("out", layer.out);
  visit("bias", layer.bias);
}

void visit_fields(LayerOf<Dropout> auto& layer, auto& visit) {
  visit("p", layer.p);
  visit("whole_samples", layer.whole_samples);
}

void visit_fields(LayerOf<Scale> auto& layer, auto& visit) { visit("factor", layer.factor); }

void visit_fields(LayerOf<LocalResponseNorm> auto& layer, auto& visit) {
  visit("alpha", layer.alpha);
  visit("beta", layer.beta);
  visit("bias", layer.bias);
  visit("size", layer.size);
}

void visit_fields(LayerOf<LayerNorm> auto& layer, auto& visit) { visit("epsilon", layer.epsilon); }

void visit_fields(LayerOf<LayerScale> auto& layer, auto& visit) { visit("initial", layer.initial); }

void visit_fields(LayerOf<Attention> auto& layer, auto& visit) { visit("heads", layer.heads); }

void visit_fields(LayerOf<SoftmaxLoss> auto& layer, auto& visit) {
  visit("label_smoothing", layer.label_smoothing);
  visit.choice("kind", layer.kind, kLossNames);
  visit("focal_gamma", layer.focal_gamma);
  visit("target_threshold", layer.target_threshold);
  visit.list("class_weights", layer.class_weights);
}

void visit_detections(auto& found, auto& visit) {
  visit("classes", found.classes);
  visit.pair("image", found.image_height, found.image_width);
  visit("score_threshold", found.score_threshold);
  visit("overlap_threshold", found.overlap_threshold);
  visit("detections", found.detections);
  visit("mask", found.mask);
}
void visit_levels(auto& levels, auto& visit) {
  visit("levels", levels.count);
  visit.pair("first", levels.height, levels.width);
}

void visit_fields(LayerOf<KeepLevels> auto& layer, auto& visit) { visit_levels(layer.levels, visit); }

void visit_fields(LayerOf<DetectionLoss> auto& layer, auto& visit) {
  visit_detections(layer.found, visit);
  visit_levels(layer.levels, visit);
  visit("candidates", layer.candidates);
  visit.rare("anchor_size", layer.anchor_size, kUsualAnchorSize);
}

void visit_fields(LayerOf<TransposedConvolution> auto& layer, auto& visit) {
  visit("out", layer.out);
  visit("stride", layer.stride);
}

void visit_fields(LayerOf<Proposals> auto& layer, auto& visit) {
  visit("regions", layer.regions);
  visit_levels(layer.levels, visit);
  visit.pair("image", layer.image_height, layer.image_width);
  visit("candidates", layer.candidates);
  visit("overlap_threshold", layer.overlap_threshold);
  visit.rare("anchor_size", layer.anchor_size, kUsualAnchorSize);
}

void visit_fields(LayerOf<RegionAlign> auto& layer, auto& visit) {
  visit("size", layer.size);
  visit("apart", layer.apart);
  visit_levels(layer.levels, visit);
  visit("used", layer.used);
  visit.pair("image", layer.image_height, layer.image_width);
}

void visit_fields(LayerOf<KeepRegions> auto& layer, auto& visit) { visit("size", layer.size); }

void visit_fields(LayerOf<FoundRegions> auto& layer, auto& visit) { visit_detections(layer.found, visit); }

void visit_fields(LayerOf<RegionLoss> auto& layer, auto& visit) {
  visit_detections(layer.found, visit);
  visit_levels(layer.levels, visit);
  visit.rare("anchor_size", layer.anchor_size, kUsualAnchorSize);
}

template <typename Kind>
requires LayerOf<Kind, Input> || LayerOf<Kind, Flatten> || LayerOf<Kind, Add> || LayerOf<Kind, Concat> ||
    LayerOf<Kind, Multiply> || LayerOf<Kind, ClassToken> || LayerOf<Kind, Position> || LayerOf<Kind, FirstToken> ||
    LayerOf<Kind, Upsample> || LayerOf<Kind, Pyramid>
void visit_fields(Kind&, auto&) {}

}  // namespace dtrain::nn
