// Walks an ONNX model from its input to its first output and adds a layer for each operator that is no matter of the
// layout alone.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "onnx_network.hpp"
#include "onnx_numbers.hpp"
#include "onnx_value.hpp"

namespace dtrain::train {

class OnnxReader {
 public:
  OnnxReader(const OnnxFile& onnx, const std::string& source, std::optional<nn::Shape> image);
  OnnxNetwork read();

  // onnx_operators.cpp: layers of images, and the table of all operators.
  void add_convolution(const OnnxNode& node);
  void add_batch_norm(const OnnxNode& node);
  void add_activation(const OnnxNode& node);
  void add_clip(const OnnxNode& node);
  void add_hard_sigmoid(const OnnxNode& node);
  void add_pooling(const OnnxNode& node);
  void add_global_pooling(const OnnxNode& node);
  void add_local_response_norm(const OnnxNode& node);
  void add_sum(const OnnxNode& node);      // Add and Sum
  void add_scaling(const OnnxNode& node);  // Mul and Div
  void add_concat(const OnnxNode& node);
  void add_dropout(const OnnxNode& node);
  void hand_on(const OnnxNode& node);  // its first input is its output
  void end_in_softmax(const OnnxNode& node);

  // onnx_token_operators.cpp: products and norms of channels.
  void add_product(const OnnxNode& node);  // Gemm and MatMul
  void add_mean(const OnnxNode& node);
  void add_layer_norm(const OnnxNode& node);
  void add_error_function(const OnnxNode& node);

  // onnx_layout_operators.cpp: the same numbers with other axes.
  void cast(const OnnxNode& node);
  void reshape(const OnnxNode& node);  // Reshape and Flatten
  void transpose(const OnnxNode& node);
  void squeeze(const OnnxNode& node);
  void unsqueeze(const OnnxNode& node);
  void slice(const OnnxNode& node);
  void split(const OnnxNode& node);
  void gather(const OnnxNode& node);
  void expand(const OnnxNode& node);  // Expand and Tile
  void pad(const OnnxNode& node);

 private:
  // onnx_reader.cpp
  void find_readers();
  void read_node(const OnnxNode& node);
  void give_extents(const OnnxNode& node);
  // False: it is no computation of numbers alone.
  bool compute(const OnnxNode& node);
  nn::Graph finish();

  // What the value of this name is; refuses one that is not computed from the image.
  const OnnxValue& value_of(const OnnxNode& node, std::size_t input) const;
  const OnnxValue& unpadded_value_of(const OnnxNode& node, std::size_t input) const;  // refuses what a Pad made larger
  // The layer that computes the value, all channels of it and times its factor.
  int layer_of(const OnnxNode& node, std::size_t input);
  // The same of a value whose axes are samples, channels and the rows and columns of its pixels.
  int image_of(const OnnxNode& node, std::size_t input);
  // The image and the zeros that a Pad put around it.
  std::pair<int, std::array<std::int64_t, 4>> padded_image_of(const OnnxNode& node, std::size_t input);
  const nn::Shape& shape_of(const OnnxValue& value) const { return builder_.shape(value.layer); }
  std::int64_t pixels_of(const OnnxValue& value) const;
  bool is_value(const OnnxNode& node, std::size_t input) const;
  // nullopt: the value has no axis of all channels of its layer.
  std::optional<std::size_t> channel_axis(const OnnxValue& value) const;
  const ForeignTensor* find_tensor(const std::string& name) const;
  const ForeignTensor* find_tensor(const OnnxNode& node, std::size_t input) const;
  const ForeignTensor& tensor_of(const OnnxNode& node, std::size_t input, const char* what) const;
  // One number, or a tensor of one number.
  std::optional<float> number_of(const OnnxNode& node, std::size_t input) const;
  std::optional<OnnxNumbers> numbers_of(const OnnxNode& node, std::size_t input) const;
  Extents integers_of(const OnnxNode& node, const char* attribute, std::size_t input) const;
  // Axes of a value of so many, counted from the first.
  Extents axes_of(const OnnxNode& node, Extents axes, std::size_t rank) const;
  static bool has_input(const OnnxNode& node, std::size_t input);
  // The nodes that read the numbers of the value.
  std::vector<const OnnxNode*> readers_of(const std::string& value) const;
  // The one node that reads the value; nullptr where several do, or where it is the output.
  const OnnxNode* only_reader(const std::string& value) const;

  std::int64_t integer(const OnnxNode& node, const char* attribute, std::int64_t usual) const;
  int small(const OnnxNode& node, std::int64_t number) const;
  // "n, 5", with n for a number of samples that the model leaves free.
  std::string shown(const Extents& extents) const;
  float real(const OnnxNode& node, const char* attribute, float usual) const;
  void require(bool holds, const OnnxNode& node, const std::string& what) const;

