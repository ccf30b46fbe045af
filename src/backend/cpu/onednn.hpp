// oneDNN with the same interface for versions 2.6 and 3.x: this header and onednn.cpp are the only places that know the
// version. All primitives run on one thread; ours are the threads (see thread_pool.hpp).
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <string>
#include <vector>

#include <dtrain/backend/backend.hpp>
#include <dtrain/nn/graph.hpp>

namespace dtrain::backend::cpu {

const dnnl::engine& cpu_engine();

// A convolution or a dense layer on n samples, tensors channels-last. Biases are float32.
struct Product {
  int n = 0;
  nn::Shape in, out;
  nn::Convolution convolution;  // meaningful when not dense
  bool dense = false;
  bool bias = false;
  DType dtype = DType::float32;
  DType out_dtype = DType::float32;  // of the forward's result; gradients are of `dtype`
  bool widened = false;              // tensors of bfloat16 are computed on as float32 copies: see bfloat16.hpp
  bool by_matrices = false;          // gradients are matrix products on the pixels in use: see pixel_matrix.hpp
  bool by_filtering = false;         // by own kernels: see winograd.hpp
  int spread = 0;                    // of a transposed convolution the stride: see transposed.hpp

  // A convolution of 3x3 with a padding of one, whatever its stride.
  bool is_padded_3x3() const;
  DType arithmetic() const { return widened ? DType::float32 : dtype; }

  // What the primitive sees: copies where widened.
  dnnl::memory::desc source() const;
  dnnl::memory::desc result(DType type) const;
  // [out, in, h, w], with a leading [groups] where there are several.
  dnnl::memory::dims weight_dims() const;
  // In the order of the flat parameter buffer, always float32; as a matrix [out, in] where the kernel is 1x1.
  dnnl::memory::desc plain_weights() const;
  dnnl::memory::desc plain_matrix() const;
  dnnl::memory::format_tag plain_weights_format() const;
  // The weights of a transposed convolution [stride^2, out, in], both float32: in the flat parameter buffer and as rows
  // of plain_weights().
  dnnl::memory::desc spread_weights() const;
  dnnl::memory::desc turned_weights() const;
  std::string shape_name() const;
};

// One primitive for one number of samples with what it wants from memory.
struct Compiled {
  // Layout, and DNNL_ARG_... of the primitive.
  struct Argument {
    dnnl::memory::desc layout;
    int name = 0;
  };
  dnnl::primitive primitive;
  Argument first, second, weights;  // see the functions below
  std::size_t scratchpad = 0;
};

// `weights` is the layout of the weights, one of those below.
Compiled compile_forward(const Product& p, const dnnl::memory::desc& weights);           // source, result
Compiled compile_backward_data(const Product& p, const dnnl::memory::desc& weights);     // gradient, source gradient
Compiled compile_backward_weights(const Product& p, const dnnl::memory::desc& weights);  // source, gradient

// The layouts of the weights that the library prefers for p; forward, one that it can also compute other numbers of
// samples with. By matrices, that of backward_data is of a matrix.
dnnl::memory::desc forward_layout(const Product& p);
dnnl::memory::desc backward_data_layout(const Product& p);
dnnl::memory::desc backward_weights_layout(const Product& p);

bool is_given(const dnnl::memory::desc& desc);  // not the empty one

int onednn_major();

// Whether oneDNN uses all instructions that `isa` names.
bool uses_instructions(dnnl::cpu_isa isa);

// "oneDNN 2.6.3, AVX-512 ..." of the library that is loaded.
std::string onednn_description();

// While it lives, primitives made on the calling thread are made for one thread.
class SingleThreaded {
 public:
  SingleThreaded();
  ~SingleThreaded();
  SingleThreaded(const SingleThreaded&) = delete;

 private:
  int before_;
};

}  // namespace dtrain::backend::cpu
