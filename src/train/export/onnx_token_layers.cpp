// Layer norm, layer scale, tokens and attention as operators of ONNX.
#include <cmath>

#include "onnx_graph.hpp"

namespace dtrain::train::onnx {

// (x - mean) / sqrt(mean of its squares + epsilon) * gamma + beta over the channels: the operator that newer versions
// of ONNX have normalises the last axes alone.
Value OnnxGraph::add_layer_norm(const nn::Node& each, const nn::LayerNorm& layer) {
  const std::string in = spatial(input_of(each)).name;
  const ProtoMessage channels = integers("axes", {1});
  const std::string mean = add_part(each, "ReduceMean", {in}, "_mean", {channels});
  const std::string centred = add_part(each, "Sub", {in, mean}, "_centred");
  const std::string square = add_part(each, "Mul", {centred, centred}, "_square");
  const std::string variance = add_part(each, "ReduceMean", {square}, "_variance", {channels});
  const std::string epsilon = add_scalar(each.name + "_epsilon", layer.epsilon);
  const std::string deviation =
      add_part(each, "Sqrt", {add_part(each, "Add", {variance, epsilon}, "_above_zero")}, "_deviation");
  const std::string normal = add_part(each, "Div", {centred, deviation}, "_normal");
  const std::string gained =
      add_part(each, "Mul", {normal, add_channel_tensor(parameter(each.parameters[0]))}, "_gained");
  const std::string beta = add_channel_tensor(parameter(each.parameters[1]));
  return add_node("Add", {gained, beta}, output_name(each), false, {});
}

Value OnnxGraph::add_layer_scale(const nn::Node& each) {
  const std::string gain = add_tensor(parameter(each.parameters[0]), state_.parameters);
  return add_node("Mul", {spatial(input_of(each)).name, gain}, output_name(each), false, {});
}

// Tokens are in the last extent: [n, c, 1, tokens].
Value OnnxGraph::add_class_token(const nn::Node& each) {
  const std::string in = spatial(input_of(each)).name;
  const std::int64_t channels = each.output.c;
  const std::string row = add_part(each, "Reshape", {in, add_integers(each.name + "_row", {0, 0, 1, -1})}, "_tokens");
  const std::string count = add_part(each, "Slice",
                                     {add_part(each, "Shape", {in}, "_shape"), add_integers(each.name + "_first", {0}),
                                      add_integers(each.name + "_end", {1})},
                                     "_count");
  const std::string extents = add_part(each, "Concat", {count, add_integers(each.name + "_rest", {channels, 1, 1})},
                                       "_repeats", {integer("axis", 0)});
  const std::string token = add_channel_tensor(parameter(each.parameters[0]));
  const std::string tokens = add_part(each, "Expand", {token, extents}, "_repeated");
  return add_node("Concat", {tokens, row}, output_name(each), false, {integer("axis", 3)});
}

Value OnnxGraph::add_position(const nn::Node& each) {
  const std::string in = spatial(input_of(each)).name;
  const std::string tensor = add_tensor(parameter(each.parameters[0]), state_.parameters);
  const std::string planes = add_part(each, "Transpose", {tensor}, "_planes", {integers("perm", {0, 2, 1})});
  const std::string extents = add_integers(each.name + "_extents", {1, each.output.c, each.output.h, each.output.w});
  return add_node("Add", {in, add_part(each, "Reshape", {planes, extents}, "_spatial")}, output_name(each), false, {});
}

Value OnnxGraph::add_first_token(const nn::Node& each) {
  const auto list = [&](const char* ending, std::int64_t number) {
    return add_integers(each.name + ending, {number, number});
  };
  const std::string axes = add_integers(each.name + "_axes", {2, 3});
  return add_node("Slice", {spatial(input_of(each)).name, list("_first", 0), list("_end", 1), axes}, output_name(each),
                  false, {});
}

// [n, 3, heads, channels of a head, tokens] in three parts; shares are [n, heads, queries, keys].
Value OnnxGraph::add_attention(const nn::Node& each, const nn::Attention& layer) {
  const nn::Shape& out = each.output;
  const std::int64_t channels = out.c / layer.heads, tokens = std::int64_t{out.h} * out.w;
  const std::string extents = add_integers(each.name + "_heads", {0, 3, layer.heads, channels, tokens});
  const std::string parts = add_part(each, "Reshape", {spatial(input_of(each)).name, extents}, "_parts");
  const auto part = [&](std::int64_t number, const char* ending) {
    const std::string index = add_index(each.name + ending + "_index", number);
    return add_part(each, "Gather", {parts, index}, ending, {integer("axis", 1)});
  };
  const ProtoMessage turn = integers("perm", {0, 1, 3, 2});
  const std::string queries = add_part(each, "Transpose", {part(0, "_queries")}, "_queries_turned", {turn});
  const std::string products = add_part(each, "MatMul", {queries, part(1, "_keys")}, "_products");
  const std::string factor = add_scalar(each.name + "_factor", 1.0f / std::sqrt(static_cast<float>(channels)));
  const std::string scores = add_part(each, "Mul", {products, factor}, "_scores");
  const std::string shares = add_part(each, "Softmax", {scores}, "_shares", {integer("axis", 3)});
  const std::string turned = add_part(each, "Transpose", {shares}, "_shares_turned", {turn});
  const std::string heads = add_part(each, "MatMul", {part(2, "_values"), turned}, "_attended");
  const std::string whole = add_integers(each.name + "_whole", {0, out.c, out.h, out.w});
  return add_node("Reshape", {heads, whole}, output_name(each), false, {});
}

}  // namespace dtrain::train::onnx
