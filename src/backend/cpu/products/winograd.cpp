#include "winograd.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "../kernels/passing_stores.hpp"
#include "../thread_clock.hpp"
#include "half_numbers.hpp"

namespace dtrain::backend::cpu {
namespace {

// Samples of a tensor, one after another. The layer's shape counts: that of the tensor can be another one of as many
// numbers.
class Planes {
 public:
  Planes(const nn::Shape& shape, DType dtype, void* first)
      : plane_{shape.c, shape.h, shape.w, dtype == DType::bfloat16},
        first_(static_cast<std::byte*>(first)),
        sample_bytes_(static_cast<std::size_t>(shape.size()) * bytes_of(dtype)) {}
  Planes(const nn::Shape& shape, const Context& c, TensorId id)
      : Planes(shape, c.tensors[static_cast<std::size_t>(id)].dtype, c.data(id)) {}

  const WinogradPlane& plane() const { return plane_; }
  int channels() const { return plane_.channels; }
  void* sample(int i) const { return first_ + static_cast<std::size_t>(i) * sample_bytes_; }

 private:
  WinogradPlane plane_;
  std::byte* first_;
  std::size_t sample_bytes_;
};

// Tiles of a sample, row by row, and how many of them are transformed together.
struct Tiles {
  explicit Tiles(const Product& p)
      : columns((p.out.w + kWinogradTile - 1) / kWinogradTile),
        of_sample((p.out.h + kWinogradTile - 1) / kWinogradTile * columns),
        block(block_for(p.in.c + p.out.c)) {}

  int row(int tile) const { return tile % of_sample / columns * kWinogradTile; }
  int column(int tile) const { return tile % columns * kWinogradTile; }
  int sample(int tile) const { return tile / of_sample; }

  const int columns, of_sample, block;

 private:
  // Transformed tiles of both sides shall stay in a core's second cache. Where that would be few, which read all
  // weights for each few of them, there are many.
  static int block_for(int channels) {
    constexpr int kCacheBytes = 3 << 19, kWholeRows = 12, kFew = 24, kMany = 96;
    const int fitting = kCacheBytes / (kWinogradPositions * channels * static_cast<int>(sizeof(float)));
    return fitting < kFew ? kMany : std::min(fitting / kWholeRows * kWholeRows, kMany);
  }
};

// The tiles of a chunk that are computed, in the samples' order.
class TilesInUse {
 public:
  explicit TilesInUse(int all) : number_(all), all_(true) {}
  explicit TilesInUse(std::vector<int> some)
      : number_(static_cast<int>(some.size())), all_(false), some_(std::move(some)) {}

  int number() const { return number_; }
  int operator[](int k) const { return all_ ? k : some_[static_cast<std::size_t>(k)]; }

 private:
  int number_;
  bool all_;
  std::vector<int> some_;
};

std::size_t floats(std::int64_t count) { return sizeof(float) * static_cast<std::size_t>(count); }

Buffer numbers(DType dtype, std::int64_t count) {
  if (dtype == DType::bfloat16) return half_numbers(count);
  Buffer all(floats(count));
  std::fill_n(all.as<float>(), count, 0.5f);
  return all;
}

// What the three directions share: the layer, its tiles, and scratch for a block of them on both sides.
class WinogradOp : public Op {
 public:
  WinogradOp(ProductLayer& layer, std::vector<TensorId> read, const RegionRows& rows)
      : layer_(layer), tiles_(layer.shape()), rows_(rows) {
    kind = "convolution";
    reads = std::move(read);
    if (rows.regions != kNoTensor) reads.push_back(rows.regions);
  }

  std::size_t scratchpad_bytes() const final { return floats(values_size() + sums_size()); }
  std::size_t weight_bytes() const final { return floats(transformed_size()); }
  std::size_t packed_bytes() const final { return floats(transformed_size()); }
  std::string shape_name(int count) const final { return layer_.shape_name(count); }
  bool meets() const final { return false; }
  void meet(std::span<Context>) final {}

  double bare_seconds(Worker& worker, int count, int repeats) final {
    const Product& p = layer_.shape();
    const Buffer in = numbers(p.dtype, count * p.in.size()), out = numbers(p.dtype, count * p.out.size());
    const Buffer sums = numbers(DType::float32, measured_size());
    const TilesInUse all(count * tiles_.of_sample);
    return median_seconds(repeats, [&] {
      compute(worker, all, {p.in, p.dtype, in.data()}, {p.out, p.dtype, out.data()}, sums.as<float>());
    });
  }

