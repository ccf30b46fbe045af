#include "product.hpp"

#include <type_traits>

#include "../../product.hpp"
#include "../kernels.hpp"
#include "hopper.cuh"
#include "product_layout.hpp"
#include "tensor_map.hpp"

namespace dtrain::backend::cuda {
namespace {

// Pairs of a product's matrices as TMA reads them; `c` is where the result goes, if that is in T.
struct ProductMaps {
  CUtensorMap a, b, c;
};

// What leaves beside the result, or in its place.
struct ProductSums {
  ProductShape shape;
  float* splits;   // weights: [split][m][n]
  float* moments;  // forward, may be null: [part][2][n]
};

template <typename T>
__device__ __forceinline__ std::uint32_t pair_of(float first, float second) {
  T low, high;
  narrow(first, low);
  narrow(second, high);
  return static_cast<std::uint32_t>(low.bits) | static_cast<std::uint32_t>(high.bits) << 16;
}

template <typename T>
__device__ __forceinline__ float value_of(std::uint32_t pair, int which) {
  T value;
  value.bits = static_cast<std::uint16_t>(which == 0 ? pair : pair >> 16);
  return widen(value);
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

using namespace hopper;

// The shared memory of a block, by addresses.
template <int N>
struct Shared {
  static constexpr ProductTile tile{N};
  static constexpr int stages = tile.stages();
  std::uint32_t memory, full, empty;
  __device__ __forceinline__ std::uint32_t a(int stage) const { return memory + stage * tile.stage_bytes(); }
  __device__ __forceinline__ std::uint32_t b(int stage) const { return a(stage) + tile.a_bytes(); }
  __device__ __forceinline__ std::uint32_t result(int consumer) const {
    return memory + stages * tile.stage_bytes() + consumer * tile.result_bytes();
  }
  __device__ __forceinline__ std::uint32_t moments(int consumer) const {
    return result(ProductTile::kConsumers) + consumer * tile.moment_bytes();
  }
  __device__ __forceinline__ std::uint32_t full_at(int stage) const { return full + stage * 8; }
  __device__ __forceinline__ std::uint32_t empty_at(int stage) const { return empty + stage * 8; }
};

template <Direction D, int N>
__device__ __forceinline__ void load_all(const ProductMaps& maps, const ProductCut& cut, const Shared<N>& shared) {
  constexpr Major kA = major_of_a(D), kB = major_of_b(D);
  constexpr OperandBoxes a_boxes = boxes_of(kA, ProductTile::kM), b_boxes = boxes_of(kB, N);
  StageRing ring{Shared<N>::stages};
  for (std::int32_t tile = blockIdx.x; tile < cut.tiles(); tile += gridDim.x) {
    const ProductCut::Place place = cut.at(tile);
    for (std::int32_t block = 0; block < place.blocks; ++block, ring.next()) {
      const std::int32_t k = (place.first_block + block) * ProductTile::kK;
      const std::uint32_t full = shared.full_at(ring.stage);
      wait(shared.empty_at(ring.stage), ring.phase_before());
      arrive_and_expect(full, Shared<N>::tile.stage_bytes());
#pragma unroll
      for (int box = 0; box < a_boxes.count; ++box) {
        load_box(shared.a(ring.stage) + box * a_boxes.bytes(), maps.a, box_at(kA, box, place.m * ProductTile::kM, k),
                 full);
      }
#pragma unroll
      for (int box = 0; box < b_boxes.count; ++box) {
        load_box(shared.b(ring.stage) + box * b_boxes.bytes(), maps.b, box_at(kB, box, place.n * N, k), full);
      }
    }
  }
}

// The sums of one consumer's rows of a tile.
template <typename T, Direction D, int N>
__device__ __forceinline__ void sum_up(float (&sums)[N / 2], const ProductCut::Place& place, const Shared<N>& shared,
                                       int consumer, StageRing& ring) {
  constexpr Major kA = major_of_a(D), kB = major_of_b(D);
  const bool arrives = threadIdx.x % ProductTile::kWarp == 0;
  int before = 0;
  for (std::int32_t block = 0; block < place.blocks; ++block, ring.next()) {
    wait(shared.full_at(ring.stage), ring.phase());
    hold(sums);
    begin_products();
#pragma unroll
    for (int step = 0; step < ProductTile::kK / ProductTile::kStepK; ++step) {
      multiply<T, N, kA, kB>(sums, operand_descriptor(kA, shared.a(ring.stage), consumer * ProductTile::kGroupM, step),
                             operand_descriptor(kB, shared.b(ring.stage), 0, step), step > 0 || block > 0);
    }
    end_products();
    hold(sums);
    // The stage before has been read; this one is being.
    wait_for_products<1>();
    if (block > 0 && arrives) arrive(shared.empty_at(before));
    before = ring.stage;
  }
  wait_for_products<0>();
  hold(sums);
  if (arrives) arrive(shared.empty_at(before));
}

__device__ __forceinline__ void store_shared(std::uint32_t to, float value) {
  asm volatile("st.shared.f32 [%0], %1;" : : "r"(to), "f"(value) : "memory");
}
__device__ __forceinline__ float load_shared(std::uint32_t from) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(from) : "memory");
  return value;
}

template <int Step, int Size>
__device__ __forceinline__ void exchange_half(float (&moments)[Size], int lane) {
  static_assert(Step < kMomentSteps);
  constexpr int kHalf = Size / 2 >> Step;
  const bool keeps_upper = (lane & moment_bit(Step)) != 0;
#pragma unroll
  for (int k = 0; k < kHalf; ++k) {
    const float given = keeps_upper ? moments[k] : moments[kHalf + k];
    const float kept = keeps_upper ? moments[kHalf + k] : moments[k];
    moments[k] = kept + __shfl_xor_sync(0xffffffff, given, moment_bit(Step));
  }
}

// Leaves the moments of the warp's rows of what is stored, [2][N].
template <typename T, int N>
__device__ __forceinline__ void store_moments(const std::uint32_t (&pairs)[N / 4], std::uint32_t to, int lane) {
  float moments[N / 2];
#pragma unroll
  for (int k = 0; k < N / 4; ++k) {
    // Accumulators 4j and 4j + 2 are one column in the thread's two rows.
    const std::uint32_t upper = pairs[k / 2 * 2], lower = pairs[k / 2 * 2 + 1];
    const float first = value_of<T>(upper, k % 2), second = value_of<T>(lower, k % 2);
    moments[k] = first + second;
    moments[N / 4 + k] = first * first + second * second;
  }
  exchange_half<0>(moments, lane);
  exchange_half<1>(moments, lane);
  exchange_half<2>(moments, lane);
#pragma unroll
  for (int k = 0; k < N / 16; ++k) {
    const MomentPlace at = moment_at<N>(lane, k);
    store_shared(to + (at.kind * N + at.column) * 4, moments[k]);
  }
}

// The moments of a consumer's rows: what its warps left, in their order.
template <int N>
__device__ __forceinline__ void fold_moments(std::uint32_t from, float* to, std::int32_t column, std::int32_t columns,
                                             int thread) {
#pragma unroll
  for (int at = 0; at < 2 * N; at += ProductTile::kGroup) {
    const int here = at + thread, kind = here / N, n = column + here % N;
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < ProductTile::kGroup / ProductTile::kWarp; ++warp) {
      sum += load_shared(from + (warp * 2 * N + here) * 4);
    }
    if (n < columns) to[std::int64_t{kind} * columns + n] = sum;
  }
}

