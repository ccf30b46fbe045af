// Small ONNX models, written node by node.
#pragma once

#include <string>
#include <vector>

#include "export/onnx_messages.hpp"
#include "weights/onnx_network.hpp"

namespace dtrain::train {

// A model of 2x4x4 images; nodes are added in order, each with the output that stands behind its inputs.
class Sketch {
 public:
  Sketch& node(const char* op, const std::vector<std::string>& values, const std::string& made,
               const std::vector<ProtoMessage>& attributes = {}) {
    ProtoMessage each;
    for (const std::string& value : values) each.text(onnx::node_input, value);
    each.text(onnx::node_output, made).text(onnx::node_name, "the_" + made).text(onnx::op_type, op);
    for (const ProtoMessage& item : attributes) each.message(onnx::attribute, item);
    graph_.message(onnx::GraphField::node, each);
    last_ = made;
    return *this;
  }
  // Values 0, 1, 2, ...
  Sketch& tensor(const char* name, const std::vector<std::int64_t>& extents) {
    std::int64_t size = 1;
    for (const std::int64_t extent : extents) size *= extent;
    std::vector<float> values;
    for (std::int64_t i = 0; i < size; ++i) values.push_back(static_cast<float>(i));
    graph_.message(onnx::initializer,
                   onnx::tensor_message(name, extents, onnx::float32)
                       .text(onnx::raw_data, std::string(text_of(std::as_bytes(std::span(values))))));
    return *this;
  }
  // Numbers such as extents.
  Sketch& whole(const char* name, const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& values) {
    graph_.message(onnx::initializer,
                   onnx::tensor_message(name, extents, onnx::int64)
                       .text(onnx::raw_data, std::string(text_of(std::as_bytes(std::span(values))))));
    return *this;
  }
  Sketch& initializer(const ProtoMessage& tensor) {
    graph_.message(onnx::initializer, tensor);
    return *this;
  }
  Sketch& operator_set(int number) {
    operator_set_ = number;
    return *this;
  }
  std::string file() {
    ProtoMessage model;
    if (operator_set_ > 0) {
      model.message(onnx::opset_import, ProtoMessage().integer(onnx::OperatorSet::version, operator_set_));
    }
    graph_.message(onnx::input, onnx::value_info("image", {2, 4, 4}))
        .message(onnx::output, onnx::value_info(last_, {3}));
    model.message(onnx::Model::graph, graph_);
    std::string text;
    model.for_each_piece([&](ByteView piece) { text += text_of(piece); });
    return text;
  }

 private:
  ProtoMessage graph_;
  std::string last_;
  int operator_set_ = 0;
};

inline OnnxNetwork read_sketch(const std::string& file) {
  return network_of_onnx(parse_onnx_file(bytes_of(file), "m.onnx"), "m.onnx");
}

}  // namespace dtrain::train
