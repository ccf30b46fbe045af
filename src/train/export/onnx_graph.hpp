// A network as the graph of a model of ONNX.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include <dtrain/backend/detection.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/overloaded.hpp>
#include <dtrain/base/value_range.hpp>
#include <dtrain/train/export.hpp>

#include "checkpoint/checkpoint_tensors.hpp"
#include "onnx_builder.hpp"

namespace dtrain::train::onnx {

inline constexpr const char* kLogits = "logits";
inline constexpr const char* kProbabilities = "probabilities";
inline constexpr const char* kPixels = "pixels";

// The output of a node as ONNX sees it: Dense and Flatten give [n, c], all others [n, c, h, w]. What a detector's graph
// holds side by side in one value is apart in ONNX: a value for each level, and a picture of its own for each region.
struct Value {
  std::string name = {};
  bool flat = false;
  std::vector<std::string> levels = {};  // of a feature pyramid, the largest first; `name` is empty
  bool of_regions = false;               // n times the regions of a picture are its pictures
  bool is_apart = false;                 // in the graph zeros lie between the levels or regions
};

// The regions of a value, by the names of their parts.
struct OnnxRegions {
  std::string boxes = {};                // [n, count, 4]
  std::string are_there = {};            // [n, count], bool
  std::string scores = {}, labels = {};  // [n, count]; empty where they are not known yet
  std::int64_t count = 0;
};

// Writes the nodes of a graph in evaluation mode; borrows the checkpoint.
class OnnxGraph : private OnnxBuilder {
 public:
  OnnxGraph(const Checkpoint& checkpoint, const OnnxOptions& options)
      : graph_(checkpoint.graph),
        state_(checkpoint.state),
        preprocessing_(checkpoint.job.preprocessing),
        options_(options),
        detects_(nn::detection_of(graph_) != nullptr) {}

  ProtoMessage write() {
    message_.text(graph_name, graph_.name);
    const nn::Shape& image = graph_.input();
    take_names();
    if (detects_) read_picture_sizes();
    if (options_.preprocessing) add_preprocessing(input_, image.c);
    for (const nn::Node& each : graph_.nodes) {
      set_scope(each.name);
      values_.push_back(add_layer(each));
    }
    message_.message(GraphField::input, options_.preprocessing ? value_info(kPixels, {image.h, image.w, image.c}, uint8)
                                                               : value_info(input_, {image.c, image.h, image.w}));
    if (detects_) return write_detector();
    if (options_.softmax) add_probabilities(values_.back());
    message_.message(GraphField::output, value_info(options_.softmax ? kProbabilities : kLogits, {graph_.classes()}));
    return std::move(message_);
  }

  // With the names that the tensors have in the model; after write().
  nn::Graph named_graph();

 private:
  // onnx_interface.cpp
  void take_names();
  void add_preprocessing(const std::string& result, int channels);
  std::vector<float> channel_values(const char* name, int channels) const;
  std::string add_channels(const char* name, const std::vector<float>& values);
  Value add_logits(const Value& in);
  void add_probabilities(const Value& logits);

  Value add_layer(const nn::Node& each) {
    require_known_use(each);
    Value value = layer_value(each);
    if (!each.inputs.empty() && input_of(each).of_regions) value.of_regions = true;
    return value;
  }

  Value layer_value(const nn::Node& each) {
    return std::visit(Overloaded{
                          [&](const nn::Input&) { return Value{input_}; },
                          [&](const nn::Convolution& layer) {
                            return each_level(each, [&](const nn::Node& part, const Value& in) {
                              return add_convolution(part, layer, in);
                            });
                          },
                          [&](const nn::BatchNorm& layer) { return add_batch_norm(each, layer); },
                          [&](const nn::Activation& layer) {
                            return each_level(each, [&](const nn::Node& part, const Value& in) {
                              return add_activation(part, layer, in);
                            });
                          },
                          [&](const nn::Pooling& layer) { return add_pooling(each, layer); },
                          [&](const nn::Dense&) { return add_dense(each); },
                          [&](const nn::Flatten&) { return flat(input_of(each), output_name(each)); },
                          [&](const nn::Add&) { return add_sum(each); },
                          [&](const nn::Concat&) { return add_concat(each); },
                          [&](const nn::Multiply&) { return add_product(each); },
                          [&](const nn::Dropout&) { return input_of(each); },  // the identity in evaluation
                          [&](const nn::Scale& layer) { return add_scale(each, layer); },
                          [&](const nn::LayerNorm& layer) { return add_layer_norm(each, layer); },
                          [&](const nn::LocalResponseNorm& layer) { return add_local_response_norm(each, layer); },
                          [&](const nn::LayerScale&) { return add_layer_scale(each); },
                          [&](const nn::ClassToken&) { return add_class_token(each); },
                          [&](const nn::Position&) { return add_position(each); },
                          [&](const nn::FirstToken&) { return add_first_token(each); },
                          [&](const nn::Attention& layer) { return add_attention(each, layer); },
                          [&](const nn::SoftmaxLoss&) { return add_logits(input_of(each)); },
                          [&](const nn::Upsample&) { return add_upsample(each); },
                          [&](const nn::Pyramid&) { return add_pyramid(each); },
                          [&](const nn::KeepLevels&) { return kept_apart(each); },
                          [&](const nn::DetectionLoss& layer) { return add_objects(each, layer); },
                          [&](const nn::TransposedConvolution& layer) { return add_transposed(each, layer); },
                          [&](const nn::Proposals& layer) { return add_proposals(each, layer); },
                          [&](const nn::RegionAlign& layer) { return add_region_align(each, layer); },
                          [&](const nn::KeepRegions&) { return kept_apart(each); },
                          [&](const nn::FoundRegions& layer) { return add_found_regions(each, layer); },
                          [&](const nn::RegionLoss& layer) { return add_region_results(each, layer); },
                      },
                      each.layer);
  }

