// What a model takes and gives: names that programs know, and pixels that are prepared in it.
#include "onnx_graph.hpp"

namespace dtrain::train::onnx {

// An imported network's names may be those that the exporter makes up. What programs rely on has its name, then come
// the tensors, and everything else makes way.
void OnnxGraph::take_names() {
  if (detects_) {
    take_detector_names();
  } else {
    new_name(options_.softmax ? kProbabilities : kLogits);
  }
  if (options_.preprocessing) new_name(kPixels);
  if (!options_.preprocessing) input_ = new_name(graph_.nodes.front().name);
  for (const nn::TensorView& view : graph_.parameters) tensor_name(view);
  for (const nn::TensorView& view : graph_.statistics) tensor_name(view);
  if (options_.preprocessing) input_ = new_name(graph_.nodes.front().name);
}

nn::Graph OnnxGraph::named_graph() {
  nn::Graph named = graph_;
  for (nn::TensorView& view : named.parameters) view.name = tensor_name(view);
  for (nn::TensorView& view : named.statistics) view.name = tensor_name(view);
  return named;
}

// From bytes [n, h, w, c] to what the network's input is called.
void OnnxGraph::add_preprocessing(const std::string& result, int channels) {
  const std::vector<float> mean = channel_values("rgb_mean", channels), std = channel_values("rgb_std", channels);
  const std::string floats = add("Cast", {kPixels}, "pixels_float", {integer("to", float32)});
  const std::string planes = add("Transpose", {floats}, "pixels_planes", {integers("perm", {0, 3, 1, 2})});
  const std::string centred = add("Sub", {planes, add_channels("rgb_mean", mean)}, "pixels_centred");
  const std::vector<std::string> quotient = {centred, add_channels("rgb_std", std)};
  if (!detects_) {
    add_output("Div", quotient, result, {});
  } else {
    add_zeros_outside(add("Div", quotient, "pixels_scaled"), result);
  }
}

std::vector<float> OnnxGraph::channel_values(const char* name, int channels) const {
  const Json* list = preprocessing_.is_object() ? preprocessing_.find(name) : nullptr;
  if (!list || list->as_array().size() < static_cast<std::size_t>(channels)) {
    throw SettingError("with-preprocessing",
                       "needs the mean and the deviation of the pixels, which the checkpoint does not name",
                       "leave it out, and normalise the images before they reach the model; or export a checkpoint "
                       "that names them: `dtrain import` makes one of an ONNX model with setting 'rgb-mean' and "
                       "setting 'rgb-std'");
  }
  std::vector<float> values;
  for (int c = 0; c < channels; ++c) {
    values.push_back(static_cast<float>(list->as_array()[static_cast<std::size_t>(c)].as_number()));
  }
  return values;
}

std::string OnnxGraph::add_channels(const char* name, const std::vector<float>& values) {
  const std::int64_t extents[] = {1, std::ssize(values), 1, 1};
  return add_floats(name, extents, values);
}

// The output, unless the model goes on to the probabilities.
Value OnnxGraph::add_logits(const Value& in) {
  if (options_.softmax) return flat(in, kLogits);
  return {add_output("Flatten", {in.name}, kLogits, {}), true};
}

// Those of classes that are judged one by one do not add up to 1.
void OnnxGraph::add_probabilities(const Value& logits) {
  if (nn::loss_of(graph_).kind == nn::LossKind::sigmoid) {
    add_output("Sigmoid", {logits.name}, kProbabilities, {});
  } else {
    add_output("Softmax", {logits.name}, kProbabilities, {integer("axis", 1)});
  }
}

}  // namespace dtrain::train::onnx
