// The attributes of MXNet 1.x operators, named once: the symbol's writer and its reader both visit them.
//
// visit_attributes(layer, visit) calls visit(key, value) for numbers, flags and floats; visit.negated(key, flag);
// visit.pair(key, h, w); visit.rare_pair(key, h, w, usual), which is left out where both are as usual;
// visit.choice(key, kind, names); visit.fixed(key, text) for what must stand there; and for what a reader meets and a
// writer leaves out: visit.only(key, text), the one value that means what the layer does, and visit.ignore(key), which
// changes no result.
#pragma once

#include <dtrain/nn/graph.hpp>

#include "graph/layer_fields.hpp"

namespace dtrain::nn {

// Same as ActivationKind; relu6 is `clip`, gelu is `LeakyReLU`, hard_sigmoid is an operator of that name. MXNet has
// none for silu and hard_swish.
inline constexpr const char* kMxnetActivations[] = {"relu", "tanh", "sigmoid"};
inline constexpr const char* kMxnetPoolings[] = {"max", "avg"};        // as PoolingKind
inline constexpr const char* kMxnetConventions[] = {"valid", "full"};  // as Pooling::full

void visit_attributes(LayerOf<Convolution> auto& layer, auto& visit) {
  visit("num_filter", layer.out);
  visit_window(layer, visit);
  visit("num_group", layer.groups);
  visit.negated("no_bias", layer.bias);
  visit.rare_pair("dilate", layer.dilation_h, layer.dilation_w, 1);
  visit.only("layout", "NCHW");
  for (const char* key : {"workspace", "cudnn_tune", "cudnn_off"}) visit.ignore(key);
}

void visit_attributes(LayerOf<BatchNorm> auto& layer, auto& visit) {
  visit("eps", layer.epsilon);
  visit("momentum", layer.momentum);
  visit("fix_gamma", layer.fix_gamma);
  visit.only("use_global_stats", "False");
  visit.only("output_mean_var", "False");
  visit.only("axis", "1");
  for (const char* key : {"cudnn_off", "min_calib_range", "max_calib_range"}) visit.ignore(key);
}

void visit_attributes(LayerOf<Activation> auto& layer, auto& visit) {
  if (layer.kind == ActivationKind::relu6) {
    visit.fixed("a_min", "0");
    visit.fixed("a_max", "6");
  } else if (layer.kind == ActivationKind::gelu) {
    visit.fixed("act_type", "gelu");
    for (const char* key : {"slope", "lower_bound", "upper_bound"}) visit.ignore(key);
  } else if (layer.kind == ActivationKind::hard_sigmoid) {
    visit.fixed("alpha", "0.16666667");
    visit.only("beta", "0.5");
  } else {
    visit.choice("act_type", layer.kind, kMxnetActivations);
  }
}

void visit_attributes(LayerOf<Pooling> auto& layer, auto& visit) {
  visit.choice("pool_type", layer.kind, kMxnetPoolings);
  visit("global_pool", layer.global);
  visit_window(layer, visit);
  visit.choice("pooling_convention", layer.full, kMxnetConventions);
  visit("count_include_pad", layer.count_include_pad);
  visit.only("layout", "NCHW");
  for (const char* key : {"cudnn_off", "p_value"}) visit.ignore(key);
}

void visit_attributes(LayerOf<LocalResponseNorm> auto& layer, auto& visit) {
  visit("alpha", layer.alpha);
  visit("beta", layer.beta);
  visit("knorm", layer.bias);
  visit("nsize", layer.size);
}

void visit_attributes(LayerOf<Dense> auto& layer, auto& visit) {
  visit("num_hidden", layer.out);
  visit.negated("no_bias", layer.bias);
  visit.only("flatten", "True");
}

void visit_attributes(LayerOf<Add> auto&, auto& visit) { visit.only("num_args", "2"); }

// The writer adds num_args.
void visit_attributes(LayerOf<Concat> auto&, auto& visit) {
  visit.only("dim", "1");
  visit.ignore("num_args");
}

void visit_attributes(LayerOf<Dropout> auto& layer, auto& visit) {
  visit("p", layer.p);
  visit.only("mode", "training");
  visit.only("axes", "()");
  visit.ignore("cudnn_off");
}

void visit_attributes(LayerOf<Scale> auto& layer, auto& visit) {
  visit("scalar", layer.factor);
  visit.ignore("is_int");
}

// smooth_alpha is not our label_smoothing: see mxnet_smoothing. The loss is always divided by the batch's samples,
// which MXNet's scripts reach with normalization='null' and rescale_grad, so that attribute says nothing. MXNet knows
// no other kind of loss: the symbol of a network that learned by sigmoids ends in a softmax too.
void visit_attributes(LayerOf<SoftmaxLoss> auto& layer, auto& visit) {
  visit("smooth_alpha", layer.label_smoothing);
  visit.only("grad_scale", "1");
  visit.only("multi_output", "False");
  visit.only("use_ignore", "False");
  for (const char* key : {"normalization", "ignore_label", "preserve_shape", "out_grad"}) visit.ignore(key);
}

// The last ones have no operator: the writer refuses them.
template <typename Kind>
requires LayerOf<Kind, Input> || LayerOf<Kind, Flatten> || LayerOf<Kind, Multiply> || LayerOf<Kind, LayerNorm> ||
    LayerOf<Kind, LayerScale> || LayerOf<Kind, ClassToken> || LayerOf<Kind, Position> || LayerOf<Kind, FirstToken> ||
    LayerOf<Kind, Attention> || LayerOf<Kind, Upsample> || LayerOf<Kind, Pyramid> || LayerOf<Kind, KeepLevels> ||
    LayerOf<Kind, DetectionLoss> || LayerOf<Kind, TransposedConvolution> || LayerOf<Kind, Proposals> ||
    LayerOf<Kind, RegionAlign> || LayerOf<Kind, KeepRegions> || LayerOf<Kind, FoundRegions> || LayerOf<Kind, RegionLoss>
void visit_attributes(Kind&, auto&) {}

// MXNet spreads smooth_alpha over the other classes, we spread label_smoothing over all of them.
inline double smoothing_from_mxnet(double smooth_alpha, int classes) { return smooth_alpha * classes / (classes - 1); }
inline double smoothing_to_mxnet(double label_smoothing, int classes) {
  return label_smoothing * (classes - 1) / classes;
}

// How a symbol names a layer: its operators' names, the first of them for writing, and the layer that MXNet's own
// defaults mean.
struct MxnetOperator {
  std::vector<const char*> names;
  Layer defaults;
};
const std::vector<MxnetOperator>& mxnet_operators();

// Operators that hand on their input unchanged.
inline constexpr const char* kPassthroughs[] = {"identity", "_copy", "Cast", "cast", "amp_cast"};

}  // namespace dtrain::nn