  // Calls add(node, its input) for each level of a pyramid, or once.
  template <typename Add>
  Value each_level(const nn::Node& each, Add add) {
    const Value in = input_of(each);
    if (in.levels.empty()) return add(each, in);
    Value out;
    for (std::size_t level = 0; level < in.levels.size(); ++level) {
      nn::Node part = each;
      part.name = fmt::format("{}_level{}", each.name, level);
      out.levels.push_back(add(part, Value{in.levels[level]}).name);
    }
    return out;
  }

  Value add_convolution(const nn::Node& each, const nn::Convolution& layer, const Value& in) {
    const bool is_gemm = layer.is_dense && in.flat;
    std::vector<std::string> inputs = {is_gemm ? in.name : spatial(in).name};
    for (int index : each.parameters) inputs.push_back(add_tensor(parameter(index), state_.parameters));
    if (is_gemm) return add_node("Gemm", inputs, output_name(each), true, {integer("transB", 1)});
    if (layer.is_dense) inputs[1] = part("Reshape", {inputs[1], numbers({0, 0, 1, 1})});
    std::vector<ProtoMessage> attributes = {
        integers("kernel_shape", {layer.kernel_h, layer.kernel_w}),
        integers("strides", {layer.stride_h, layer.stride_w}),
        integers("pads", {layer.pad_h, layer.pad_w, layer.pad_h + layer.extra_h, layer.pad_w + layer.extra_w}),
        integer("group", layer.groups)};
    if (layer.dilation_h != 1 || layer.dilation_w != 1) {
      attributes.push_back(integers("dilations", {layer.dilation_h, layer.dilation_w}));
    }
    return add_node("Conv", inputs, output_name(each), false, attributes);
  }

  Value add_local_response_norm(const nn::Node& each, const nn::LocalResponseNorm& layer) {
    return add_node(
        "LRN", {spatial(input_of(each)).name}, output_name(each), false,
        {real("alpha", layer.alpha), real("beta", layer.beta), real("bias", layer.bias), integer("size", layer.size)});
  }

  Value add_batch_norm(const nn::Node& each, const nn::BatchNorm& layer) {
    const Value in = input_of(each);
    const nn::TensorView& gamma = parameter(each.parameters[0]);
    const std::string scale = layer.fix_gamma ? add_ones(gamma) : add_tensor(gamma, state_.parameters);
    std::vector<std::string> inputs = {in.name, scale, add_tensor(parameter(each.parameters[1]), state_.parameters)};
    for (int index : each.statistics) {
      inputs.push_back(add_tensor(graph_.statistics[static_cast<std::size_t>(index)], state_.statistics));
    }
    return add_node("BatchNormalization", inputs, output_name(each), in.flat,
                    {real("epsilon", layer.epsilon), real("momentum", layer.momentum)});
  }

  Value add_activation(const nn::Node& each, const nn::Activation& layer, const Value& in) {
    const auto add = [&](const char* op) { return add_node(op, {in.name}, output_name(each), in.flat, {}); };
    switch (layer.kind) {
      case nn::ActivationKind::relu:
        return add("Relu");
      case nn::ActivationKind::tanh:
        return add("Tanh");
      case nn::ActivationKind::sigmoid:
        return add("Sigmoid");
      case nn::ActivationKind::gelu:
        return add_gelu(each, in);
      case nn::ActivationKind::silu:
        return add_gated(each, in, "Sigmoid", {});
      case nn::ActivationKind::hard_swish:
        return add_gated(each, in, "HardSigmoid", {real("alpha", 1.0f / 6)});
      case nn::ActivationKind::hard_sigmoid:
        return add_node("HardSigmoid", {in.name}, output_name(each), in.flat, {real("alpha", 1.0f / 6)});
      case nn::ActivationKind::relu6:
        break;
    }
    const std::string low = add_scalar(each.name + "_low", 0), high = add_scalar(each.name + "_high", 6);
    return add_node("Clip", {in.name, low, high}, output_name(each), in.flat, {});
  }

