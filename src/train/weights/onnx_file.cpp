#include "onnx_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include <dtrain/base/error.hpp>

#include "onnx_numbers.hpp"
#include "proto_reader.hpp"

namespace dtrain::train {
namespace {

constexpr const char* kOwnDomain = "ai.onnx";
constexpr const char* kOnnxHint = "the file is damaged, cut short or no ONNX model";

// Field numbers and constants of onnx/onnx.proto.
enum Model { graph = 7, opset_import = 8, metadata_props = 14 };
enum OperatorSet { set_domain = 1, set_version = 2 };
enum MapEntry { key = 1, value = 2 };
enum GraphField { node = 1, initializer = 5, graph_input = 11, graph_output = 12 };
enum Node { node_input = 1, node_output = 2, node_name = 3, op_type = 4, attribute = 5, domain = 7 };
enum Attribute { attribute_name = 1, attribute_f = 2, attribute_i = 3, attribute_s = 4, attribute_t = 5, ints = 8 };
enum ValueInfo { info_name = 1, info_type = 2 };
enum Type { tensor_type = 1, elem_type = 1, shape = 2, dim = 1, dim_value = 1 };
enum Tensor {
  dims = 1,
  data_type = 2,
  float_data = 4,
  int32_data = 5,
  int64_data = 7,
  tensor_name = 8,
  raw_data = 9,
  double_data = 10,
  data_location = 14
};

// By its name in safetensors; empty: one of no use here.
std::string dtype_of(std::uint64_t type) {
  constexpr std::array<const char*, 17> kNames = {"",     "F32", "U8",  "I8",  "U16", "I16", "I32", "I64", "",
                                                  "BOOL", "F16", "F64", "U32", "U64", "",    "",    "BF16"};
  return type < kNames.size() ? kNames.at(type) : "";
}

// A tensor of the file: real numbers, or a few whole ones.
struct FoundTensor {
  ForeignTensor real{};
  std::vector<std::int64_t> integers{};
  std::uint64_t location = 0;
};

class Reader {
 public:
  explicit Reader(const std::string& source) : source_(source) {}

  OnnxFile read(ByteView file) {
    ProtoReader model = message(file);
    while (const auto field = model.next()) {
      if (field->is_varint) continue;
      if (field->number == graph) read_graph(field->bytes);
      if (field->number == opset_import) read_operator_set(field->bytes);
      if (field->number == metadata_props) read_metadata(field->bytes);
    }
    return std::move(onnx_);
  }

 private:
  ProtoReader message(ByteView bytes) const { return {bytes, source_, kOnnxHint}; }

  void read_operator_set(ByteView bytes) {
    std::string space;
    std::int64_t stated = 0;
    ProtoReader reader = message(bytes);
    while (const auto field = reader.next()) {
      if (field->number == set_domain && !field->is_varint) space = text_of(field->bytes);
      if (field->number == set_version && field->is_varint) stated = static_cast<std::int64_t>(field->value);
    }
    if (space.empty() || space == kOwnDomain) onnx_.operator_set = stated;
  }

  void read_metadata(ByteView bytes) {
    std::array<std::string, 2> words;
    ProtoReader entry = message(bytes);
    while (const auto field = entry.next()) {
      if (field->is_varint) continue;
      if (field->number == key) words[0] = text_of(field->bytes);
      if (field->number == value) words[1] = text_of(field->bytes);
    }
    onnx_.metadata[words[0]] = words[1];
  }

  void read_graph(ByteView bytes) {
    ProtoReader reader = message(bytes);
    while (const auto field = reader.next()) {
      if (field->is_varint) continue;
      if (field->number == node) read_node(field->bytes);
      if (field->number == initializer) add(read_tensor(field->bytes), onnx_.tensors);
      if (field->number == graph_input) onnx_.inputs.push_back(read_value_info(field->bytes));
      if (field->number == graph_output) onnx_.outputs.push_back(read_value_info(field->bytes).name);
    }
  }

