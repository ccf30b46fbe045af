// What a model of ONNX is made of, as messages of protobuf.
#pragma once

#include <initializer_list>
#include <span>
#include <string>

#include "protobuf.hpp"

namespace dtrain::train::onnx {

// Field numbers and constants of onnx/onnx.proto.
enum Model {
  ir_version = 1,
  producer_name = 2,
  producer_version = 3,
  graph = 7,
  opset_import = 8,
  metadata_props = 14
};
enum OperatorSet { version = 2 };
enum Entry { key = 1, value = 2 };
enum GraphField { node = 1, graph_name = 2, initializer = 5, input = 11, output = 12 };
enum NodeField { node_input = 1, node_output = 2, node_name = 3, op_type = 4, attribute = 5 };
enum Attribute { attribute_name = 1, f = 2, i = 3, ints = 8, attribute_type = 20 };
enum AttributeType { type_float = 1, type_int = 2, type_ints = 7 };
enum Tensor { dims = 1, data_type = 2, tensor_name = 8, raw_data = 9 };
enum DataType { float32 = 1, uint8 = 2, int64 = 7 };
enum ValueInfo { info_name = 1, info_type = 2 };
enum Type { tensor_type = 1, elem_type = 1, shape = 2, dim = 1, dim_value = 1, dim_param = 2 };

inline constexpr const char* kFreeBatch = "n";

inline ProtoMessage integer(const char* name, std::int64_t number) {
  return ProtoMessage().text(attribute_name, name).integer(i, number).integer(attribute_type, type_int);
}
inline ProtoMessage real(const char* name, float number) {
  return ProtoMessage().text(attribute_name, name).float32(f, number).integer(attribute_type, type_float);
}
inline ProtoMessage integers(const char* name, std::initializer_list<std::int64_t> numbers) {
  ProtoMessage message;
  message.text(attribute_name, name);
  for (std::int64_t number : numbers) message.integer(ints, number);
  return message.integer(attribute_type, type_ints);
}

inline ProtoMessage tensor_message(const std::string& name, std::span<const std::int64_t> extents, DataType type) {
  ProtoMessage message;
  for (std::int64_t extent : extents) message.integer(dims, extent);
  return message.integer(data_type, type).text(tensor_name, name);
}

// `first` is the name of the first extent, which is free.
inline ProtoMessage value_info(const std::string& name, std::initializer_list<std::int64_t> extents_after_first,
                               DataType type_of_elements = float32, const char* first = kFreeBatch) {
  ProtoMessage extents;
  extents.message(dim, ProtoMessage().text(dim_param, first));
  for (std::int64_t extent : extents_after_first) extents.message(dim, ProtoMessage().integer(dim_value, extent));
  ProtoMessage tensor;
  tensor.integer(elem_type, type_of_elements).message(shape, extents);
  ProtoMessage type;
  type.message(tensor_type, tensor);
  return ProtoMessage().text(info_name, name).message(info_type, type);
}

}  // namespace dtrain::train::onnx