  // x times a curve of x: this version of ONNX has no operator for them.
  Value add_gated(const nn::Node& each, const Value& in, const char* gate,
                  const std::vector<ProtoMessage>& attributes) {
    const Value factor = add_node(gate, {in.name}, each.name + "_gate", in.flat, attributes);
    return add_node("Mul", {in.name, factor.name}, output_name(each), in.flat, {});
  }

  Value add_scale(const nn::Node& each, const nn::Scale& layer) {
    const Value in = input_of(each);
    const std::string factor = add_scalar(each.name + "_factor", layer.factor);
    return add_node("Mul", {in.name, factor}, output_name(each), in.flat, {});
  }

  // x * (1 + erf(x / sqrt(2))) / 2: this version of ONNX has no operator for it.
  Value add_gelu(const nn::Node& each, const Value& in) {
    const auto part = [&](const char* op, const std::string& a, const std::string& b, const char* ending) {
      std::vector<std::string> inputs = {a};
      if (!b.empty()) inputs.push_back(b);
      return add_node(op, inputs, each.name + ending, in.flat, {}).name;
    };
    const std::string scaled = part("Mul", in.name, add_scalar(each.name + "_root", 0.70710678f), "_scaled");
    const std::string erf = part("Erf", scaled, "", "_erf");
    const std::string twice = part("Add", erf, add_scalar(each.name + "_one", 1), "_twice");
    const std::string share = part("Mul", twice, add_scalar(each.name + "_half", 0.5f), "_share");
    return add_node("Mul", {in.name, share}, output_name(each), in.flat, {});
  }

  // Windows that stick out of the padded input (MXNet's `full`) become padding at the end, so that no runtime's reading
  // of ceil_mode matters. In an average what lies out there never counts, though padding may.
  Value add_pooling(const nn::Node& each, const nn::Pooling& layer) {
    const bool max = layer.kind == nn::PoolingKind::max;
    Value in = spatial(input_of(each));
    if (layer.global) {
      return add_node(max ? "GlobalMaxPool" : "GlobalAveragePool", {in.name}, output_name(each), false, {});
    }
    const nn::Shape& size = graph_.nodes[static_cast<std::size_t>(each.inputs[0])].output;
    const int over_h = overhang(size.h, each.output.h, layer.kernel_h, layer.stride_h, layer.pad_h);
    const int over_w = overhang(size.w, each.output.w, layer.kernel_w, layer.stride_w, layer.pad_w);
    int pad_h = layer.pad_h, pad_w = layer.pad_w;
    bool count_padding = layer.count_include_pad;
    if (!max && count_padding && over_h + over_w > 0) {
      in = pad_with_zeros(in, each.name, pad_h, pad_w);
      count_padding = false;
      pad_h = pad_w = 0;
    }
    std::vector<ProtoMessage> attributes = {integers("kernel_shape", {layer.kernel_h, layer.kernel_w}),
                                            integers("strides", {layer.stride_h, layer.stride_w}),
                                            integers("pads", {pad_h, pad_w, pad_h + over_h, pad_w + over_w})};
    if (!max) attributes.push_back(integer("count_include_pad", count_padding));
    return add_node(max ? "MaxPool" : "AveragePool", {in.name}, output_name(each), false, attributes);
  }

  static int overhang(int in, int out, int kernel, int stride, int pad) {
    return std::max(0, (out - 1) * stride + kernel - in - 2 * pad);
  }

  Value pad_with_zeros(const Value& in, const std::string& name, int pad_h, int pad_w) {
    const std::string pads = add_integers(name + "_pads", {0, 0, pad_h, pad_w, 0, 0, pad_h, pad_w});
    return add_node("Pad", {in.name, pads}, name + "_padded", false, {});
  }

  Value add_dense(const nn::Node& each) {
    const Value in = input_of(each);
    std::vector<std::string> inputs = {in.flat ? in.name : flat(in, each.name + "_flat").name};
    for (int index : each.parameters) inputs.push_back(add_tensor(parameter(index), state_.parameters));
    return add_node("Gemm", inputs, output_name(each), true, {integer("transB", 1)});
  }

