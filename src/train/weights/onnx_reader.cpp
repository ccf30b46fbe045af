#include "onnx_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::train {
namespace {

constexpr nn::Shape kUsualImage{3, 224, 224};  // ImageNet's

const OnnxInput& image_input(const OnnxFile& onnx, const std::string& source) {
  const OnnxInput* found = nullptr;
  for (const OnnxInput& input : onnx.inputs) {
    const bool is_weight =
        std::ranges::any_of(onnx.tensors, [&](const auto& each) { return each.name == input.name; }) ||
        onnx.integers.contains(input.name);
    if (is_weight) continue;
    if (found)
      throw DataError(
          fmt::format("{}: has the inputs {} and {}; dtrain trains networks of one", source, found->name, input.name));
    found = &input;
  }
  if (!found) throw DataError(source + ": is an ONNX model without an input");
  return *found;
}

nn::Shape image_of(const OnnxFile& onnx, const std::string& source, const std::optional<nn::Shape>& image) {
  const OnnxInput& input = image_input(onnx, source);
  if (!input.is_float32 || (!input.extents.empty() && input.extents.size() != 4)) {
    throw DataError(fmt::format("{}: the input {} is no float32 [n, channels, height, width]", source, input.name),
                    "export the network behind its preprocessing");
  }
  if (image) return *image;
  if (input.extents.empty()) return kUsualImage;
  const auto extent = [&](std::size_t i, int usual) {
    const std::int64_t stated = input.extents[i];
    return stated > 0 && stated <= INT32_MAX ? static_cast<int>(stated) : usual;
  };
  return {extent(1, kUsualImage.c), extent(2, kUsualImage.h), extent(3, kUsualImage.w)};
}

std::string stem_of(const std::string& source) { return Path(source).stem().string(); }

}  // namespace

OnnxReader::OnnxReader(const OnnxFile& onnx, const std::string& source, std::optional<nn::Shape> image)
    : onnx_(onnx),
      source_(source),
      builder_(stem_of(source), image_of(onnx, source, image), image_input(onnx, source).name) {
  for (const std::vector<ForeignTensor>* list : {&onnx.tensors, &onnx.constants}) {
    for (const ForeignTensor& tensor : *list) constants_[tensor.name] = &tensor;
  }
  const std::string& input = image_input(onnx, source).name;
  layers_[input] = builder_.input();
  names_ = {input, "softmax"};
}

OnnxNetwork OnnxReader::read() {
  find_readers();
  for (const OnnxNode& node : onnx_.nodes) {
    if (needed_.contains(&node) && !done_.contains(&node)) read_node(node);
  }
  OnnxNetwork network;
  network.graph = finish();
  std::set<std::string> used;
  for (auto& [index, tensors] : tensors_) {
    const nn::Node& layer = network.graph.nodes[static_cast<std::size_t>(index)];
    auto tensor = tensors.begin();
    const auto take = [&](nn::TensorView& view) {
      // Programs write equal biases and the like once; a weight of two layers is another network.
      if (used.insert(tensor->name).second) {
        view.name = tensor->name;
      } else if (view.shape.size() > 1) {
        throw DataError(
            fmt::format("{}: two layers use the tensor {}: sharing is not supported", source_, tensor->name));
      }
      network.tensors.push_back(std::move(*tensor++));
      network.tensors.back().name = view.name;
    };
    for (const int each : layer.parameters) take(network.graph.parameters[static_cast<std::size_t>(each)]);
    for (const int each : layer.statistics) take(network.graph.statistics[static_cast<std::size_t>(each)]);
  }
  return network;
}