 protected:
  // The direction's work on a chunk of the layer's source or its gradient, and of its result or its gradient; `sums`:
  // transformed weights, or what the gradient by these is added to.
  virtual void compute(Worker& worker, const TilesInUse& tiles, const Planes& in, const Planes& out, float* sums) = 0;

  // Floats of the sums that compute() is given to be measured.
  virtual std::int64_t measured_size() const { return transformed_size(); }

  TilesInUse tiles_in_use(const Context& c) const {
    if (rows_.regions == kNoTensor) return TilesInUse(c.count * tiles_.of_sample);
    std::vector<int> some;
    for (int i = 0; i < c.count; ++i) {
      const int end = rows_.end(c, i, layer_.shape().out.h);
      for (int tile = 0; tile < tiles_.of_sample && tiles_.row(tile) < end; ++tile) {
        some.push_back(i * tiles_.of_sample + tile);
      }
    }
    return TilesInUse(std::move(some));
  }

  std::int64_t transformed_size() const {
    return std::int64_t{kWinogradPositions} * layer_.shape().in.c * layer_.shape().out.c;
  }
  float* values(Worker& worker) const { return worker.scratchpad.as<float>(); }
  float* sums(Worker& worker) const { return values(worker) + values_size(); }

  // Calls work(first of them, number of them) for blocks of tiles.
  template <typename Work>
  void each_block(const TilesInUse& tiles, Work work) const {
    for (int first = 0; first < tiles.number(); first += tiles_.block) {
      work(first, std::min(tiles_.block, tiles.number() - first));
    }
  }

  using Transform = decltype(WinogradKernels::values);
  // A block of tiles of a tensor to [parts][36][block][width]: the channels in parts of `width`.
  void transform(Transform by, const Planes& tensor, const TilesInUse& tiles, int first, int count, int width,
                 float* out) const {
    for (int k = 0; k < count; ++k) {
      const int tile = tiles[first + k];
      by(tensor.plane(), tensor.sample(tiles_.sample(tile)), tiles_.row(tile), tiles_.column(tile),
         {out + std::int64_t{k} * width, pitch(width), width, kWinogradPositions * pitch(width)});
    }
  }
  std::int64_t pitch(int channels) const { return std::int64_t{tiles_.block} * channels; }
  static int in_whole_rows(int channels) { return (channels + kWinogradRows - 1) / kWinogradRows * kWinogradRows; }

  // A convolution with transformed weights, block after block of tiles: the source's values are transformed, multiplied
  // by the weights position by position, and the products transformed to results.
  void convolve(Worker& worker, const TilesInUse& tiles, const Planes& source, const Planes& result,
                const float* weights, const float* bias) const {
    const int from = source.channels(), to = result.channels();
    float* const transformed = values(worker);
    float* const products = transformed + kWinogradPositions * pitch(from);
    const int panel = kernels_.panel(to);
    each_block(tiles, [&](int first, int number) {
      transform(kernels_.winograd->values, source, tiles, first, number, from, transformed);
      for (int position = 0; position < kWinogradPositions; ++position) {
        kernels_.product({.rows = number,
                          .inner = from,
                          .columns = to,
                          .left = transformed + position * pitch(from),
                          .left_row = from,
                          .left_inner = 1,
                          .right = weights + std::int64_t{position} * from * to,
                          .right_inner = panel,
                          .right_panel = std::int64_t{from} * panel,
                          .out = products + position * pitch(to),
                          .out_row = to});
      }
      for (int k = 0; k < number; ++k) {
        const int tile = tiles[first + k];
        kernels_.winograd->results(result.plane(), products + std::int64_t{k} * to, pitch(to), bias, tiles_.row(tile),
                                   tiles_.column(tile), result.sample(tiles_.sample(tile)));
      }
    });
  }

  const FusedKernels& kernels_ = fused_kernels();
  ProductLayer& layer_;
  const Tiles tiles_;
  const RegionRows rows_;