  Value add_sum(const nn::Node& each) {
    Value a = input_of(each, 0), b = input_of(each, 1);
    if (a.flat != b.flat) {
      a = spatial(a);
      b = spatial(b);
    }
    return add_node("Add", {a.name, b.name}, output_name(each), a.flat, {});
  }

  Value add_concat(const nn::Node& each) {
    std::vector<std::string> inputs;
    for (std::size_t index = 0; index < each.inputs.size(); ++index) {
      inputs.push_back(spatial(input_of(each, index)).name);
    }
    return add_node("Concat", inputs, output_name(each), false, {integer("axis", 1)});
  }

  Value add_product(const nn::Node& each) {
    const Value a = spatial(input_of(each, 0)), b = spatial(input_of(each, 1));
    return add_node("Mul", {a.name, b.name}, output_name(each), false, {});
  }

  // A node of [n, c, h, w] whose output is named after `each`.
  std::string add_part(const nn::Node& each, const char* op, const std::vector<std::string>& inputs, const char* ending,
                       const std::vector<ProtoMessage>& attributes = {}) {
    return add_node(op, inputs, each.name + ending, false, attributes).name;
  }

  // A tensor of one number for each channel, as [n, c, h, w] is multiplied by it.
  std::string add_channel_tensor(const nn::TensorView& view) {
    const std::string extents = add_integers(view.name + "_extents", {view.size, 1, 1});
    return add_node("Reshape", {add_tensor(view, state_.parameters), extents}, view.name + "_channels", false, {}).name;
  }

  // onnx_token_layers.cpp
  Value add_layer_norm(const nn::Node& each, const nn::LayerNorm& layer);
  Value add_layer_scale(const nn::Node& each);
  Value add_class_token(const nn::Node& each);
  Value add_position(const nn::Node& each);
  Value add_first_token(const nn::Node& each);
  Value add_attention(const nn::Node& each, const nn::Attention& layer);

  // onnx_detection_layers.cpp
  void require_known_use(const nn::Node& each) const;
  void take_detector_names();
  void read_picture_sizes();
  void add_zeros_outside(const std::string& pixels, const std::string& result);
  Value add_upsample(const nn::Node& each);
  Value add_pyramid(const nn::Node& each) const;
  Value kept_apart(const nn::Node& each) const;
  Value add_transposed(const nn::Node& each, const nn::TransposedConvolution& layer);
  // Values of a level's anchors [n, anchors, width], without the last axis where the width is 1.
  std::string anchor_values(const std::string& level, std::int64_t width);
  std::string level_anchors(const nn::Node& each, const backend::AnchorSet& anchors, std::size_t level);
  Value add_objects(const nn::Node& each, const nn::DetectionLoss& layer);
  Value add_region_results(const nn::Node& each, const nn::RegionLoss& layer);
  ProtoMessage write_detector();

  // onnx_region_layers.cpp
  Value add_proposals(const nn::Node& each, const nn::Proposals& layer);
  Value add_region_align(const nn::Node& each, const nn::RegionAlign& layer);
  Value add_found_regions(const nn::Node& each, const nn::FoundRegions& layer);

  Value flat(const Value& in, const std::string& name) { return add_node("Flatten", {in.name}, name, true, {}); }

  Value spatial(const Value& in) {
    if (!in.flat) return in;
    const std::string name = fmt::format("{}_spatial_{}", in.name, nodes_);
    return add_node("Reshape", {in.name, add_integers(name + "_extents", {0, -1, 1, 1})}, name, false, {});
  }

  Value add_node(const char* op, const std::vector<std::string>& inputs, const std::string& output, bool is_flat,
                 const std::vector<ProtoMessage>& attributes) {
    return {add(op, inputs, output, attributes), is_flat};
  }

  const Value& input_of(const nn::Node& each, std::size_t index = 0) const {
    return values_.at(static_cast<std::size_t>(each.inputs[index]));
  }
  const nn::TensorView& parameter(int index) const { return graph_.parameters[static_cast<std::size_t>(index)]; }
  static std::string output_name(const nn::Node& each) { return each.name + "_output"; }

  const nn::Graph& graph_;
  const backend::ModelState& state_;
  const Json& preprocessing_;
  const OnnxOptions options_;
  const bool detects_;
  std::string input_;                            // what the network's input is called
  std::vector<Value> values_;                    // of the nodes so far
  std::map<std::int64_t, OnnxRegions> regions_;  // by the nodes whose outputs they are
  OnnxRegions found_;                            // what the detector found
  std::string limits_;                           // the largest edges of boxes, [n or 1, 1, 4]
  std::string masks_;  // of what the detector found, [n, count, points, points]; empty: it has none
};

}  // namespace dtrain::train::onnx
