// Walks an ONNX model from its input to its first output and adds a layer for each operator.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "onnx_network.hpp"

namespace dtrain::train {

class OnnxReader {
 public:
  OnnxReader(const OnnxFile& onnx, const std::string& source, std::optional<nn::Shape> image);
  OnnxNetwork read();

  // onnx_operators.cpp: one for each operator, and the table of them.
  void add_convolution(const OnnxNode& node);
  void add_batch_norm(const OnnxNode& node);
  void add_activation(const OnnxNode& node);
  void add_clip(const OnnxNode& node);
  void add_hard_sigmoid(const OnnxNode& node);
  void add_pooling(const OnnxNode& node);
  void add_global_pooling(const OnnxNode& node);
  void add_mean(const OnnxNode& node);
  void add_product(const OnnxNode& node);  // Gemm and MatMul
  void add_sum(const OnnxNode& node);      // Add and Sum
  void add_scaling(const OnnxNode& node);  // Mul and Div
  void add_concat(const OnnxNode& node);
  void add_flatten(const OnnxNode& node);  // Flatten and Reshape
  void add_squeeze(const OnnxNode& node);
  void add_dropout(const OnnxNode& node);
  void hand_on(const OnnxNode& node);  // its first input is its output
  void end_in_softmax(const OnnxNode& node);

 private:
  // onnx_reader.cpp
  void find_readers();
  void read_node(const OnnxNode& node);
  nn::Graph finish();

  // What the value of this name is computed by; refuses a value that is none of a layer.
  int layer_of(const OnnxNode& node, std::size_t input) const;
  bool is_layer(const OnnxNode& node, std::size_t input) const;
  const nn::Shape& shape_of(const OnnxNode& node, std::size_t input) const;
  const ForeignTensor* find_tensor(const std::string& name) const;
  const ForeignTensor& tensor_of(const OnnxNode& node, std::size_t input, const char* what) const;
  // One number, or a tensor of one number.
  std::optional<float> number_of(const OnnxNode& node, std::size_t input) const;
  std::vector<std::int64_t> integers_of(const OnnxNode& node, const char* attribute, std::size_t input) const;
  static bool has_input(const OnnxNode& node, std::size_t input);
  // The one node that reads the value; nullptr where several do, or where it is the output.
  const OnnxNode* only_reader(const std::string& value) const;

  std::int64_t integer(const OnnxNode& node, const char* attribute, std::int64_t usual) const;
  int small(const OnnxNode& node, std::int64_t number) const;
  float real(const OnnxNode& node, const char* attribute, float usual) const;
  void require(bool holds, const OnnxNode& node, const std::string& what) const;
  // kernel, stride and pad of a convolution or a pooling; without kernel_shape, kernel_h and kernel_w stay.
  void read_window(const OnnxNode& node, const nn::Shape& in, auto& window) const;

  // Adds the layer behind `inputs` as the node's output.
  void add(const OnnxNode& node, nn::Layer layer, std::vector<int> inputs);
  // The tensors of the layer that was added last, in the order of nn::Node's.
  void name_tensors(std::vector<ForeignTensor> tensors);
  // An Add of one number for each channel right behind the node: its bias. What add() adds next computes the sum.
  const ForeignTensor* bias_behind(const OnnxNode& node, std::int64_t channels);
  void check_bias(const OnnxNode& node, const ForeignTensor& bias, std::int64_t channels) const;
  std::string name_for(const OnnxNode& node);
  [[noreturn]] void refuse(const OnnxNode& node, const std::string& what, const std::string& hint = {}) const;

  const OnnxFile& onnx_;
  const std::string& source_;
  std::unordered_map<std::string, const ForeignTensor*> constants_;
  std::deque<ForeignTensor> renamed_;                                      // tensors of the file under a second name
  std::unordered_map<std::string, std::vector<const OnnxNode*>> readers_;  // of nodes that the output needs
  std::unordered_set<const OnnxNode*> needed_, done_;                      // done: a part of an earlier layer
  std::unordered_map<std::string, int> layers_;                            // by the value that they compute
  std::set<std::string> names_;
  nn::GraphBuilder builder_;
  std::vector<std::pair<int, std::vector<ForeignTensor>>> tensors_;  // by layer
  const OnnxNode* folded_ = nullptr;                                 // see bias_behind()
  int last_ = 0;
};

struct OnnxOperator {
  const char* name;
  void (OnnxReader::*read)(const OnnxNode&);
};
const std::vector<OnnxOperator>& onnx_operators();

}  // namespace dtrain::train