// Marks what the first output needs, from the last node back to the first one.
void OnnxReader::find_readers() {
  if (onnx_.outputs.empty()) throw DataError(source_ + ": is an ONNX model without an output");
  std::unordered_set<std::string> wanted = {onnx_.outputs.front()};
  for (auto node = onnx_.nodes.rbegin(); node != onnx_.nodes.rend(); ++node) {
    const auto is_wanted = [&](const std::string& output) { return wanted.contains(output); };
    if (std::ranges::none_of(node->outputs, is_wanted)) continue;
    needed_.insert(&*node);
    // The extents that a Reshape computes are those of a batch of any size.
    const std::size_t followed = node->op == "Reshape" ? 1 : node->inputs.size();
    for (const std::string& input : std::span(node->inputs).first(std::min(followed, node->inputs.size()))) {
      wanted.insert(input);
      readers_[input].push_back(&*node);
    }
  }
}

void OnnxReader::read_node(const OnnxNode& node) {
  if (node.inputs.empty() || node.outputs.empty()) refuse(node, "has no input or no output");
  const std::vector<OnnxOperator>& operators = onnx_operators();
  const auto found = std::ranges::find_if(operators, [&](const OnnxOperator& each) { return node.op == each.name; });
  if (found == operators.end()) {
    std::vector<std::string_view> names;
    for (const OnnxOperator& each : operators) names.emplace_back(each.name);
    refuse(node, fmt::format("dtrain has no layer for the operator {}", node.op),
           fmt::format("networks are read that consist of {}; where the tensors have torchvision's names, give one of "
                       "`dtrain help networks` as --network",
                       fmt::join(names, ", ")));
  }
  (this->*found->read)(node);
}

nn::Graph OnnxReader::finish() {
  const auto logits = layers_.find(onnx_.outputs.front());
  if (logits == layers_.end())
    throw DataError(fmt::format("{}: nothing computes the output {}", source_, onnx_.outputs.front()));
  try {
    return builder_.finish(logits->second);
  } catch (const UsageError& error) {
    throw DataError(fmt::format("{}: {}", source_, error.what()), error.hint());
  }
}

bool OnnxReader::has_input(const OnnxNode& node, std::size_t input) {
  return input < node.inputs.size() && !node.inputs[input].empty();
}

bool OnnxReader::is_layer(const OnnxNode& node, std::size_t input) const {
  return has_input(node, input) && layers_.contains(node.inputs[input]);
}

int OnnxReader::layer_of(const OnnxNode& node, std::size_t input) const {
  if (!is_layer(node, input)) {
    const std::string name = has_input(node, input) ? node.inputs[input] : fmt::format("number {}", input + 1);
    refuse(node, fmt::format("its input {} is not computed from the image", name));
  }
  return layers_.at(node.inputs[input]);
}

const nn::Shape& OnnxReader::shape_of(const OnnxNode& node, std::size_t input) const {
  return builder_.shape(layer_of(node, input));
}

const ForeignTensor* OnnxReader::find_tensor(const std::string& name) const {
  const auto found = constants_.find(name);
  return found == constants_.end() ? nullptr : found->second;
}

const ForeignTensor& OnnxReader::tensor_of(const OnnxNode& node, std::size_t input, const char* what) const {
  const ForeignTensor* tensor = has_input(node, input) ? find_tensor(node.inputs[input]) : nullptr;
  if (!tensor) refuse(node, fmt::format("its {} is no tensor of the file", what));
  return *tensor;
}

std::optional<float> OnnxReader::number_of(const OnnxNode& node, std::size_t input) const {
  const ForeignTensor* tensor = has_input(node, input) ? find_tensor(node.inputs[input]) : nullptr;
  if (!tensor || !std::ranges::all_of(tensor->shape, [](std::int64_t extent) { return extent == 1; })) return {};
  float number = 0;
  copy_values(*tensor, std::span(&number, 1));
  return number;
}

std::vector<std::int64_t> OnnxReader::integers_of(const OnnxNode& node, const char* attribute,
                                                  std::size_t input) const {
  const auto found = node.attributes.find(attribute);
  if (found != node.attributes.end()) return found->second.integers;
  const auto listed = has_input(node, input) ? onnx_.integers.find(node.inputs[input]) : onnx_.integers.end();
  return listed == onnx_.integers.end() ? std::vector<std::int64_t>() : listed->second;
}

