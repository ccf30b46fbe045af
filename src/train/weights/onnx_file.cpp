#include "onnx_file.hpp"

#include <fmt/format.h>

#include <array>

#include <dtrain/base/error.hpp>

#include "proto_reader.hpp"

namespace dtrain::train {
namespace {

constexpr const char* kOnnxHint = "the file is damaged, cut short or no ONNX model";

// Field numbers and constants of onnx/onnx.proto.
enum Model { graph = 7, metadata_props = 14 };
enum Entry { key = 1, value = 2 };
enum GraphField { initializer = 5 };
enum Tensor { dims = 1, data_type = 2, float_data = 4, tensor_name = 8, raw_data = 9, data_location = 14 };

// By its name in safetensors; empty: one of no use here.
std::string dtype_of(std::uint64_t type) {
  constexpr std::array<const char*, 17> kNames = {"",     "F32", "U8",  "I8",  "U16", "I16", "I32", "I64", "",
                                                  "BOOL", "F16", "F64", "U32", "U64", "",    "",    "BF16"};
  return type < kNames.size() ? kNames.at(type) : "";
}

class Reader {
 public:
  explicit Reader(const std::string& source) : source_(source) {}

  OnnxFile read(ByteView file) {
    ProtoReader model = message(file);
    while (const auto field = model.next()) {
      if (field->is_varint) continue;
      if (field->number == graph) read_graph(field->bytes);
      if (field->number == metadata_props) read_metadata(field->bytes);
    }
    return std::move(onnx_);
  }

 private:
  ProtoReader message(ByteView bytes) const { return {bytes, source_, kOnnxHint}; }

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
      if (field->number == initializer && !field->is_varint) read_tensor(field->bytes);
    }
  }

  void read_tensor(ByteView bytes) {
    ForeignTensor tensor;
    std::uint64_t location = 0;
    ProtoReader reader = message(bytes);
    while (const auto field = reader.next()) {
      switch (field->number) {
        case dims:
          add_extents(*field, tensor.shape);
          break;
        case data_type:
          tensor.dtype = dtype_of(field->value);
          break;
        case float_data:
        case raw_data:
          tensor.bytes = field->bytes;
          break;
        case tensor_name:
          tensor.name = text_of(field->bytes);
          break;
        case data_location:
          location = field->value;
          break;
        default:
          break;
      }
    }
    if (location != 0) fail(tensor.name, "its numbers lie in another file", "save the model as one file");
    add(std::move(tensor));
  }

  // Packed or one by one.
  void add_extents(const ProtoField& field, std::vector<std::int64_t>& shape) const {
    if (field.is_varint) return shape.push_back(static_cast<std::int64_t>(field.value));
    ProtoReader packed = message(field.bytes);
    while (!packed.done()) shape.push_back(static_cast<std::int64_t>(packed.varint()));
  }

  // Numbers of other kinds, such as the extents of a Reshape, are no weights.
  void add(ForeignTensor tensor) {
    if (tensor.dtype.empty() || !is_real(tensor)) return;
    tensor.strides = packed_strides(tensor.shape);
    try {
      check_tensor_bytes(tensor);
    } catch (const DataError& error) {
      fail(tensor.name, error.what(), kOnnxHint);
    }
    onnx_.tensors.push_back(std::move(tensor));
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