 private:
  std::int64_t values_size() const { return kWinogradPositions * pitch(in_whole_rows(layer_.shape().in.c)); }
  std::int64_t sums_size() const { return kWinogradPositions * pitch(layer_.shape().out.c); }
};

class WinogradForward final : public WinogradOp {
 public:
  WinogradForward(ProductLayer& layer, TensorId source, TensorId result, const RegionRows& rows)
      : WinogradOp(layer, {source}, rows), source_(source), result_(result) {
    writes = {result};
  }
  void prepare(int, int) override { layer_.pack_for(Direction::forward, OwnKernels::minimal_filtering); }
  std::size_t workspace_bytes() const override { return 0; }
  void begin(Context&) override {}
  void finish(Context&) override {}
  void run(Context& c) override {
    const float* const bias = layer_.bias_offset() >= 0 ? c.parameters + layer_.bias_offset() : nullptr;
    const Product& p = layer_.shape();
    rows_.clear_below(c, result_, p.out.h);
    convolve(*c.worker, tiles_in_use(c), {p.in, c, source_}, {p.out, c, result_},
             static_cast<const float*>(layer_.forward_weights()), bias);
  }

 protected:
  void compute(Worker& worker, const TilesInUse& tiles, const Planes& in, const Planes& out, float* weights) override {
    convolve(worker, tiles, in, out, weights, nullptr);
  }

 private:
  TensorId source_, result_;
};

class WinogradBackwardData final : public WinogradOp {
 public:
  WinogradBackwardData(ProductLayer& layer, TensorId gradient, TensorId source_gradient, const RegionRows& rows)
      : WinogradOp(layer, {gradient}, rows), gradient_(gradient), source_gradient_(source_gradient) {
    writes = {source_gradient};
  }
  void prepare(int, int) override { layer_.pack_for(Direction::backward, OwnKernels::minimal_filtering); }
  std::size_t workspace_bytes() const override { return 0; }
  void begin(Context&) override {}
  void finish(Context&) override {}
  void run(Context& c) override {
    const Product& p = layer_.shape();
    rows_.clear_below(c, source_gradient_, p.in.h);
    convolve(*c.worker, tiles_in_use(c), {p.out, c, gradient_}, {p.in, c, source_gradient_},
             static_cast<const float*>(layer_.backward_weights_packed()), nullptr);
  }

 protected:
  void compute(Worker& worker, const TilesInUse& tiles, const Planes& in, const Planes& out, float* weights) override {
    convolve(worker, tiles, out, in, weights, nullptr);
  }

 private:
  TensorId gradient_, source_gradient_;
};

// Sums over the tiles in their order, so that chunks and blocks do not show in the bits. The sums are kept in parts of
// some channels, each of which stays in the cache while a block of tiles is added to it. With a single block of a
// single chunk all parts take the room of the first: each becomes a part of the gradient before the next one begins.
class WinogradBackwardWeights final : public WinogradOp {
 public:
  WinogradBackwardWeights(ProductLayer& layer, TensorId source, TensorId gradient, const RegionRows& rows)
      : WinogradOp(layer, {source, gradient}, rows), source_(source), gradient_(gradient) {
    gradients = {{layer.weight_offset(), static_cast<std::int64_t>(gradient_bytes() / sizeof(float))}};
  }
  void prepare(int, int) override {}
  std::size_t workspace_bytes() const override { return floats(transformed_size()); }
  void begin(Context&) override {}
  void run(Context& c) override {
    const Product& p = layer_.shape();
    add_tiles(*c.worker, tiles_in_use(c), {p.in, c, source_}, {p.out, c, gradient_},
              {workspace<float>(c), c.is_first_chunk(), c.is_last_chunk() ? gradient_of(c) : nullptr});
  }
  void finish(Context& c) override {
    if (c.chunks == 0) std::memset(gradient_of(c), 0, gradient_bytes());
  }

 protected:
  void compute(Worker& worker, const TilesInUse& tiles, const Planes& in, const Planes& out, float* sums) override {
    add_tiles(worker, tiles, in, out, {sums, true, sums + transformed_size()});
  }
  std::int64_t measured_size() const override { return 2 * transformed_size(); }

 private:
  // The sums that the tiles of a call, or of a block, are added to.
  struct Sums {
    float* parts = nullptr;     // one part after another
    bool begins = false;        // these tiles are the first: the sums start from zeros
    float* gradient = nullptr;  // these tiles are the last: the sums are transformed to there; else null
    bool is_only() const { return begins && gradient != nullptr; }
  };
  // Tiles that are transformed.
  struct Block {
    const float *values = nullptr, *slopes = nullptr;
    int tiles = 0;
  };

  std::size_t gradient_bytes() const { return layer_.shape().plain_weights().get_size(); }
  float* gradient_of(const Context& c) const { return c.contribution + layer_.weight_offset(); }

