#include "onnx_builder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <type_traits>

namespace dtrain::train::onnx {
namespace {

template <typename T>
std::string raw_of(std::span<const T> values) {
  return std::string(text_of(std::as_bytes(values)));
}

}  // namespace

void OnnxBuilder::add_node_message(const char* op, const Names& inputs, const Names& outputs,
                                   const Attributes& attributes) {
  ProtoMessage each;
  for (const std::string& name : inputs) each.text(node_input, name);
  for (const std::string& name : outputs) each.text(node_output, name);
  each.text(node_name, fmt::format("{}_{}", op, nodes_++)).text(op_type, op);
  for (const ProtoMessage& item : attributes) each.message(attribute, item);
  message_.message(GraphField::node, each);
}

std::string OnnxBuilder::part_name(const char* op) const { return fmt::format("{}_{}_{}", scope_, op, nodes_); }

std::string OnnxBuilder::new_name(const std::string& wanted) {
  std::string name = wanted;
  for (int number = 2; !used_.insert(name).second; ++number) name = fmt::format("{}_{}", wanted, number);
  return name;
}

const std::string& OnnxBuilder::name_of(const std::string& key, const std::string& wanted) {
  const auto [place, is_new] = names_.try_emplace(key);
  if (is_new) place->second = new_name(wanted);
  return place->second;
}

std::string OnnxBuilder::add_output(const char* op, const Names& inputs, const std::string& name,
                                    const Attributes& attributes) {
  add_node_message(op, inputs, {name}, attributes);
  return name;
}

std::string OnnxBuilder::add(const char* op, const Names& inputs, const std::string& output,
                             const Attributes& attributes) {
  return add_output(op, inputs, new_name(output), attributes);
}

std::string OnnxBuilder::part(const char* op, const Names& inputs, const Attributes& attributes) {
  return add(op, inputs, part_name(op), attributes);
}

OnnxBuilder::Largest OnnxBuilder::largest(const std::string& of, std::int64_t count) {
  const std::string name = part_name("TopK");
  Largest largest{new_name(name + "_values"), new_name(name + "_places")};
  add_node_message("TopK", {of, numbers({count})}, {largest.values, largest.places}, {});
  return largest;
}

std::string OnnxBuilder::add_scalar(const std::string& name, float number) {
  return add_floats(name, {}, std::span(&number, 1));
}

std::string OnnxBuilder::add_index(const std::string& name, std::int64_t number) {
  return add_integers(name, {}, std::span(&number, 1));
}

std::string OnnxBuilder::add_integers(const std::string& name, std::initializer_list<std::int64_t> numbers) {
  const std::int64_t count = std::ssize(numbers);
  return add_integers(name, std::span(&count, 1), std::span(numbers.begin(), numbers.size()));
}

std::string OnnxBuilder::add_integers(const std::string& name, std::span<const std::int64_t> extents,
                                      std::span<const std::int64_t> numbers) {
  const std::string own = new_name(name);
  add_usual_value(own, extents, numbers);
  return own;
}

void OnnxBuilder::add_usual_value(const std::string& name, std::span<const std::int64_t> extents,
                                  std::span<const std::int64_t> numbers) {
  add_initializer(tensor_message(name, extents, int64).text(raw_data, raw_of(numbers)));
}

std::string OnnxBuilder::add_floats(const std::string& name, std::span<const std::int64_t> extents,
                                    std::span<const float> values) {
  const std::string own = new_name(name);
  add_initializer(tensor_message(own, extents, float32).text(raw_data, raw_of(values)));
  return own;
}

std::string OnnxBuilder::add_tensor(const nn::TensorView& view, const std::vector<float>& buffer) {
  const std::string& name = tensor_name(view);
  if (!stored_.insert(name).second) return name;
  const std::span values(buffer.data() + view.offset, static_cast<std::size_t>(view.size));
  add_initializer(tensor_message(name, view.shape, float32).borrowed_bytes(raw_data, std::as_bytes(values)));
  return name;
}

std::string OnnxBuilder::add_ones(const nn::TensorView& view) {
  const std::string& name = tensor_name(view);
  if (!stored_.insert(name).second) return name;
  const std::vector<float> ones(static_cast<std::size_t>(view.size), 1.0f);
  add_initializer(tensor_message(name, view.shape, float32).text(raw_data, raw_of(std::span<const float>(ones))));
  return name;
}

template <typename T>
std::string OnnxBuilder::constant(const std::string& name, std::span<const std::int64_t> extents,
                                  std::span<const T> values) {
  constexpr DataType kType = std::is_same_v<T, float> ? float32 : int64;
  const std::string& own = name_of("constant " + name, name);
  if (stored_.insert(own).second) {
    add_initializer(tensor_message(own, extents, kType).text(raw_data, raw_of(values)));
  }
  return own;
}

std::string OnnxBuilder::number(float value) {
  return constant<float>(fmt::format("float_{}", value), {}, std::span(&value, 1));
}

std::string OnnxBuilder::number(std::int64_t value) {
  return constant<std::int64_t>(fmt::format("integer_{}", value), {}, std::span(&value, 1));
}

std::string OnnxBuilder::numbers(std::span<const float> values) {
  const std::int64_t count = std::ssize(values);
  return constant<float>(fmt::format("floats_{}", fmt::join(values, "_")), {&count, 1}, values);
}

std::string OnnxBuilder::numbers(std::span<const std::int64_t> values) {
  const std::int64_t count = std::ssize(values);
  return constant<std::int64_t>(fmt::format("integers_{}", fmt::join(values, "_")), {&count, 1}, values);
}

std::string OnnxBuilder::counted(std::int64_t count, std::span<const std::int64_t> extents) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), std::int64_t{0});
  const std::string name = fmt::format("counted_{}", fmt::join(extents, "_"));
  return constant<std::int64_t>(name, extents, values);
}

}  // namespace dtrain::train::onnx
