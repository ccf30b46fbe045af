#include "onednn.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::backend::cpu {
namespace {

using dnnl::memory;

memory::data_type data_type(DType type) {
  return type == DType::bfloat16 ? memory::data_type::bf16 : memory::data_type::f32;
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

// 2.x makes a primitive descriptor from an operation descriptor, 3.x from the arguments themselves.
#if DNNL_VERSION_MAJOR >= 3
template <typename Primitive, typename... Arguments>
auto describe(const Arguments&... arguments) {
  return typename Primitive::primitive_desc(cpu_engine(), arguments..., attributes());
}
template <typename Primitive, typename Hint, typename... Arguments>
auto describe_backward(const Hint& hint, const Arguments&... arguments) {
  return typename Primitive::primitive_desc(cpu_engine(), arguments..., hint, attributes());
}
#else
template <typename Primitive, typename... Arguments>
auto describe(const Arguments&... arguments) {
  return typename Primitive::primitive_desc(typename Primitive::desc(arguments...), attributes(), cpu_engine());
}
template <typename Primitive, typename Hint, typename... Arguments>
auto describe_backward(const Hint& hint, const Arguments&... arguments) {
  return typename Primitive::primitive_desc(typename Primitive::desc(arguments...), attributes(), cpu_engine(), hint);
}
#endif

memory::desc tensor(int n, const nn::Shape& s, DType type) {
  return {{n, s.c, s.h, s.w}, data_type(type), memory::format_tag::nhwc};
}

memory::desc any_weights(const Product& p, DType type) {
  return {p.weight_dims(), data_type(type), memory::format_tag::any};
}

memory::desc chosen_weights(const Product& p, DType type, const memory::desc& given) {
  return is_given(given) ? given : any_weights(p, type);
}

memory::desc bias(const Product& p) { return {{p.out.c}, memory::data_type::f32, memory::format_tag::x}; }

struct Geometry {
  memory::dims strides, gaps, pad_before, pad_after;  // gaps: pixels between neighbours in a window
};

Geometry geometry(const Product& p) {
  const nn::Convolution& c = p.convolution;
  // What a window does not reach at the end is negative padding there.
  const auto after = [](int in, int out, int kernel, int dilation, int stride, int pad) {
    return (out - 1) * stride + (kernel - 1) * dilation + 1 - in - pad;
  };
  return {{c.stride_h, c.stride_w},
          {c.dilation_h - 1, c.dilation_w - 1},
          {c.pad_h, c.pad_w},
          {after(p.in.h, p.out.h, c.kernel_h, c.dilation_h, c.stride_h, c.pad_h),
           after(p.in.w, p.out.w, c.kernel_w, c.dilation_w, c.stride_w, c.pad_w)}};
}

auto describe_convolution(const Product& p, const memory::desc& weights, DType out_type) {
  const Geometry g = geometry(p);
  const auto kind = dnnl::prop_kind::forward_training;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  using Forward = dnnl::convolution_forward;
  if (p.bias) {
    return describe<Forward>(kind, algorithm, p.source(), weights, bias(p), p.result(out_type), g.strides, g.gaps,
                             g.pad_before, g.pad_after);
  }
  return describe<Forward>(kind, algorithm, p.source(), weights, p.result(out_type), g.strides, g.gaps, g.pad_before,
                           g.pad_after);
}

auto describe_dense(const Product& p, const memory::desc& weights, DType out_type) {
  const auto kind = dnnl::prop_kind::forward_training;
  using Forward = dnnl::inner_product_forward;
  if (p.bias) return describe<Forward>(kind, p.source(), weights, bias(p), p.result(out_type));
  return describe<Forward>(kind, p.source(), weights, p.result(out_type));
}

template <typename Description>
Compiled finish(const Description& d, Compiled::Argument first, Compiled::Argument second, Compiled::Argument weights) {
  return {dnnl::primitive(d), std::move(first), std::move(second), std::move(weights), d.scratchpad_desc().get_size()};
}

// A matrix whose rows are the pixels of the result, in the samples' order.
memory::desc pixels(const Product& p, int channels) {
  return {{memory::dim{p.n} * p.out.h * p.out.w, channels}, data_type(p.dtype), memory::format_tag::ab};
}

// Gradients by the pixels [pixels, out] and by the pixels of the source [pixels, in], the weights [out, in] between
// them.
auto describe_backward_data_matrices(const Product& p, const memory::desc& weights) {
  const memory::desc w =
      is_given(weights) ? weights : memory::desc({p.out.c, p.in.c}, data_type(p.dtype), memory::format_tag::any);
  return describe<dnnl::matmul>(pixels(p, p.out.c), w, pixels(p, p.in.c));
}

auto describe_backward_weights_matrices(const Product& p) {
  const memory::desc turned({p.out.c, memory::dim{p.n} * p.out.h * p.out.w}, data_type(p.dtype),
                            memory::format_tag::ba);
  return describe<dnnl::matmul>(turned, pixels(p, p.in.c), p.plain_matrix());
}

// Each gives `use` the primitive descriptor of a convolution or a dense layer; empty `weights` leave the layout to
// oneDNN.
template <typename Use>
auto with_forward(const Product& p, const memory::desc& weights, Use use) {
  const memory::desc w = chosen_weights(p, p.arithmetic(), weights);
  return p.dense ? use(describe_dense(p, w, p.out_dtype)) : use(describe_convolution(p, w, p.out_dtype));
}

bool is_by_definition(const Product& p, const memory::desc& weights) {
  return with_forward(p, weights, [](const auto& d) { return std::string_view(d.impl_info_str()).starts_with("ref"); });
}

bool takes_blocks_of_16(const Product& p) {
  return !p.dense && p.convolution.groups == 1 && p.arithmetic() == DType::float32;
}

template <typename Use>
auto with_backward_data(const Product& p, const memory::desc& weights, Use use) {
  const memory::desc w = chosen_weights(p, p.arithmetic(), weights);
  if (p.dense) {
    return use(describe_backward<dnnl::inner_product_backward_data>(
        describe_dense(p, any_weights(p, p.arithmetic()), p.dtype), p.source(), w, p.result(p.dtype)));
  }
  const Geometry g = geometry(p);
  return use(describe_backward<dnnl::convolution_backward_data>(
      describe_convolution(p, any_weights(p, p.arithmetic()), p.dtype), dnnl::algorithm::convolution_direct, p.source(),
      w, p.result(p.dtype), g.strides, g.gaps, g.pad_before, g.pad_after));
}

template <typename Use>
auto with_backward_weights(const Product& p, const memory::desc& weights, Use use) {
  const memory::desc w = chosen_weights(p, DType::float32, weights);
  if (p.dense) {
    return use(describe_backward<dnnl::inner_product_backward_weights>(
        describe_dense(p, any_weights(p, p.arithmetic()), p.dtype), p.source(), w, p.result(p.dtype)));
  }
  const Geometry g = geometry(p);
  return use(describe_backward<dnnl::convolution_backward_weights>(
      describe_convolution(p, any_weights(p, p.arithmetic()), p.dtype), dnnl::algorithm::convolution_direct, p.source(),
      w, p.result(p.dtype), g.strides, g.gaps, g.pad_before, g.pad_after));
}

// For AVX2, oneDNN 2.6 gathers the pixels that a 1x1 convolution with strides reads in rows of eight numbers; the
// scratchpad that it asks for has rows as long as there are channels.
std::size_t bytes_past_scratchpad(const Product& p) {
  constexpr int kRow = 8;
  const nn::Convolution& c = p.convolution;
  const bool gathers = !p.dense && c.kernel_h == 1 && c.kernel_w == 1 && (c.stride_h > 1 || c.stride_w > 1);
  if (!gathers || p.in.c >= kRow) return 0;
  return sizeof(float) * kRow * static_cast<std::size_t>(p.out.h) * static_cast<std::size_t>(p.out.w);
}

}  // namespace

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

bool Product::is_padded_3x3() const {
  const nn::Convolution& c = convolution;
  return !dense && c.is_plain() && c.kernel_h == 3 && c.kernel_w == 3 && c.pad_h == 1 && c.pad_w == 1 && c.groups == 1;
}

memory::desc Product::source() const { return tensor(n, in, arithmetic()); }

memory::desc Product::result(DType stored) const {
  const DType type = widened ? DType::float32 : stored;
  if (dense) return {{n, out.c}, data_type(type), memory::format_tag::nc};
  return tensor(n, out, type);
}

memory::dims Product::weight_dims() const {
  if (dense) return {out.c, in.c, in.h, in.w};
  const nn::Convolution& c = convolution;
  if (c.groups == 1) return {out.c, in.c, c.kernel_h, c.kernel_w};
  return {c.groups, out.c / c.groups, in.c / c.groups, c.kernel_h, c.kernel_w};
}

memory::desc Product::plain_weights() const { return {weight_dims(), memory::data_type::f32, plain_weights_format()}; }

memory::desc Product::plain_matrix() const { return {{out.c, in.c}, memory::data_type::f32, memory::format_tag::ab}; }

memory::format_tag Product::plain_weights_format() const {
  return weight_dims().size() == 4 ? memory::format_tag::oihw : memory::format_tag::goihw;
}

memory::desc Product::spread_weights() const {
  const memory::dim points = memory::dim{spread} * spread;
  return {{points, out.c / points, in.c}, memory::data_type::f32, {1, points, out.c}};
}

memory::desc Product::turned_weights() const {
  const memory::dim points = memory::dim{spread} * spread;
  return {{points, out.c / points, in.c}, memory::data_type::f32, memory::format_tag::abc};
}

std::string Product::shape_name() const {
  if (dense) return fmt::format("n{} {}x{}x{} -> {}", n, in.c, in.h, in.w, out.c);
  const nn::Convolution& c = convolution;
  const bool dilated = c.dilation_h > 1 || c.dilation_w > 1;
  return fmt::format("n{} {}x{}x{} -> {}x{}x{} k{}x{} s{}{}{}", n, in.c, in.h, in.w, out.c, out.h, out.w, c.kernel_h,
                     c.kernel_w, c.stride_h, c.groups > 1 ? fmt::format(" g{}", c.groups) : "",
                     dilated ? fmt::format(" d{}x{}", c.dilation_h, c.dilation_w) : "");
}

Compiled compile_forward(const Product& p, const memory::desc& weights) {
  return with_forward(p, weights, [](const auto& d) {
    return finish(d, {d.src_desc(), DNNL_ARG_SRC}, {d.dst_desc(), DNNL_ARG_DST}, {d.weights_desc(), DNNL_ARG_WEIGHTS});
  });
}

Compiled compile_backward_data(const Product& p, const memory::desc& weights) {
  if (p.by_matrices) {
    const auto d = describe_backward_data_matrices(p, weights);
    return finish(d, {d.src_desc(), DNNL_ARG_SRC}, {d.dst_desc(), DNNL_ARG_DST}, {d.weights_desc(), DNNL_ARG_WEIGHTS});
  }
  return with_backward_data(p, weights, [](const auto& d) {
    return finish(d, {d.diff_dst_desc(), DNNL_ARG_DIFF_DST}, {d.diff_src_desc(), DNNL_ARG_DIFF_SRC},
                  {d.weights_desc(), DNNL_ARG_WEIGHTS});
  });
}

Compiled compile_backward_weights(const Product& p, const memory::desc& weights) {
  if (p.by_matrices) {
    const auto d = describe_backward_weights_matrices(p);
    return finish(d, {d.weights_desc(), DNNL_ARG_WEIGHTS}, {d.src_desc(), DNNL_ARG_SRC}, {d.dst_desc(), DNNL_ARG_DST});
  }
  Compiled compiled = with_backward_weights(p, weights, [](const auto& d) {
    return finish(d, {d.src_desc(), DNNL_ARG_SRC}, {d.diff_dst_desc(), DNNL_ARG_DIFF_DST},
                  {d.diff_weights_desc(), DNNL_ARG_DIFF_WEIGHTS});
  });
  compiled.scratchpad += bytes_past_scratchpad(p);
  return compiled;
}

// The layout that oneDNN prefers for p holds blocks of as many output channels as pay for that number of samples. One
// sample may want other blocks; oneDNN then computes it by definition, which takes some thousand times as long. Blocks
// of 16 by 16 channels serve all numbers.
memory::desc forward_layout(const Product& p) {
  const memory::desc preferred = with_forward(p, {}, [](const auto& d) { return d.weights_desc(); });
  Product one = p;
  one.n = 1;
  if (!takes_blocks_of_16(p) || !is_by_definition(one, preferred)) return preferred;
  const memory::desc common{p.weight_dims(), memory::data_type::f32, memory::format_tag::OIhw16i16o};
  return is_by_definition(one, common) || is_by_definition(p, common) ? preferred : common;
}

memory::desc backward_data_layout(const Product& p) {
  if (p.by_matrices) return describe_backward_data_matrices(p, {}).weights_desc();
  return with_backward_data(p, {}, [](const auto& d) { return d.weights_desc(); });
}

memory::desc backward_weights_layout(const Product& p) {
  if (p.by_matrices) return p.plain_weights();
  return with_backward_weights(p, {}, [](const auto& d) { return d.diff_weights_desc(); });
}

bool is_given(const memory::desc& desc) { return desc.get_size() != 0; }

int onednn_major() { return dnnl_version()->major; }

// The values are sets of bits, and a newer instruction set has those of the ones that it contains.
bool uses_instructions(dnnl::cpu_isa isa) {
  const auto bits = static_cast<unsigned>(isa);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & bits) == bits;
}

std::string onednn_description() {
  using dnnl::cpu_isa;
  static constexpr std::pair<cpu_isa, const char*> kNames[] = {
    {cpu_isa::avx512_core_amx, "AMX"},
#if DNNL_VERSION_MAJOR >= 3
    {cpu_isa::avx512_core_fp16, "AVX-512 FP16"},
#endif
    {cpu_isa::avx512_core_bf16, "AVX-512 BF16"},
    {cpu_isa::avx512_core_vnni, "AVX-512 VNNI"},
    {cpu_isa::avx512_core, "AVX-512"},
    {cpu_isa::avx2_vnni, "AVX2-VNNI"},
    {cpu_isa::avx2, "AVX2"},
    {cpu_isa::avx, "AVX"},
  };
  const auto name = std::ranges::find_if(kNames, [](const auto& of) { return uses_instructions(of.first); });
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{} with {}", version->major, version->minor, version->patch,
                     name == std::end(kNames) ? "SSE4.1" : name->second);
}

SingleThreaded::SingleThreaded() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
SingleThreaded::~SingleThreaded() { omp_set_num_threads(before_); }

}  // namespace dtrain::backend::cpu