  // Without tiles too, for the sums may begin or end with this call.
  void add_tiles(Worker& worker, const TilesInUse& tiles, const Planes& in, const Planes& out, const Sums& sums) const {
    float* const values_in = values(worker);
    float* const slopes = values_in + kWinogradPositions * pitch(in_whole_rows(in.channels()));
    int first = 0;
    do {
      const int number = std::min(tiles_.block, tiles.number() - first);
      transform(kernels_.winograd->values, in, tiles, first, number, kWinogradRows, values_in);
      transform(kernels_.winograd->gradients, out, tiles, first, number, columns(), slopes);
      const bool is_last = first + number == tiles.number();
      add_block({values_in, slopes, number},
                {sums.parts, sums.begins && first == 0, is_last ? sums.gradient : nullptr});
      first += number;
    } while (first < tiles.number());
  }

  int columns() const { return std::min(kWidestPanel, layer_.shape().out.c); }  // of a part

  void add_block(const Block& block, const Sums& sums) const {
    const int all_in = layer_.shape().in.c, all_out = layer_.shape().out.c;
    const bool passes = sums.gradient && passes_caches(sums.gradient, std::int64_t{kKernelSize} * all_in * all_out);
    float* part = sums.parts;
    for (int out = 0; out < all_out; out += columns()) {
      for (int in = 0; in < all_in; in += kWinogradRows) {
        const WinogradPart shape{std::min(kWinogradRows, all_in - in), columns(), all_in, passes};
        add_products({block.values + kWinogradPositions * pitch(in), block.slopes + kWinogradPositions * pitch(out),
                      block.tiles},
                     shape, part, !sums.begins);
        if (sums.gradient) {
          const std::int64_t first_kernel = std::int64_t{out} * all_in + in;
          kernels_.winograd->weights_gradient(shape, part, sums.gradient + first_kernel * kKernelSize);
        }
        if (!sums.is_only()) part += std::int64_t{kWinogradPositions} * shape.in * shape.out;
      }
    }
  }

  // Those of a part's channels.
  void add_products(const Block& block, const WinogradPart& part, float* sums, bool adds) const {
    for (int position = 0; position < kWinogradPositions; ++position) {
      kernels_.product({.rows = part.in,
                        .inner = block.tiles,
                        .columns = part.out,
                        .left = block.values + position * pitch(kWinogradRows),
                        .left_row = 1,
                        .left_inner = kWinogradRows,
                        .right = block.slopes + position * pitch(part.out),
                        .right_inner = part.out,
                        .right_panel = kernels_.panel(part.out),
                        .out = sums + std::int64_t{position} * part.in * part.out,
                        .out_row = part.out,
                        .adds = adds});
    }
  }

  static constexpr int kKernelSize = 9;
  TensorId source_, gradient_;
};

bool fills_panels(int channels) {
  constexpr int kLeast = 32, kVector = 16;
  return channels >= kLeast && channels % (channels < kWidestPanel ? kVector : kWidestPanel) == 0;
}

}  // namespace

static bool can_filter(const Product& p, const CpuModel& cpu, int least_side) {
  if (!p.is_padded_3x3() || p.convolution.stride_h != 1 || p.convolution.stride_w != 1) return false;
  if (!cpu.has_fused_kernels() || (p.dtype == DType::bfloat16 && cpu.has_amx_bf16)) return false;
  return std::min(p.out.h, p.out.w) >= least_side && fills_panels(p.in.c) && fills_panels(p.out.c);
}

// Below 8 pixels tiles hang over the edge, and weights, which take four times the memory of direct ones, are read for
// few of them.
bool filters_minimally(const Product& p, const CpuModel& cpu) { return can_filter(p, cpu, 8); }

// The gradient reads no weights. 7 pixels were measured with AVX-512 alone.
bool sums_minimally(const Product& p, const CpuModel& cpu) { return can_filter(p, cpu, cpu.has_avx512 ? 7 : 8); }

std::unique_ptr<Op> make_winograd_forward(ProductLayer& layer, TensorId source, TensorId result,
                                          const RegionRows& rows) {
  return std::make_unique<WinogradForward>(layer, source, result, rows);
}

std::unique_ptr<Op> make_winograd_backward_data(ProductLayer& layer, TensorId gradient, TensorId source_gradient,
                                                const RegionRows& rows) {
  return std::make_unique<WinogradBackwardData>(layer, gradient, source_gradient, rows);
}

std::unique_ptr<Op> make_winograd_backward_weights(ProductLayer& layer, TensorId source, TensorId gradient,
                                                   const RegionRows& rows) {
  return std::make_unique<WinogradBackwardWeights>(layer, source, gradient, rows);
}

}  // namespace dtrain::backend::cpu