const OnnxNode* OnnxReader::only_reader(const std::string& value) const {
  const auto found = readers_.find(value);
  return found == readers_.end() || found->second.size() != 1 || value == onnx_.outputs.front() ? nullptr
                                                                                                : found->second.front();
}

std::int64_t OnnxReader::integer(const OnnxNode& node, const char* attribute, std::int64_t usual) const {
  const auto found = node.attributes.find(attribute);
  return found == node.attributes.end() ? usual : found->second.integer;
}

float OnnxReader::real(const OnnxNode& node, const char* attribute, float usual) const {
  const auto found = node.attributes.find(attribute);
  return found == node.attributes.end() ? usual : found->second.real;
}

int OnnxReader::small(const OnnxNode& node, std::int64_t number) const {
  if (!std::in_range<int>(number)) refuse(node, fmt::format("{} is too large", number));
  return static_cast<int>(number);
}

void OnnxReader::require(bool holds, const OnnxNode& node, const std::string& what) const {
  if (!holds) refuse(node, what);
}

void OnnxReader::add(const OnnxNode& node, nn::Layer layer, std::vector<int> inputs) {
  try {
    last_ = builder_.add(name_for(node), std::move(layer), std::move(inputs));
  } catch (const UsageError& error) {
    refuse(node, error.what());
  }
  layers_[node.outputs.front()] = last_;
  if (const OnnxNode* sum = std::exchange(folded_, nullptr)) layers_[sum->outputs.front()] = last_;
}

void OnnxReader::name_tensors(std::vector<ForeignTensor> tensors) { tensors_.emplace_back(last_, std::move(tensors)); }

void OnnxReader::check_bias(const OnnxNode& node, const ForeignTensor& bias, std::int64_t channels) const {
  const bool fits = std::ranges::count(bias.shape, channels) >= 1 &&
                    std::ranges::count_if(bias.shape, [](std::int64_t extent) { return extent != 1; }) <= 1;
  require(fits, node, fmt::format("its bias is [{}], not [{}]", fmt::join(bias.shape, ", "), channels));
}

const ForeignTensor* OnnxReader::bias_behind(const OnnxNode& node, std::int64_t channels) {
  const OnnxNode* sum = only_reader(node.outputs.front());
  if (!sum || sum->op != "Add" || sum->inputs.size() != 2 || sum->outputs.empty()) return nullptr;
  const ForeignTensor* bias = find_tensor(sum->inputs[sum->inputs[0] == node.outputs.front() ? 1 : 0]);
  if (!bias) return nullptr;
  check_bias(*sum, *bias, channels);
  done_.insert(sum);
  folded_ = sum;
  return bias;
}

// "layer1.0.conv1" where its weight is layer1.0.conv1.weight, so that patterns of names mean the same everywhere.
std::string OnnxReader::name_for(const OnnxNode& node) {
  constexpr std::string_view kWeight = ".weight";
  std::vector<std::string> choices;
  if (node.inputs.size() >= 2 && find_tensor(node.inputs[1]) && node.inputs[1].ends_with(kWeight))
    choices.push_back(node.inputs[1].substr(0, node.inputs[1].size() - kWeight.size()));
  choices.push_back(node.name.empty() ? node.outputs.front() : node.name);
  choices.push_back(node.outputs.front());
  for (const std::string& name : choices) {
    if (!name.empty() && names_.insert(name).second) return name;
  }
  refuse(node, "has the name of another node");
}

void OnnxReader::refuse(const OnnxNode& node, const std::string& what, const std::string& hint) const {
  const std::string name = node.name.empty() && !node.outputs.empty() ? node.outputs.front() : node.name;
  throw DataError(fmt::format("{}: node {} ({}): {}", source_, name, node.op, what), hint);
}

OnnxNetwork network_of_onnx(const OnnxFile& onnx, const std::string& source, std::optional<nn::Shape> image) try {
  return OnnxReader(onnx, source, image).read();
} catch (const UsageError& error) {
  throw DataError(fmt::format("{}: {}", source, error.what()), error.hint());
}

}  // namespace dtrain::train