  // Adds the layer behind `inputs` and returns it.
  int add(const OnnxNode& node, nn::Layer layer, std::vector<int> inputs);
  // The tensors of the layer that was added last, in the order of nn::Node's.
  void name_tensors(std::vector<ForeignTensor> tensors);
  // The node's output is the value.
  void give(const OnnxNode& node, OnnxValue value);
  void give_image(const OnnxNode& node, int layer);
  // Adds a layer that computes each number of its input on its own.
  void add_each(const OnnxNode& node, nn::Layer layer);
  // An Add of one number for each channel right behind the node, whose output has its channels as axis `axis` of
  // `rank`: its bias. What give() gives next is the sum.
  const ForeignTensor* bias_behind(const OnnxNode& node, std::int64_t channels, std::size_t axis, std::size_t rank);
  void check_bias(const OnnxNode& node, const ForeignTensor& bias, std::int64_t channels) const;
  std::string name_for(const OnnxNode& node);
  // A tensor of its own numbers; `name` is unique.
  const ForeignTensor& make_tensor(const std::string& name, Extents shape, std::vector<float> values);
  [[noreturn]] void refuse(const OnnxNode& node, const std::string& what, const std::string& hint = {}) const;

  // onnx_operators.cpp
  bool is_output(std::string value) const;
  void end_in_sigmoid(const OnnxNode& node);
  // kernel, stride and pad of a convolution or a pooling; without kernel_shape, kernel_h and kernel_w stay. The pads
  // are those of all four sides, in ONNX's order.
  Extents read_window(const OnnxNode& node, const nn::Shape& in, auto& window) const;
  bool is_relu(int layer) const;
  bool add_gelu(const OnnxNode& node);

  // onnx_token_operators.cpp, onnx_attention.cpp
  void add_dense(const OnnxNode& node, ForeignTensor weight, const ForeignTensor* bias);
  // A value plus, or times, numbers of the file.
  void add_constant(const OnnxNode& node, std::size_t value, std::size_t constant);
  void multiply_constant(const OnnxNode& node, std::size_t value, const ForeignTensor& tensor);
  bool is_channel_vector(const OnnxValue& value, const ForeignTensor& tensor) const;
  ForeignTensor channel_vector(const OnnxNode& node, const ForeignTensor& tensor, std::int64_t channels) const;
  bool add_decomposed_norm(const OnnxNode& mean);
  void give_norm(const OnnxNode& first, const OnnxNode& last, const OnnxValue& value, float epsilon,
                 std::vector<ForeignTensor> tensors);
  bool add_class_token(const OnnxNode& node);
  void multiply_values(const OnnxNode& node);
  OnnxHeads heads_of(const OnnxNode& node, const OnnxValue& value, std::size_t axis) const;
  void end_scores(const OnnxNode& node, OnnxValue scores);
  void attend(const OnnxNode& node, const OnnxValue& shares, const OnnxHeads& values, OnnxLayout layout);

  // onnx_layout_operators.cpp
  bool change_constant(const OnnxNode& node);
  // `count` indices of an axis from `first` on.
  OnnxValue part_of(const OnnxNode& node, const OnnxValue& value, std::size_t axis, std::int64_t first,
                    std::int64_t count);
  OnnxValue flattened(const OnnxNode& node, OnnxValue value);
  Extents extents_for(const OnnxNode& node, const Extents& given, const Extents& stated) const;

  const OnnxFile& onnx_;
  const std::string& source_;
  const bool is_other_image_;  // than the one that the model states
  std::int64_t batch_ = 1;
  std::unordered_map<std::string, const ForeignTensor*> constants_;
  std::unordered_map<std::string, OnnxNumbers> numbers_;
  std::deque<ForeignTensor> made_;  // tensors of the file under a second name or shape, and others
  std::vector<std::shared_ptr<const void>> owners_;
  std::unordered_map<std::string, std::vector<const OnnxNode*>> readers_;  // of nodes that the output needs
  std::unordered_set<const OnnxNode*> needed_, done_;                      // done: a part of an earlier layer
  std::unordered_map<std::string, OnnxValue> values_;                      // by their names
  std::map<std::pair<const OnnxNode*, int>, int> scales_;                  // layers of factors
  std::set<std::string> names_;
  nn::GraphBuilder builder_;
  std::vector<std::pair<int, std::vector<ForeignTensor>>> tensors_;  // by layer
  const OnnxNode* folded_ = nullptr;                                 // see bias_behind()
  nn::LossKind loss_ = nn::LossKind::softmax;
  int last_ = 0;
};

struct OnnxOperator {
  const char* name;
  void (OnnxReader::*read)(const OnnxNode&);
};
const std::vector<OnnxOperator>& onnx_operators();

}  // namespace dtrain::train