  void read_node(ByteView bytes) {
    OnnxNode read;
    std::string space;
    std::optional<FoundTensor> constant;
    ProtoReader reader = message(bytes);
    while (const auto field = reader.next()) {
      if (field->is_varint) continue;
      if (field->number == node_input) read.inputs.emplace_back(text_of(field->bytes));
      if (field->number == node_output) read.outputs.emplace_back(text_of(field->bytes));
      if (field->number == node_name) read.name = text_of(field->bytes);
      if (field->number == op_type) read.op = text_of(field->bytes);
      if (field->number == domain) space = text_of(field->bytes);
      if (field->number == attribute) read_attribute(field->bytes, read, constant);
    }
    if (!space.empty() && space != kOwnDomain) read.op = fmt::format("{}.{}", space, read.op);
    if (constant && read.op == "ConstantOfShape") read_number(*constant, read.attributes["value"]);
    if (read.op != "Constant" || !constant || read.outputs.empty()) return onnx_.nodes.push_back(std::move(read));
    constant->real.name = read.outputs.front();
    add(std::move(*constant), onnx_.constants);
  }

  // The one that the operator repeats.
  void read_number(const FoundTensor& tensor, OnnxAttribute& value) const {
    if (!tensor.integers.empty()) value.integer = tensor.integers.front();
    ForeignTensor number = tensor.real;
    number.shape.clear();
    value.is_real = !number.dtype.empty() && is_real(number);
    if (!value.is_real) return;
    check(number);
    copy_values(number, std::span(&value.real, 1));
  }

  void read_attribute(ByteView bytes, OnnxNode& owner, std::optional<FoundTensor>& tensor) {
    OnnxAttribute read;
    std::string name;
    ByteView number;
    ProtoReader reader = message(bytes);
    while (const auto field = reader.next()) {
      if (field->number == attribute_i && field->is_varint) read.integer = static_cast<std::int64_t>(field->value);
      if (field->number == ints) add_integers(*field, read.integers);
      if (field->is_varint) continue;
      if (field->number == attribute_name) name = text_of(field->bytes);
      if (field->number == attribute_s) read.text = text_of(field->bytes);
      if (field->number == attribute_f && field->bytes.size() == sizeof read.real)
        std::memcpy(&read.real, field->bytes.data(), sizeof read.real);
      if (field->number == attribute_t) tensor = read_tensor(field->bytes);
      if (field->number == attribute_f) number = field->bytes;
    }
    if (name == "value_float")
      tensor = FoundTensor{.real = {.name = {}, .shape = {}, .strides = {}, .dtype = "F32", .bytes = number}};
    if (name == "value_int") tensor = FoundTensor{.integers = {read.integer}};
    if (name == "value_ints") {
      tensor = FoundTensor{.integers = read.integers};
      tensor->real.shape = {std::ssize(read.integers)};
    }
    owner.attributes[name] = std::move(read);
  }

  OnnxInput read_value_info(ByteView bytes) {
    OnnxInput info;
    ProtoReader reader = message(bytes);
    while (const auto field = reader.next()) {
      if (field->is_varint) continue;
      if (field->number == info_name) info.name = text_of(field->bytes);
      if (field->number == info_type) read_type(field->bytes, info);
    }
    return info;
  }

  void read_type(ByteView bytes, OnnxInput& info) {
    ProtoReader reader = message(bytes);
    while (const auto field = reader.next()) {
      if (field->number != tensor_type || field->is_varint) continue;
      ProtoReader tensor = message(field->bytes);
      while (const auto part = tensor.next()) {
        if (part->number == elem_type && part->is_varint) info.is_float32 = dtype_of(part->value) == "F32";
        if (part->number == Type::shape && !part->is_varint) read_extents(part->bytes, info.extents);
      }
    }
  }

  void read_extents(ByteView bytes, std::vector<std::int64_t>& extents) {
    ProtoReader reader = message(bytes);
    while (const auto field = reader.next()) {
      if (field->number != dim || field->is_varint) continue;
      std::int64_t extent = 0;
      ProtoReader one = message(field->bytes);
      while (const auto part = one.next()) {
        if (part->number == dim_value && part->is_varint) extent = static_cast<std::int64_t>(part->value);
      }
      extents.push_back(std::max<std::int64_t>(extent, 0));
    }
  }

