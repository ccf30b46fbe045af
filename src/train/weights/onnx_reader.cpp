#include "onnx_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "onnx_fold.hpp"
#include "tensor_views.hpp"

namespace dtrain::train {
namespace {

constexpr nn::Shape kUsualImage{3, 224, 224};  // ImageNet's

const OnnxInput& image_input(const OnnxFile& onnx, const std::string& source) {
  const OnnxInput* found = nullptr;
  for (const OnnxInput& input : onnx.inputs) {
    const bool is_weight =
        std::ranges::any_of(onnx.tensors, [&](const auto& each) { return each.name == input.name; }) ||
        onnx.others.contains(input.name);
    if (is_weight) continue;
    if (found)
      throw DataError(
          fmt::format("{}: has the inputs {} and {}; dtrain trains networks of one", source, found->name, input.name));
    found = &input;
  }
  if (!found) throw DataError(source + ": is an ONNX model without an input");
  return *found;
}

nn::Shape stated_image(const OnnxFile& onnx, const std::string& source, const std::optional<nn::Shape>& image) {
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

// A number of samples that divides no other extent shows which extents have samples in them.
constexpr std::int64_t kFreeBatch = 7919;

std::int64_t batch_of(const OnnxInput& input) {
  return input.extents.empty() || input.extents[0] == 0 ? kFreeBatch
                                                        : std::min<std::int64_t>(input.extents[0], INT32_MAX);
}

std::string stem_of(const std::string& source) { return Path(source).stem().string(); }

}  // namespace

OnnxReader::OnnxReader(const OnnxFile& onnx, const std::string& source, std::optional<nn::Shape> image)
    : onnx_(onnx),
      source_(source),
      is_other_image_(image && *image != stated_image(onnx, source, {})),
      batch_(batch_of(image_input(onnx, source))),
      builder_(stem_of(source), stated_image(onnx, source, image), image_input(onnx, source).name) {
  for (const std::vector<ForeignTensor>* list : {&onnx.tensors, &onnx.constants}) {
    for (const ForeignTensor& tensor : *list) constants_[tensor.name] = &tensor;
  }
  for (const auto& [name, integers] : onnx.integers) {
    if (element_count(integers.shape) != std::ssize(integers.values)) continue;  // longer than those of extents
    numbers_[name] = whole_numbers(integers.shape, integers.values);
  }
  const std::string& input = image_input(onnx, source).name;
  values_[input] = {.layer = builder_.input(), .layout = image_layout(batch_, builder_.shape(builder_.input()))};
  names_ = {input, "softmax"};
}

OnnxNetwork OnnxReader::read() {
  find_readers();
  for (const OnnxNode& node : onnx_.nodes) {
    if (needed_.contains(&node) && change_constant(node)) done_.insert(&node);
  }
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
      } else if (view.role == nn::TensorRole::weight) {
        throw DataError(
            fmt::format("{}: two layers use the tensor {}: sharing is not supported", source_, tensor->name));
      }
      network.tensors.push_back(std::move(*tensor++));
      network.tensors.back().name = view.name;
    };
    for (const int each : layer.parameters) take(network.graph.parameters[static_cast<std::size_t>(each)]);
    for (const int each : layer.statistics) take(network.graph.statistics[static_cast<std::size_t>(each)]);
  }
  network.owners = std::move(owners_);
  network.owners.insert(network.owners.end(), onnx_.owners.begin(), onnx_.owners.end());
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
    for (const std::string& input : node->inputs) {
      wanted.insert(input);
      readers_[input].push_back(&*node);
    }
  }
}