template <typename T, Direction D, int N>
__device__ __forceinline__ void store_result(const float (&sums)[N / 2], const CUtensorMap& map, const ProductSums& out,
                                             const Shared<N>& shared, std::int32_t row, std::int32_t column,
                                             int consumer, int thread) {
  const std::uint32_t result = shared.result(consumer), moments = shared.moments(consumer);
  if (thread == 0) wait_until_read();
  meet(consumer);
  std::uint32_t pairs[N / 4];
#pragma unroll
  for (int k = 0; k < N / 4; ++k) {
    const AccumulatorPlace at = accumulator_at(thread, 2 * k);
    pairs[k] = pair_of<T>(sums[2 * k], sums[2 * k + 1]);
    asm volatile("st.shared.b32 [%0], %1;" : : "r"(result + result_place(at.row, at.column)), "r"(pairs[k]) : "memory");
  }
  if (D == Direction::forward && out.moments) {
    const int warp = thread / ProductTile::kWarp;
    store_moments<T, N>(pairs, moments + warp * 2 * N * 4, thread % ProductTile::kWarp);
  }
  publish_to_tma();
  meet(consumer);
  if (thread == 0 && row < out.shape.m) {
#pragma unroll
    for (int box = 0; box < N / kBoxWidth; ++box) {
      const std::int32_t first = column + box * kBoxWidth;
      if (first < out.shape.n) store_box(map, {first, row}, result + box * ProductTile::kGroupM * kSwizzledRow);
    }
    end_stores();
  }
  if (D == Direction::forward && out.moments) {
    float* const part = out.moments + std::int64_t{row / ProductTile::kGroupM} * 2 * out.shape.n;
    fold_moments<N>(moments, part, column, out.shape.n, thread);
  }
}