  FoundTensor read_tensor(ByteView bytes) {
    FoundTensor found;
    std::vector<std::int64_t> listed;
    ProtoReader reader = message(bytes);
    while (const auto field = reader.next()) {
      switch (field->number) {
        case dims:
          add_integers(*field, found.real.shape);
          break;
        case data_type:
          found.real.dtype = dtype_of(field->value);
          break;
        case int32_data:
        case int64_data:
          add_integers(*field, listed);
          break;
        case float_data:
        case double_data:
        case raw_data:
          found.real.bytes = field->bytes;
          break;
        case tensor_name:
          found.real.name = text_of(field->bytes);
          break;
        case data_location:
          found.location = field->value;
          break;
        default:
          break;
      }
    }
    const std::string& dtype = found.real.dtype;
    if (dtype == "I64") found.integers = numbers_in<std::int64_t>(found.real.bytes);
    if (dtype == "I32") found.integers = numbers_in<std::int32_t>(found.real.bytes);
    if (dtype == "BOOL") found.integers = numbers_in<std::uint8_t>(found.real.bytes);
    const bool is_whole = dtype == "I64" || dtype == "I32" || dtype == "BOOL";
    if (is_whole && !listed.empty()) found.integers = std::move(listed);
    const bool is_half = dtype == "F16" || dtype == "BF16";
    if (is_half && found.real.bytes.empty() && !listed.empty()) found.real.bytes = halves_of(listed);
    return found;
  }

  // Numbers of 16 bits may stand as the whole numbers of the same bits.
  ByteView halves_of(const std::vector<std::int64_t>& listed) {
    auto halves = std::make_shared<std::vector<std::uint16_t>>();
    for (const std::int64_t bits : listed) halves->push_back(static_cast<std::uint16_t>(bits));
    const ByteView bytes = std::as_bytes(std::span(*halves));
    onnx_.owners.push_back(std::move(halves));
    return bytes;
  }

  template <class Whole>
  static std::vector<std::int64_t> numbers_in(ByteView bytes) {
    std::vector<Whole> numbers(std::min<std::size_t>(kMostOnnxNumbers, bytes.size() / sizeof(Whole)));
    if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(Whole));
    return {numbers.begin(), numbers.end()};
  }

  // Packed or one by one.
  void add_integers(const ProtoField& field, std::vector<std::int64_t>& numbers) const {
    if (field.is_varint) return numbers.push_back(static_cast<std::int64_t>(field.value));
    ProtoReader packed = message(field.bytes);
    while (!packed.done()) numbers.push_back(static_cast<std::int64_t>(packed.varint()));
  }

  // Whole numbers, such as the extents of a Reshape, are no weights.
  void add(FoundTensor found, std::vector<ForeignTensor>& tensors) {
    ForeignTensor& tensor = found.real;
    if (found.location != 0) fail(tensor.name, "its numbers lie in another file", "save the model as one file");
    if (!found.integers.empty()) onnx_.integers[tensor.name] = {tensor.shape, std::move(found.integers)};
    if (tensor.dtype.empty() || !is_real(tensor)) {
      onnx_.others.insert(tensor.name);
      return;
    }
    tensor.strides = packed_strides(tensor.shape);
    check(tensor);
    tensors.push_back(std::move(tensor));
  }

  void check(const ForeignTensor& tensor) const {
    try {
      check_tensor_bytes(tensor);
    } catch (const DataError& error) {
      fail(tensor.name, error.what(), kOnnxHint);
    }
  }

  [[noreturn]] void fail(const std::string& tensor, const std::string& what, const char* hint) const {
    throw DataError(fmt::format("{}: tensor '{}': {}", source_, tensor, what), hint);
  }

  const std::string& source_;
  OnnxFile onnx_;
};

}  // namespace

OnnxFile parse_onnx_file(ByteView file, const std::string& source) { return Reader(source).read(file); }

}  // namespace dtrain::train