void OnnxReader::read_node(const OnnxNode& node) {
  if (node.inputs.empty() || node.outputs.empty()) refuse(node, "has no input or no output");
  if (node.op == "Shape" && is_value(node, 0)) return give_extents(node);
  if (compute(node)) return;
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

void OnnxReader::give_extents(const OnnxNode& node) {
  const OnnxValue& value = value_of(node, 0);
  Extents extents = extents_of(value.layout);
  const std::int64_t rank = std::ssize(extents);
  if (value.zeros != std::array<std::int64_t, 4>{}) {  // a Pad's, which the layout of the image does not have
    extents[2] += value.zeros[0] + value.zeros[2];
    extents[3] += value.zeros[1] + value.zeros[3];
  }
  const auto place = [&](std::int64_t axis) {
    return std::clamp<std::int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  const std::int64_t first = place(integer(node, "start", 0)), end = place(integer(node, "end", rank));
  OnnxNumbers numbers{{std::max<std::int64_t>(end - first, 0)}, {}, false};
  for (std::int64_t axis = first; axis < end; ++axis) {
    const auto has_samples = [](const OnnxPart& part) { return part.axis == OnnxAxis::batch; };
    const bool of_samples = std::ranges::any_of(value.layout[static_cast<std::size_t>(axis)], has_samples);
    numbers.values.push_back(
        {static_cast<double>(extents[static_cast<std::size_t>(axis)]), of_samples && batch_ == kFreeBatch});
  }
  numbers_[node.outputs.front()] = std::move(numbers);
}

bool OnnxReader::compute(const OnnxNode& node) {
  const OnnxFold* fold = find_onnx_fold(node);
  if (!fold || (node.op == "Expand" && find_tensor(node, 0))) return false;  // expand() repeats a tensor where it lies
  std::deque<OnnxNumbers> known;
  OnnxFoldInputs inputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    inputs.push_back(nullptr);
    if (!has_input(node, i)) continue;
    auto numbers = numbers_of(node, i);
    if (!numbers) return false;
    inputs.back() = &known.emplace_back(*std::move(numbers));
  }
  try {
    numbers_[node.outputs.front()] = fold_onnx_node(*fold, node, inputs);
  } catch (const UsageError& error) {
    refuse(node, error.what());
  }
  return true;
}

nn::Graph OnnxReader::finish() {
  const OnnxNode last{.name = onnx_.outputs.front(),
                      .op = "output",
                      .inputs = {onnx_.outputs.front()},
                      .outputs = {},
                      .attributes = {}};
  if (!values_.contains(onnx_.outputs.front()))
    throw DataError(fmt::format("{}: nothing computes the output {}", source_, onnx_.outputs.front()));
  try {
    nn::Graph graph = builder_.finish(layer_of(last, 0));
    nn::set_loss(graph, {.kind = loss_});
    return graph;
  } catch (const UsageError& error) {
    throw DataError(fmt::format("{}: {}", source_, error.what()), error.hint());
  }
}

int OnnxReader::add(const OnnxNode& node, nn::Layer layer, std::vector<int> inputs) {
  try {
    last_ = builder_.add(name_for(node), std::move(layer), std::move(inputs));
  } catch (const UsageError& error) {
    refuse(node, error.what());
  }
  return last_;
}

void OnnxReader::name_tensors(std::vector<ForeignTensor> tensors) { tensors_.emplace_back(last_, std::move(tensors)); }

void OnnxReader::give(const OnnxNode& node, OnnxValue value) {
  if (const OnnxNode* sum = std::exchange(folded_, nullptr)) values_[sum->outputs.front()] = value;
  values_[node.outputs.front()] = std::move(value);
}

void OnnxReader::give_image(const OnnxNode& node, int layer) {
  give(node, {.layer = layer, .layout = image_layout(batch_, builder_.shape(layer))});
}

void OnnxReader::add_each(const OnnxNode& node, nn::Layer layer) {
  const int in = layer_of(node, 0);
  give(node, {.layer = add(node, std::move(layer), {in}), .layout = value_of(node, 0).layout});
}

void OnnxReader::check_bias(const OnnxNode& node, const ForeignTensor& bias, std::int64_t channels) const {
  require(bias.shape == Extents{channels} || bias.shape == Extents{1, channels}, node,
          fmt::format("its bias is [{}], not [{}]", fmt::join(bias.shape, ", "), channels));
}

const ForeignTensor* OnnxReader::bias_behind(const OnnxNode& node, std::int64_t channels, std::size_t axis,
                                             std::size_t rank) {
  const OnnxNode* sum = only_reader(node.outputs.front());
  if (!sum || sum->op != "Add" || sum->inputs.size() != 2 || sum->outputs.empty()) return nullptr;
  const ForeignTensor* bias = find_tensor(sum->inputs[sum->inputs[0] == node.outputs.front() ? 1 : 0]);
  if (!bias || bias->shape.size() > rank) return nullptr;
  for (std::size_t i = 0; i < bias->shape.size(); ++i) {
    const bool is_channel = rank - bias->shape.size() + i == axis;
    if (bias->shape[i] != (is_channel ? channels : 1)) return nullptr;
  }
  if (bias->shape.size() < rank - axis) return nullptr;
  done_.insert(sum);
  folded_ = sum;
  made_.push_back(*bias);
  made_.back().shape = {channels};
  made_.back().strides = {bias->strides[bias->shape.size() - (rank - axis)]};
  return &made_.back();
}

std::string OnnxReader::shown(const Extents& extents) const {
  std::vector<std::string> texts;
  for (const std::int64_t extent : extents) {
    const bool has_samples = batch_ == kFreeBatch && extent > 0 && extent % kFreeBatch == 0;
    const std::int64_t rest = has_samples ? extent / kFreeBatch : extent;
    texts.push_back(!has_samples ? fmt::format("{}", extent) : rest == 1 ? "n" : fmt::format("{}n", rest));
  }
  return join(texts, ", ");
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

const ForeignTensor& OnnxReader::make_tensor(const std::string& name, Extents shape, std::vector<float> values) {
  const auto owner = std::make_shared<const std::vector<float>>(std::move(values));
  owners_.push_back(owner);
  made_.push_back({.name = name,
                   .shape = shape,
                   .strides = packed_strides(shape),
                   .dtype = "F32",
                   .bytes = std::as_bytes(std::span(*owner))});
  return made_.back();
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