template <int N>
__device__ __forceinline__ void store_split(const float (&sums)[N / 2], const ProductShape& shape, float* to,
                                            std::int32_t row, std::int32_t column, int thread) {
#pragma unroll
  for (int k = 0; k < N / 2; k += 2) {
    const AccumulatorPlace at = accumulator_at(thread, k);
    const std::int32_t m = row + at.row, n = column + at.column;
    if (m < shape.m && n < shape.n) {
      *reinterpret_cast<float2*>(to + std::int64_t{m} * shape.n + n) = make_float2(sums[k], sums[k + 1]);
    }
  }
}

#endif

// See product_layout.hpp. Only sm_90a has a body: launch_product() starts it nowhere else.
template <typename T, Direction D, int N>
__global__ void __launch_bounds__(ProductTile::kThreads, ProductTile{N}.blocks_at_once())
    multiply_matrices(const __grid_constant__ ProductMaps maps, const ProductCut cut, const ProductSums out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int kStages = Shared<N>::stages;
  extern __shared__ unsigned char memory[];
  __shared__ std::uint64_t barriers[2 * kStages];
  constexpr std::uint32_t kAlignment = ProductTile::kAlignment;
  const Shared<N> shared{(shared_address(memory) + kAlignment - 1) / kAlignment * kAlignment, shared_address(barriers),
                         shared_address(barriers + kStages)};
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      start_barrier(shared.full_at(stage), 1);
      start_barrier(shared.empty_at(stage), kConsumerWarps);
    }
    publish_barriers();
  }
  __syncthreads();

  const int group = threadIdx.x / ProductTile::kGroup, thread = threadIdx.x % ProductTile::kGroup;
  if (group == ProductTile::kConsumers) {
    if (thread == 0) {
      prefetch(maps.a);
      prefetch(maps.b);
      load_all<D>(maps, cut, shared);
    }
    return;
  }
  StageRing ring{kStages};
  for (std::int32_t tile = blockIdx.x; tile < cut.tiles(); tile += gridDim.x) {
    const ProductCut::Place place = cut.at(tile);
    const std::int32_t row = place.m * ProductTile::kM + group * ProductTile::kGroupM, column = place.n * N;
    float sums[N / 2] = {};
    sum_up<T, D>(sums, place, shared, group, ring);
    if constexpr (!leaves_splits(D)) {
      store_result<T, D>(sums, maps.c, out, shared, row, column, group, thread);
    } else {
      store_split<N>(sums, out.shape, out.splits + std::int64_t{place.split} * out.shape.m * out.shape.n, row, column,
                     thread);
    }
  }
  if (!leaves_splits(D) && thread == 0) wait_until_stored();
#endif
}

int processors() {
  int gpu = 0, number = 0;
  if (cudaGetDevice(&gpu) != cudaSuccess) return 0;
  return cudaDeviceGetAttribute(&number, cudaDevAttrMultiProcessorCount, gpu) == cudaSuccess ? number : 0;
}

