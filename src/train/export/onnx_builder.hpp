// Nodes and constants of a graph of ONNX, in the order in which they are added.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <dtrain/nn/graph.hpp>

#include "onnx_messages.hpp"

namespace dtrain::train::onnx {

// Borrows the tensors of add_tensor(), which must outlive the message. One thread.
class OnnxBuilder {
 public:
  using Names = std::vector<std::string>;
  using Attributes = std::vector<ProtoMessage>;

  // The name, or where a value has it already, the name with "_2", "_3", ... behind it; no other value gets it.
  std::string new_name(const std::string& wanted);

  // A node with one output, whose new name it returns.
  std::string add(const char* op, const Names& inputs, const std::string& output, const Attributes& attributes = {});
  // The builder names the output.
  std::string part(const char* op, const Names& inputs, const Attributes& attributes = {});
  // The `count` largest values of the last axis, the largest first; of equal ones the first. Along that axis each
  // result has its own place.
  struct Largest {
    std::string values, places;
  };
  Largest largest(const std::string& of, std::int64_t count);
  // Names of parts begin with it.
  void set_scope(const std::string& scope) { scope_ = scope; }

  // Constants with a new name, which they return.
  std::string add_scalar(const std::string& name, float number);
  std::string add_index(const std::string& name, std::int64_t number);
  std::string add_integers(const std::string& name, std::initializer_list<std::int64_t> numbers);
  std::string add_integers(const std::string& name, std::span<const std::int64_t> extents,
                           std::span<const std::int64_t> numbers);
  std::string add_floats(const std::string& name, std::span<const std::int64_t> extents, std::span<const float> values);
  // What the tensor is called, which the first call settles.
  const std::string& tensor_name(const nn::TensorView& view) { return name_of("tensor " + view.name, view.name); }
  // A tensor of a buffer of the state; a second call for the same tensor adds nothing. Returns its name in the model.
  std::string add_tensor(const nn::TensorView& view, const std::vector<float>& buffer);
  std::string add_ones(const nn::TensorView& view);

  // Constants that go by their values; equal ones are stored once.
  std::string number(float value);
  std::string number(std::int64_t value);
  std::string numbers(std::span<const float> values);
  std::string numbers(std::span<const std::int64_t> values);
  std::string numbers(std::initializer_list<std::int64_t> values) { return numbers(std::span(values)); }
  // 0, 1, ... with these extents.
  std::string counted(std::int64_t count, std::span<const std::int64_t> extents);

 protected:
  // Those that programs know, whose names are taken already: what the model gives, and an input's usual value.
  std::string add_output(const char* op, const Names& inputs, const std::string& name, const Attributes& attributes);
  void add_usual_value(const std::string& name, std::span<const std::int64_t> extents,
                       std::span<const std::int64_t> numbers);
  void add_initializer(const ProtoMessage& tensor) { message_.message(initializer, tensor); }

  ProtoMessage message_;
  int nodes_ = 0;

 private:
  void add_node_message(const char* op, const Names& inputs, const Names& outputs, const Attributes& attributes);
  std::string part_name(const char* op) const;
  // Of what is stored once and has this key.
  const std::string& name_of(const std::string& key, const std::string& wanted);
  template <typename T>
  std::string constant(const std::string& name, std::span<const std::int64_t> extents, std::span<const T> values);

  std::string scope_;
  std::unordered_set<std::string> used_;                // names of values
  std::unordered_map<std::string, std::string> names_;  // by keys, see name_of()
  std::unordered_set<std::string> stored_;              // names of constants that are not stored a second time
};

}  // namespace dtrain::train::onnx