// The moments of all rows, of those of the parts.
cudaError_t fold(float* parts, const ProductShape& shape, float* to, cudaStream_t stream) {
  const RowParts cut = moment_folds(shape);
  const RowParts of_folds{.rows = cut.rows, .parts = cut.folded_parts, .parts_per_fold = cut.folded_parts};
  const std::int32_t width = 2 * shape.n;
  float* const folded = parts + std::int64_t{cut.parts} * width;
  if (const cudaError_t error = launch(FoldParts{parts, folded, cut, width}, stream); error != cudaSuccess)
    return error;
  return launch(FoldParts{folded, to, of_folds, width}, stream);
}

template <typename T, Direction D, int N>
cudaError_t start(const Convolution& work, const ProductShape& shape, void* workspace, cudaStream_t stream) {
  constexpr ProductTile kTile{N};
  const bool in_splits = leaves_splits(D);
  const void* const a = in_splits ? work.b : work.a;
  const void* const b = in_splits ? work.a : work.b;
  ProductMaps maps{};
  if (!describe_operand(maps.a, work.dtype, a, major_of_a(D), shape.m, shape.k, ProductTile::kM) ||
      !describe_operand(maps.b, work.dtype, b, major_of_b(D), shape.n, shape.k, N) ||
      (!in_splits && !describe(maps.c, work.dtype, work.result, shape.m, shape.n, ProductTile::kGroupM))) {
    return cudaErrorNotSupported;
  }
  const ProductCut cut = cut_product(shape, kTile, D);
  auto* const sums = static_cast<float*>(workspace);
  const ProductSums out{shape, in_splits ? sums : nullptr, work.moments ? sums : nullptr};
  const auto kernel = multiply_matrices<T, D, N>;
  const int blocks = std::min(cut.tiles(), processors() * kTile.blocks_at_once());
  if (blocks == 0 ||
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kTile.shared_bytes()) != cudaSuccess) {
    cudaGetLastError();
    return cudaErrorNotSupported;
  }
  kernel<<<blocks, ProductTile::kThreads, kTile.shared_bytes(), stream>>>(maps, cut, out);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  if (work.moments) return fold(out.moments, shape, work.moments, stream);
  if (!in_splits) return cudaSuccess;
  const std::int64_t weights = std::int64_t{shape.m} * shape.n;
  return launch(FinishWeights<T>{out.splits, static_cast<T*>(work.result), weights, cut.splits}, stream);
}

template <typename T, Direction D>
cudaError_t start(const Convolution& work, const ProductShape& shape, const ProductTile& tile, void* workspace,
                  cudaStream_t stream) {
  switch (tile.n) {
    case 64:
      return start<T, D, 64>(work, shape, workspace, stream);
    case 128:
      return start<T, D, 128>(work, shape, workspace, stream);
    case 256:
      return start<T, D, 256>(work, shape, workspace, stream);
    default:
      return cudaErrorNotSupported;
  }
}

template <typename T>
cudaError_t start(const Convolution& work, const ProductShape& shape, const ProductTile& tile, void* workspace,
                  cudaStream_t stream) {
  switch (work.direction) {
    case Direction::forward:
      return start<T, Direction::forward>(work, shape, tile, workspace, stream);
    case Direction::backward_data:
      return start<T, Direction::backward_data>(work, shape, tile, workspace, stream);
    case Direction::backward_weights:
      break;
  }
  return start<T, Direction::backward_weights>(work, shape, tile, workspace, stream);
}

}  // namespace

bool multiplies_by_wgmma() {
  // What the device code is compiled for: no later chip runs it.
  constexpr int kHopper = 9;
  int gpu = 0, major = 0, minor = 0;
  if (cudaGetDevice(&gpu) != cudaSuccess ||
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, gpu) != cudaSuccess ||
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, gpu) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  return major == kHopper && minor == 0;
}

cudaError_t launch_product(const Convolution& work, const ProductTile& tile, void* workspace, cudaStream_t stream) {
  const std::optional<ProductShape> shape = product_of(work);
  if (!shape) return cudaErrorNotSupported;
  return work.dtype == DType::bfloat16 ? start<Bf16>(work, *shape, tile, workspace, stream)
                                       : start<Half>(work, *shape, tile, workspace, stream);
}

}  // namespace dtrain::backend::cuda
